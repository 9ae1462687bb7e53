"""The monitor's false alarms and its delay, over thousands of runs with outcomes drawn anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ocular.calibrators import Calibration
from ocular.conformal import squared_mahalanobis
from ocular.dynamics.linear import square_root
from ocular.errors import InputError
from ocular.evaluation.episodes import Moment
from ocular.experiments.guarded import SLIPS, GuardedSettings
from ocular.experiments.limits import Limited
from ocular.experiments.planning import drive
from ocular.experiments.workshop import Workshop
from ocular.monitor import GROUNDS, Monitor, TestMartingale
from ocular.monitor.monitor import halves
from ocular.progress import progress
from ocular.records import Floats, Footprints, Indices, Inputs
from ocular.seeds import integer, stream
from ocular.worlds.planar import PlanarWorld

DELTAS = (0.05, 0.01)
STEPS = 300  # of a run in which nothing changes


def false_alarms(calibration: Calibration, runs: int, seed: int) -> Iterator[Limited]:
    """One half of a calibration's own scores, halved anew for each run, is watched beside the other half."""
    if calibration.scores is None:
        raise InputError(f"the calibration {calibration.method!r} has no scores; allowed is one with scores")
    pool, rng = calibration.scores, stream(seed, "stress", "false alarms")
    p = np.full((runs, len(GROUNDS), STEPS), np.nan)
    with progress("false alarms", runs) as advance:
        for k in range(runs):
            known, seen = halves(pool, rng)
            drawn = rng.permutation(len(seen.scores))[:STEPS]
            of_cell = np.repeat(np.arange(len(seen.counts)), seen.counts)[drawn]
            monitor = Monitor(replace(calibration, scores=known), seed=k)
            p[k] = _p_values(monitor, of_cell, seen.scores[drawn])
            advance("")
    for delta in DELTAS:
        rate = float((first_alarms(p, delta) < STEPS).mean())
        yield Limited(f"monitor_false_alarms_delta_{delta}", f"<={delta}", rate, runs)


def delays(settings: GuardedSettings, workshop: Workshop, runs: int) -> Iterator[Limited]:
    """Steps of a real drive, again and again: with the slip that was logged, then with more of it."""
    maps, found, early = settings.calibration.site.maps, list[Floats](), 0
    each = -(-runs // len(maps))
    with progress("delays", each * len(maps)) as advance:
        for map_name in maps:
            calibration = workshop.calibration(map_name, "ocular")
            worlds = [settings.calibration.site.open(map_name, slip) for slip in SLIPS[:2]]
            lap = _one_lap(settings, worlds[0], calibration, map_name)
            cells, n = np.tile(calibration.cells(lap), 2), len(lap)
            p = np.full((each, len(GROUNDS), 2 * n), np.nan)
            for k in range(each):
                rng = stream(settings.calibration.seed, "stress", "delays", map_name, k)
                scores = np.concatenate([_scores(world, calibration, lap, rng) for world in worlds])
                p[k] = _p_values(Monitor(calibration, seed=k), cells, scores)
                advance(map_name)
            alarms = first_alarms(p, settings.delta)
            ice_steps = np.concatenate([[0], np.cumsum(worlds[0].region(lap.states[:, :2]))])
            after = alarms[alarms >= n] - n  # n: never
            found.append(np.where(after < n, ice_steps[np.minimum(after + 1, n)], np.inf))
            early += int((alarms < n).sum())
    delay, trials = np.concatenate(found), each * len(maps)
    slips = f"slip_{SLIPS[0]}_to_{SLIPS[1]}"
    yield Limited(f"monitor_ice_steps_until_alarm_{slips}", "<=60", float(np.median(delay)), len(delay))
    yield Limited("monitor_false_alarms_in_drives", f"<={settings.delta}", early / trials, trials)


def _p_values(monitor: Monitor, cells: Indices, scores: Floats) -> Floats:
    """(grounds, steps), NaN where the other ground is bet on."""
    p = np.full((len(GROUNDS), len(cells)), np.nan)
    for k, (cell, score) in enumerate(zip(cells, scores, strict=True)):
        p[monitor.grounds[cell], k] = monitor.p_value(int(cell), float(score))
    return p


def first_alarms(p: Floats, delta: float) -> Indices:
    """Of p-values (runs, grounds, steps): the step at which a monitor raises its alarm, or their number."""
    runs, grounds, steps = p.shape
    martingale, alarms = TestMartingale(runs=runs * grounds), np.full(runs, steps)
    for k in range(steps):
        log_capital = martingale.update(p[:, :, k].reshape(-1)).reshape(runs, grounds)
        over = (log_capital >= np.log(grounds / delta)).any(axis=1)
        alarms[over & (alarms == steps)] = k
    return alarms


def _one_lap(
    settings: GuardedSettings, truth: PlanarWorld, calibration: Calibration, map_name: str
) -> Inputs:
    """What a robot knew before each step of a drive in which nothing changed."""
    site, seen = settings.calibration.site, list[Moment]()
    seed = integer(settings.calibration.seed, site.name, map_name, "lap")
    drive(
        truth,
        calibration,
        seed,
        planner=settings.planner,
        reach=site.reach,
        most_steps=settings.most_steps,
        watch=seen.append,
        site=site,
    )
    return Inputs(
        states=np.array([moment.estimate for moment in seen]),
        actions=np.array([moment.plan.action for moment in seen]),
        headings=np.array([moment.heading for moment in seen]),
        footprint_index=np.arange(len(seen)),
        footprints=Footprints(
            np.array([moment.cells for moment in seen]), truth.map.grid.names, truth.geometry
        ),
    )


def _scores(truth: PlanarWorld, calibration: Calibration, lap: Inputs, rng: np.random.Generator) -> Floats:
    """The same steps with other noise, from where the robot may truly have been."""
    blur = square_root(truth.state_cov)
    states = lap.states + rng.standard_normal(lap.states.shape) @ blur.T
    return squared_mahalanobis(calibration.predict(lap), truth.step(rng, states, lap.actions))
