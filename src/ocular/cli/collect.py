"""`ocular collect`: log transitions in a simulated world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ocular.worlds.collect import GridSpec
    from ocular.worlds.planar import PlanarWorld


@dataclass(frozen=True)
class Collect:
    """Log one-step transitions on a map, on the paper's grid, into a transition store.

    A planar map is a TOML file with rectangles or an image, see docs/maps.md; one of the camera world is an
    MJCF scene, see docs/add-a-world.md. Collecting into a store that exists adds to it; a map that is in it
    already is left alone.
    """

    map: str
    """A packaged map (planar: S, L, H, U; camera: icyMain, icyMiddle, icySide), or the path of one."""
    store: Path
    """Directory of the transition store."""
    world: Literal["planar", "camera"] = "planar"
    """Where the map is."""
    positions: int = 16
    """Grid positions along each axis."""
    velocities: int | None = None
    """Grid velocities along each axis; the paper's unless told: 8 (planar) or 10 (camera)."""
    actions: int = 4
    """Grid actions along each axis."""
    seed: int = 0
    """Seed of the noise."""
    json: bool = False
    """Print what the store holds as JSON."""

    def run(self) -> None:
        """Collect and say what there is."""
        import json
        from dataclasses import asdict

        from ocular.data import TransitionStore
        from ocular.experiments.worlds import SETTINGS, open_map
        from ocular.locks import sole_writer
        from ocular.worlds.collect import GridSpec

        _, world = open_map(self.world, self.map)
        velocities = SETTINGS[self.world]().grid.velocities if self.velocities is None else self.velocities
        grid, name = GridSpec(self.positions, velocities, self.actions), world.map.name
        known = self.store.exists() and name in TransitionStore.open(self.store).parts
        if not known:
            with sole_writer(self.store):
                self._collect(world, grid)
        store = TransitionStore.open(self.store)
        if self.json:
            parts = {part: asdict(summary) for part, summary in store.summary().items()}
            print(json.dumps({"store": str(self.store), "collected": not known, "parts": parts}))
            return
        if known:
            print(f"{name} is in {self.store} already; nothing was collected")
        for part, summary in store.summary().items():
            print(f"{part}: {summary.transitions:,} transitions, {summary.footprints:,} footprints")

    def _collect(self, world: PlanarWorld, grid: GridSpec) -> None:
        """Into the store, which is made if it is not there."""
        from ocular.data import TransitionStore
        from ocular.progress import progress
        from ocular.seeds import stream
        from ocular.worlds.collect import collect_transitions
        from ocular.worlds.map_file import PLANAR_LABELS

        name = world.map.name
        if self.store.exists():
            store = TransitionStore.open(self.store)
        else:
            store = TransitionStore.create(self.store, PLANAR_LABELS, world.geometry, 4, 2)
        with progress(f"collecting {name}", 1) as advance:
            rng = stream(self.seed, self.world, name, "transitions")
            store.append(name, collect_transitions(world, grid, rng))
            advance("done")
