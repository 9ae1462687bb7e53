"""`ocular collect`: log transitions in a simulated world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Collect:
    """Log one-step transitions on a planar map, on the paper's grid, into a transition store.

    A map is a TOML file with rectangles or an image; see docs/maps.md. Collecting into a store that
    exists adds to it; a map that is in it already is left alone.
    """

    map: str
    """Name of a packaged map (S, L, H, U) or path of a map file."""
    store: Path
    """Directory of the transition store."""
    positions: int = 16
    """Grid positions along each axis."""
    velocities: int = 8
    """Grid velocities along each axis."""
    actions: int = 4
    """Grid actions along each axis."""
    seed: int = 0
    """Seed of the noise."""

    def run(self) -> None:
        """Collect and say what there is."""
        from ocular.data import TransitionStore
        from ocular.progress import progress
        from ocular.seeds import stream
        from ocular.worlds.collect import GridSpec, collect_transitions
        from ocular.worlds.map_file import PLANAR_LABELS, load_map
        from ocular.worlds.planar import PlanarWorld

        world = PlanarWorld(load_map(self.map))
        grid = GridSpec(self.positions, self.velocities, self.actions)
        if self.store.exists():
            store = TransitionStore.open(self.store)
        else:
            store = TransitionStore.create(self.store, PLANAR_LABELS, world.geometry, 4, 2)
        name = world.map.name
        if name in store.parts:
            print(f"{name} is in {self.store} already; nothing was collected")
        else:
            with progress(f"collecting {name}", 1) as advance:
                rng = stream(self.seed, "planar", name, "transitions")
                store.append(name, collect_transitions(world, grid, rng))
                advance("done")
        for part, summary in store.summary().items():
            print(f"{part}: {summary.transitions:,} transitions, {summary.footprints:,} footprints")
