"""What rows leave out, kept beside them: where every episode drove, and how every single test case came out.

Both are sealed files of plain arrays in single precision; a figure needs no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ocular.errors import InputError, check_choice, check_finite, check_shape
from ocular.evaluation.coverage import CaseResults
from ocular.evaluation.episodes import EpisodeResult, Outcome
from ocular.locks import make_folder, sole_writer
from ocular.records import Floats, Inputs
from ocular.sealed import Arrays, only, read_sealed, sound_content, take, write_sealed

TRAJECTORIES, CASES, VERSION = "trajectories", "coverage cases", 1


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One drive of T control steps."""

    outcome: Outcome
    states: Floats  # (T + 1, 4), where the robot truly was
    actions: Floats  # (T, 2)
    scales: Floats  # (T,), xi of the step that was taken; NaN where the plan had no uncertainty

    @classmethod
    def of(cls, drive: EpisodeResult) -> Trajectory:
        """What is kept of a drive."""
        return cls(drive.outcome, drive.states, drive.actions, drive.scales)

    def __post_init__(self) -> None:
        check_choice("outcome", self.outcome, get_args(Outcome))
        check_shape("states", self.states, (len(self.scales) + 1, None))
        check_shape("actions", self.actions, (len(self.scales), None))
        check_finite("states", self.states)
        check_finite("actions", self.actions)


@dataclass(frozen=True, slots=True)
class TrajectoryFile:
    """All drives of one method on one map, by episode."""

    path: Path

    @classmethod
    def under(cls, folder: Path, map_name: str, method: str) -> TrajectoryFile:
        """The file's place below a world's results."""
        return cls(folder / "trajectories" / f"{map_name}-{method}.sealed")

    def read(self) -> dict[int, Trajectory]:
        """Every episode that is there; none when there is no file yet."""
        if not self.path.exists():
            return {}
        sealed = read_sealed(self.path, kind=TRAJECTORIES, version=VERSION)
        with sound_content(self.path, "file of trajectories"):
            (outcomes,) = only(sealed.manifest, "outcomes")
            names = [f"{episode}.{name}" for episode in outcomes for name in _PARTS]
            arrays = take(sealed.arrays, dict.fromkeys(names, np.float32))
            return {
                int(episode): Trajectory(
                    outcome, *(arrays[f"{episode}.{name}"].astype(np.float64) for name in _PARTS)
                )
                for episode, outcome in sorted(outcomes.items(), key=lambda item: int(item[0]))
            }

    def add(self, episode: int, result: EpisodeResult) -> None:
        """Merge one drive in and rewrite the file in one atomic step; a drive added again is replaced."""
        make_folder(self.path.parent)
        with sole_writer(self.path, wait=True):
            self._write(self.read() | {episode: Trajectory.of(result)})

    def _write(self, drives: Mapping[int, Trajectory]) -> None:
        arrays = {
            f"{n}.{name}": getattr(drive, name).astype(np.float32)
            for n, drive in drives.items()
            for name in _PARTS
        }
        outcomes = {str(n): drive.outcome for n, drive in drives.items()}
        write_sealed(
            self.path, kind=TRAJECTORIES, version=VERSION, manifest={"outcomes": outcomes}, arrays=arrays
        )


_PARTS = ("states", "actions", "scales")


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """Every method on every single test case of one map."""

    states: Floats  # (cases, d)
    actions: Floats  # (cases, m)
    ood: Floats  # (cases,) bool, out of distribution for the nominal model
    methods: dict[str, CaseResults]


def cases_path(folder: Path, map_name: str, seed: int) -> Path:
    """The file's place below a world's results."""
    return folder / "cases" / f"{map_name}-{seed}.sealed"


def write_cases(path: Path, cases: Inputs, ood: Any, results: Mapping[str, CaseResults]) -> None:
    """Write the cases of one map and one seed."""
    arrays: Arrays = {"states": cases.states, "actions": cases.actions}
    for method, result in results.items():
        arrays |= {f"{method}.coverage": result.coverage, f"{method}.volume": result.relative_volume}
    for name, array in arrays.items():
        if len(array) != len(ood):
            raise InputError(f"{name} has {len(array)} rows; allowed are {len(ood)}, one a case")
    single = {name: array.astype(np.float32) for name, array in arrays.items()}
    make_folder(path.parent)
    manifest = {"methods": list(results)}
    write_sealed(path, kind=CASES, version=VERSION, manifest=manifest, arrays={**single, "ood": ood})


def read_cases(path: Path) -> CaseRecord:
    """Read the cases of one map and one seed back."""
    sealed = read_sealed(path, kind=CASES, version=VERSION)
    with sound_content(path, "file of test cases"):
        (methods,) = only(sealed.manifest, "methods")
        parts = [f"{method}.{part}" for method in methods for part in ("coverage", "volume")]
        arrays = take(
            sealed.arrays,
            {"states": np.float32, "actions": np.float32, "ood": np.bool_} | dict.fromkeys(parts, np.float32),
        )
        for name, array in arrays.items():
            check_shape(name, array, (len(arrays["ood"]), *(None,) * (name in ("states", "actions"))))
            if name.endswith(".coverage") and not ((array >= 0) & (array <= 1)).all():
                raise InputError(f"{name} runs from {array.min()} to {array.max()}; allowed is 0 to 1")
            if name.endswith(".volume") and not (array >= 0).all():
                raise InputError(f"{name} runs down to {array.min()}; allowed is 0 to infinity")
        single = {name: a.astype(np.float64) for name, a in arrays.items() if name != "ood"}
        return CaseRecord(
            states=single["states"],
            actions=single["actions"],
            ood=arrays["ood"],
            methods={m: CaseResults(single[f"{m}.coverage"], single[f"{m}.volume"]) for m in methods},
        )
