"""A folder of results, as far as it is there: whatever is missing is said, and everything else is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ocular.errors import DamagedFileError, InputError
from ocular.evaluation.recordings import CaseRecord, Trajectory, TrajectoryFile, read_cases
from ocular.evaluation.rows import Row, read_rows
from ocular.report.paper import maps_in_order
from ocular.report.style import in_order

WORLDS = {"planar": "Planar maps", "camera": "Camera world"}
Drives = dict[int, Trajectory]


@dataclass(frozen=True)
class WorldResults:
    """What one world's folder holds."""

    name: str
    folder: Path

    @cached_property
    def coverage(self) -> list[Row]:
        """Rows of the coverage tables."""
        return self._rows("coverage.csv")

    @cached_property
    def planning(self) -> list[Row]:
        """One row an episode."""
        return self._rows("planning.csv")

    @cached_property
    def datasets(self) -> list[Row]:
        """How much was logged and tested on each map."""
        return self._rows("datasets.csv")

    @cached_property
    def drives(self) -> dict[str, dict[str, Drives]]:
        """Trajectories by map, method and episode."""
        found: dict[str, dict[str, Drives]] = {}
        for path in sorted((self.folder / "trajectories").glob("*-*.sealed")):
            map_name, method = path.stem.rsplit("-", 1)
            found.setdefault(map_name, {})[method] = TrajectoryFile(path).read()
        return {
            map_name: {method: found[map_name][method] for method in in_order(found[map_name])}
            for map_name in maps_in_order(self.name, found)
        }

    @cached_property
    def cases(self) -> dict[str, CaseRecord]:
        """Single test cases by map, those of the lowest seed."""
        found: dict[str, tuple[int, Path]] = {}
        for path in sorted((self.folder / "cases").glob("*-*.sealed")):
            map_name, seed = path.stem.rsplit("-", 1)
            if map_name not in found or int(seed) < found[map_name][0]:
                found[map_name] = (int(seed), path)
        return {m: read_cases(found[m][1]) for m in maps_in_order(self.name, found)}

    @cached_property
    def runs(self) -> dict[str, list[dict[str, Any]]]:
        """Who made the rows, by file: commit, versions, machine, wall time."""
        found = {}
        for path in sorted(self.folder.glob("*.provenance.json")):
            try:
                found[path.name.removesuffix(".provenance.json")] = json.loads(path.read_text())["runs"]
            except (ValueError, KeyError, TypeError) as error:
                raise DamagedFileError(
                    f"{path} cannot be read ({error!r}); allowed is what a run wrote"
                ) from error
        return found

    @property
    def maps(self) -> list[str]:
        """Every map that anything is known of."""
        named = {row["map"] for row in [*self.coverage, *self.planning]}
        return maps_in_order(self.name, named | set(self.drives) | set(self.cases))

    @property
    def methods(self) -> list[str]:
        """Every method that anything is known of."""
        return in_order({row["method"] for row in [*self.coverage, *self.planning]})

    def missing(self) -> list[str]:
        """What is not there, and what makes it."""
        wanted = {
            "coverage": (self.coverage, "coverage"),
            "single test cases": (self.cases, "coverage"),
            "planning": (self.planning, "planning"),
            "trajectories": (self.drives, "planning"),
        }
        return [
            f"No {what} of the {WORLDS[self.name].lower()} yet: ocular reproduce {self.name} --only {part}"
            for what, (found, part) in wanted.items()
            if not found
        ]

    def _rows(self, name: str) -> list[Row]:
        path = self.folder / name
        return read_rows(path) if path.exists() else []


@dataclass(frozen=True)
class Results:
    """All of it."""

    folder: Path
    worlds: dict[str, WorldResults] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> Results:
        """Open a folder of results."""
        worlds = {name: WorldResults(name, folder / name) for name in WORLDS}
        if not any(world.coverage or world.planning for world in worlds.values()):
            raise InputError(
                f"{folder} has no coverage or planning rows; "
                "allowed is a folder that `ocular reproduce` wrote"
            )
        return cls(folder, worlds)

    @cached_property
    def benchmarks(self) -> list[Row]:
        """Speed as ratios."""
        path = self.folder / "benchmarks.csv"
        return read_rows(path) if path.exists() else []
