# Two commands matter: `make demo` and `make test`. Everything happens in .venv, which they make.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: demo test lint types contracts pytest bench stress reproduce report documents site clean

demo: .venv/installed
	$(BIN)/ocular demo --workers $(WORKERS)

test: lint types contracts pytest

lint: .venv/installed
	$(BIN)/ruff check src tests benchmarks examples stress
	$(BIN)/ruff format --check src tests benchmarks examples stress

types: .venv/installed
	$(BIN)/mypy

contracts: .venv/installed
	$(BIN)/lint-imports

pytest: .venv/installed
	$(BIN)/pytest -n $(WORKERS)

bench: .venv/bench-installed
	$(BIN)/python -m benchmarks

stress: .venv/stress-installed
	$(BIN)/ocular stress --workers $(WORKERS)
	$(BIN)/python -m stress

reproduce: .venv/installed
	$(BIN)/ocular reproduce planar --only coverage --seed 0 1 2 --workers $(WORKERS)
	$(BIN)/ocular reproduce planar --only coverage --variant other_frame --workers $(WORKERS)
	$(BIN)/ocular reproduce planar --only planning --workers $(WORKERS)
	$(BIN)/ocular reproduce planar --variant stepped --workers $(WORKERS)
	$(BIN)/ocular reproduce camera --workers $(WORKERS)
	$(BIN)/ocular reproduce camera --variant noisy --workers $(WORKERS)

report: .venv/installed
	$(BIN)/ocular report --figures out/figures

# Tables and pictures in the documents, from the rows; then the documents as a site.
documents: .venv/installed
	$(BIN)/python -m ocular.report README.md docs/*.md docs/assets/*.png

site: .venv/installed
	$(BIN)/mkdocs build --strict

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ocular needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt -e '.[dev]'
	touch $@

.venv/bench-installed: .venv/installed
	$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt -e '.[bench]'
	touch $@

.venv/stress-installed: .venv/installed
	$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt -e '.[stress]'
	touch $@

clean:
	rm -rf .venv out build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
