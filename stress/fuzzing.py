"""Fuzzing: parsers of files from elsewhere, each for half an hour, and only the documented errors come out.

One process for each, which a crash or the memory limit may end. Corpora are kept, so that each run goes on
where the last one stopped; findings are kept beside them, as tracebacks.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ocular.experiments.limits import Limited
from ocular.progress import progress

HOME = Path("out/fuzz")
SECONDS, QUICK_SECONDS = 1800, 20
MOST_MEBIBYTES = 2048
SLOWEST = 60  # [s] of one input, on a busy machine
_EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")


def fuzzing(_scratch: Path, quick: bool) -> Iterator[Limited]:
    """How many undocumented errors each parser has, by where they come from."""
    from stress.targets import TARGETS  # other parts need not read what fuzzing starts from

    seconds = QUICK_SECONDS if quick else SECONDS
    with progress("fuzzing", len(TARGETS)) as advance:
        for name in TARGETS:
            found, executions = fuzz(name, HOME / name, seconds)
            yield Limited(f"fuzz_{name}_undocumented_errors", "<=0", found, executions)
            advance(name)


def fuzz(name: str, home: Path, seconds: int) -> tuple[int, int]:
    """Findings and executions of one run; what an earlier run found and is mended since counts no more."""
    findings = home / "findings"
    shutil.rmtree(findings, ignore_errors=True)  # their inputs are in the corpus, and are tried again
    findings.mkdir(parents=True)
    limits = (
        *(f"-max_total_time={seconds}", f"-rss_limit_mb={MOST_MEBIBYTES}", f"-timeout={SLOWEST}"),
        *("-print_final_stats=1", f"-report_slow_units={SLOWEST}"),
    )
    command = [sys.executable, "-m", "stress.fuzz_target", name, home / "corpus"]
    with open(home / "log.txt", "w", encoding="utf-8") as log:
        ended = subprocess.run([*command, *limits], stdout=log, stderr=log, check=False)
    executions = _EXECUTIONS.findall((home / "log.txt").read_text(encoding="utf-8", errors="replace"))
    found = len(list(findings.iterdir()))
    if ended.returncode and not found:
        found = 1  # it never came to fuzz: the log says why
    return found, int(executions[-1]) if executions else 0
