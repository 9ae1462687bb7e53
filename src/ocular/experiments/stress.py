"""The monitor under stress: false alarms, delay, an eye for what is new, and what it does to drives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ocular.evaluation.rows import Row
from ocular.experiments.guarded import ANSWERS, METHODS, NEVER, SLIPS, GuardedSettings, drive_guarded
from ocular.experiments.jobs import prepare
from ocular.experiments.limits import Limited
from ocular.experiments.monitor_trials import delays, false_alarms
from ocular.experiments.novelty_trials import novelties
from ocular.experiments.workshop import Workshop

PARTS = ("law", "delay", "novelty", "drives")
# The long-run promise of the online correction, at some 300 steps on ice and a factor of 10.
MOST_LEFT = 0.12


def stress(
    settings: GuardedSettings, parts: Sequence[str], runs: int, output: Path, work: Path, workers: int
) -> Iterator[Limited]:
    """The figures of these parts; `output` gets the rows of drives."""
    workshop, maps = Workshop.under(work, settings.calibration), settings.calibration.site.maps
    prepare(workshop, maps, ("ocular",), workers)
    made = {
        "law": lambda: false_alarms(workshop.calibration(maps[0], "ocular"), runs, settings.calibration.seed),
        "delay": lambda: delays(settings, workshop, runs),
        "novelty": lambda: novelties(workshop),
        "drives": lambda: of_drives(drive_guarded(settings, output, work, workers)),
    }
    for part in parts:
        yield from made[part]()


def of_drives(rows: Sequence[Row]) -> Iterator[Limited]:
    """Collisions with and without the policy, on the same noise, and what it costs where nothing changed."""
    for method in METHODS:
        for slip in SLIPS[1:]:
            plain, guarded = (_these(rows, method, slip, answer) for answer in ANSWERS)
            name = f"drives_{method}_slip_{slip}"
            collisions = [sum(row["outcome"] == "collision" for row in drives) for drives in (plain, guarded)]
            yield Limited(f"{name}_collisions_without_policy", f"<={len(plain)}", collisions[0], len(plain))
            yield Limited(f"{name}_collisions", f"<={collisions[0] / 2:g}", collisions[1], len(guarded))
    for slip in SLIPS[1:]:
        plain, guarded = (_these(rows, "ocular", slip, answer) for answer in ANSWERS)
        name = f"drives_ocular_slip_{slip}_left_region"
        for suffix, wanted, drives in (("_without_policy", "<=1", plain), ("", f"<={MOST_LEFT}", guarded)):
            steps = sum(int(row["ood_steps_after"]) for row in drives)
            left = sum(int(row["ood_left_region_after"]) for row in drives)
            yield Limited(name + suffix, wanted, left / max(steps, 1), steps)
    quiet = _these(rows, "ocular", SLIPS[0], ANSWERS[1])
    alarms = sum(int(row["alarm_step"]) != NEVER for row in quiet) / max(len(quiet), 1)
    yield Limited(f"drives_ocular_slip_{SLIPS[0]}_false_alarms", "<=0.05", alarms, len(quiet))


def _these(rows: Sequence[Row], method: str, slip: float, answer: str) -> list[Row]:
    wanted = (method, str(slip), answer)
    return [row for row in rows if (row["method"], row["slip"], row["answer"]) == wanted]
