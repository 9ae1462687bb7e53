"""The few figures that say it all, from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from ocular.report.results import WorldResults


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure and what it is."""

    figure: str
    text: str


def findings(world: WorldResults) -> list[Finding]:
    """As many as there are rows for."""
    found = []
    covered = {m: _coverage(world.coverage, m) for m in ("nocp", "ocular")}
    if covered["ocular"] is not None:
        ours, trusting = covered["ocular"], covered["nocp"]
        against = "" if trusting is None else f"; trusting the model gives {trusting:.1f} %"
        found.append(
            Finding(
                f"{ours:.1f} %", f"of next states on ice are inside OCULAR's regions, 90 % wanted{against}"
            )
        )
        volume = fmean(float(row["volume"]) for row in _on_ice(world.coverage, "ocular"))
        found.append(
            Finding(f"{volume:.2f} ×", "the volume of the smallest regions that would do, found by an oracle")
        )
    drives = {m: [row for row in world.planning if row["method"] == m] for m in ("nocp", "ocular")}
    if drives["ocular"]:
        against = f"; without calibration, {_arrived(drives['nocp'])}" if drives["nocp"] else ""
        found.append(
            Finding(
                _arrived(drives["ocular"]), f"drives arrive with OCULAR on maps it has no data from{against}"
            )
        )
        milliseconds = median(float(row["step_ms_p50"]) for row in drives["ocular"])
        found.append(Finding(f"{milliseconds:.0f} ms", "from what the robot sees to its next action, median"))
    return found


def _on_ice(rows: Sequence[Mapping[str, Any]], method: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["method"] == method and row["region"] == "OOD"]


def _coverage(rows: Sequence[Mapping[str, Any]], method: str) -> float | None:
    found = _on_ice(rows, method)
    return 100 * fmean(float(row["coverage"]) for row in found) if found else None


def _arrived(episodes: Sequence[Mapping[str, Any]]) -> str:
    return f"{sum(row['outcome'] == 'success' for row in episodes)} of {len(episodes)}"
