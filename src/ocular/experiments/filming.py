"""Drives that are watched: for videos and recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ocular.calibrators import Calibration
from ocular.evaluation.episodes import Moment, Watcher
from ocular.experiments.planning import drive
from ocular.planning.mppi import MPPI, PlannerSettings
from ocular.records import Floats
from ocular.report.film import Film
from ocular.report.sight import Sight
from ocular.worlds.junction import JunctionWorld
from ocular.worlds.planar import PlanarWorld


def filmed(
    truth: PlanarWorld,
    calibration: Calibration,
    seed: int,
    *,
    planner: PlannerSettings,
    watch: Watcher | None = None,
    **how: Any,
) -> Film:
    """One drive as `drive` does it, the same as without a watcher, with its result."""
    quantile = MPPI(calibration.model, calibration.state_cov, planner).quantile
    film = Film(calibration.method, calibration.model, truth.geometry, quantile, _camera_of(truth))

    def watch_both(moment: Moment) -> None:
        film(moment)
        if watch is not None:
            watch(moment)

    film.result = drive(truth, calibration, seed, planner=planner, watch=watch_both, **how)
    return film


def _camera_of(truth: PlanarWorld) -> Callable[[Floats, float], Sight] | None:
    """What its robots see, in a world where they have cameras."""
    if not isinstance(truth, JunctionWorld):
        return None

    def look(position: Floats, heading: float) -> Sight:
        images = truth.eye.take(position, heading)
        labels = truth.table.numbers(images.classes)[images.semantics]
        rgb = truth.eye.picture(position, heading)
        return Sight(rgb, images.depth.astype(np.float16), labels, truth.map.grid.names)

    return look
