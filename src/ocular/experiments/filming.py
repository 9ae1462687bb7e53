"""Drives that are watched: for videos and recordings."""

from __future__ import annotations

from ocular.calibrators import Calibration
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
    most_steps: int = 700,
    threads: int = 1,
) -> Film:
    """One drive, the same as without a watcher, with its result."""
    quantile = MPPI(calibration.model, calibration.state_cov, planner).quantile
    film = Film(calibration.method, calibration.model, truth.geometry, quantile)
    film.result = drive(
        truth, calibration, seed, planner=planner, most_steps=most_steps, threads=threads, watch=film
    )
    return film
