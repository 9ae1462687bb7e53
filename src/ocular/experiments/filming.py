"""Drives that are watched: for videos and recordings."""

from __future__ import annotations

from typing import Any

from ocular.calibrators import Calibration
from ocular.evaluation.episodes import Moment, Watcher
from ocular.experiments.planar_planning import drive
from ocular.planning.mppi import MPPI, PlannerSettings
from ocular.report.film import Film
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
    film = Film(calibration.method, calibration.model, truth.geometry, quantile)

    def watch_both(moment: Moment) -> None:
        film(moment)
        if watch is not None:
            watch(moment)

    film.result = drive(truth, calibration, seed, planner=planner, watch=watch_both, **how)
    return film
