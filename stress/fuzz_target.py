"""Fuzz one parser with atheris: python -m stress.fuzz_target NAME CORPUS [libFuzzer's options].

It does not stop at the first finding: each is written beside the corpus, by where it came from, and its input
joins the corpus, so that the next run tries it again.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import traceback
from pathlib import Path

import atheris

import ocular

# Compiled functions cannot be instrumented.
_COMPILED = [
    ".".join(("ocular", *file.relative_to(Path(ocular.__file__).parent).with_suffix("").parts))
    for file in Path(ocular.__file__).parent.rglob("*.py")
    if "numba" in file.read_text(encoding="utf-8")
]


def main(name: str, corpus: Path, options: list[str]) -> None:
    """Try inputs until the options' limits are met; never returns."""
    for module in [module for module in sys.modules if module.partition(".")[0] == "ocular"]:
        del sys.modules[module]  # to be imported again, instrumented
    with atheris.instrument_imports(include=["ocular"], exclude=_COMPILED):
        from stress.targets import TARGETS

    target, findings = TARGETS[name], corpus.parent / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    for seed in target.seeds():
        (corpus / f"seed-{_digest(seed)}").write_bytes(seed)

    with tempfile.TemporaryDirectory(prefix=f"ocular-fuzz-{name}-") as scratch:

        def one(data: bytes) -> None:
            try:
                target.takes(data, Path(scratch) / "input")
            except Exception as error:
                _keep(findings, corpus, data, error)

        atheris.Setup([sys.argv[0], str(corpus), f"-artifact_prefix={findings}/", *options], one)
        atheris.Fuzz()


def _keep(findings: Path, corpus: Path, data: bytes, error: Exception) -> None:
    """One finding for each place that an error comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{Path(ocular.__file__).parent}" in frame.filename]
    where = f"{Path(ours[-1].filename).name} {ours[-1].lineno}" if ours else "elsewhere"
    file = findings / f"{_digest(f'{type(error).__name__} {where}'.encode())}.txt"
    if not file.exists():
        file.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        (corpus / f"finding-{file.stem}").write_bytes(data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).absolute(), sys.argv[3:])
