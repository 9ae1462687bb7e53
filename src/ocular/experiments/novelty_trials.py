"""The novelty test's eye for a label and for an obstacle that no log shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ocular.experiments.limits import Limited
from ocular.experiments.workshop import Workshop
from ocular.footprint import scan
from ocular.monitor import Novelty
from ocular.progress import progress
from ocular.records import OCCUPIED, Floats, Labels
from ocular.seeds import integer, stream
from ocular.worlds.map_file import LOW_FRICTION
from ocular.worlds.planar import Flags, PlanarWorld

EPS = 0.05  # false-alarm rate
POST_RADIUS = 0.03  # [m]: maps have walls and corners only
POST_NEAR, POST_FAR = 0.2, 0.45  # [m] from the robot
POST_BEARING = 0.6  # [rad] from the heading, at most
VIEWS = 500  # a map


def novelties(workshop: Workshop) -> Iterator[Limited]:
    """Each map in turn is the place that the logs do not show."""
    maps = workshop.settings.site.maps
    flagged: dict[str, list[Flags]] = {"false_alarms": [], "post": [], "label": [], "unseen_map": []}
    with progress("novelty", len(maps)) as advance:
        for map_name in maps:
            for name, p_values in _one_map(workshop, map_name).items():
                flagged[name].append(p_values <= EPS)
            advance(map_name)
    wanted = {"false_alarms": f"<={EPS}", "post": ">=0.95", "label": ">=0.95", "unseen_map": "<=1"}
    for name, flags in flagged.items():
        together = np.concatenate(flags)
        yield Limited(f"novelty_{name}", wanted[name], float(together.mean()), len(together))


def _one_map(workshop: Workshop, map_name: str) -> dict[str, Floats]:
    settings = workshop.settings
    others = tuple(name for name in settings.site.maps if name != map_name)
    rng, seed = stream(settings.seed, "novelty", map_name), integer(settings.seed, "novelty", map_name)
    logged = workshop.transitions(others).inputs.footprints
    order = rng.permutation(len(logged))
    apart, rest = logged.cells[order[: len(order) // 3]], logged.cells[order[len(order) // 3 :]]
    novelty = Novelty.fit(replace(logged, cells=rest), seed)
    icy = (logged.cells == logged.labels.index(LOW_FRICTION)).any(axis=(1, 2))
    dry = Novelty.fit(replace(logged, cells=logged.cells[~icy]), seed)
    truth = settings.world(map_name)
    return {
        "false_alarms": novelty.p_values(apart),
        "post": novelty.p_values(views(truth, rng, post=True)),
        "label": dry.p_values(logged.cells[icy][:VIEWS]),
        "unseen_map": novelty.p_values(views(truth, rng, post=False)),
    }


def views(truth: PlanarWorld, rng: np.random.Generator, *, post: bool, count: int = VIEWS) -> Labels:
    """Footprints from random free places, where wanted with a free-standing post in view."""
    grid, (width, height) = truth.map.grid, truth.map.size
    rows, columns = np.indices(grid.labels.shape)
    x, y = ((k + 0.5) * grid.resolution + o for k, o in zip((columns, rows), grid.origin, strict=True))
    round_it = np.linspace(0, 2 * np.pi, 16)
    ring = (POST_RADIUS + 0.06) * np.stack([np.cos(round_it), np.sin(round_it)], axis=1)
    seen: list[Labels] = []
    while len(seen) < count:
        position, heading = rng.uniform((0.0, 0.0), (width, height)), rng.uniform(-np.pi, np.pi)
        bearing = heading + rng.uniform(-POST_BEARING, POST_BEARING)
        there = position + rng.uniform(POST_NEAR, POST_FAR) * np.array([np.cos(bearing), np.sin(bearing)])
        labels = grid.labels
        if post:
            if not (truth.path_is_free(position[None], there[None])[0] and truth.is_free(there + ring).all()):
                continue
            labels = labels.copy()
            labels[np.hypot(x - there[0], y - there[1]) <= POST_RADIUS] = grid.index(OCCUPIED)
        elif not truth.is_free(position[None])[0]:
            continue
        world = replace(grid, labels=labels)
        seen.append(scan(world, truth.geometry, position[None], np.array([heading]))[0])
    return np.array(seen)
