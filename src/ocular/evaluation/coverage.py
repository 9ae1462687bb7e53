"""The paper's coverage protocol (Sec. 5.1): particles, ID and OOD apart, volume against an oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ocular.calibrators import Calibration
from ocular.conformal import exact_fraction, squared_mahalanobis
from ocular.errors import InputError
from ocular.records import Floats, Inputs

CASES_A_CHUNK = 32


class ParticleSource(Protocol):
    """A world that can repeat a step many times over."""

    def draw(self, rng: np.random.Generator, states: Floats, actions: Floats) -> Floats:
        """One particle a row: the true state is drawn round the estimate, then takes one noisy step."""


@dataclass(frozen=True, slots=True)
class CaseResults:
    """One method on every test case."""

    coverage: Floats  # (cases,) share of the case's own particles inside the region
    relative_volume: Floats  # (cases,) volume of the region over that of the oracle's


@dataclass(frozen=True, slots=True)
class CoverageSummary:
    """One method on one kind of region: a column of the paper's tables, and what they lack."""

    coverage: float  # marginal: mean over cases
    volume: float  # median over cases, relative to the oracle
    gap: float  # mean over cases of |case coverage - (1 - alpha)|
    undercovered: float  # share of cases below 1 - alpha - 0.05
    cases: int


def evaluate_coverage(
    world: ParticleSource,
    cases: Inputs,
    calibrations: Mapping[str, Calibration],
    alpha: float | Fraction,
    particles: int,
    rng: np.random.Generator,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, CaseResults]:
    """Every method on the same particles; one method's calibration must not change the others' rows."""
    if particles < 1:
        raise InputError(f"particles is {particles}; allowed is at least 1")
    thresholds = {name: c.threshold(cases, alpha) for name, c in calibrations.items()}
    covered = {name: np.empty(len(cases)) for name in calibrations}
    oracle = np.empty(len(cases))
    predictor = next(iter(calibrations.values()))
    # The smallest region that holds 1 - alpha of these very particles: an order statistic, no interpolation.
    oracle_rank = math.ceil(particles * (1 - exact_fraction(alpha)))
    for rows, scores in _particle_scores(world, cases, predictor, particles, rng):
        for name, threshold in thresholds.items():
            covered[name][rows] = (scores <= threshold[rows, None]).mean(axis=1)
        oracle[rows] = np.partition(scores, oracle_rank - 1, axis=1)[:, oracle_rank - 1]
        on_progress(int(rows[-1]) + 1, len(cases))
    dim = cases.states.shape[1]
    return {
        # A factor xi on the covariance is xi^(d/2) on the volume; chi2 cancels in the ratio.
        name: CaseResults(covered[name], (thresholds[name] / oracle) ** (dim / 2))
        for name in calibrations
    }


def _particle_scores(
    world: ParticleSource, cases: Inputs, predictor: Calibration, particles: int, rng: np.random.Generator
) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
    for start in range(0, len(cases), CASES_A_CHUNK):
        rows = np.arange(start, min(start + CASES_A_CHUNK, len(cases)))
        chunk = cases.take(rows)
        outcomes = world.draw(
            rng, np.repeat(chunk.states, particles, axis=0), np.repeat(chunk.actions, particles, axis=0)
        )
        prediction = predictor.predict(chunk)
        shared = prediction.cov.ndim == 2
        repeated = replace(
            prediction,
            mean=np.repeat(prediction.mean, particles, axis=0),
            cov=prediction.cov if shared else np.repeat(prediction.cov, particles, axis=0),
        )
        yield rows, squared_mahalanobis(repeated, outcomes).reshape(len(rows), particles)


def summarise(results: CaseResults, rows: npt.NDArray[np.bool_], alpha: float | Fraction) -> CoverageSummary:
    """Average one method over the cases picked by `rows` (ID or OOD)."""
    if not rows.any():
        raise InputError("no test case lies in this region; allowed is at least one")
    wanted = 1 - float(alpha)
    coverage = results.coverage[rows]
    return CoverageSummary(
        coverage=float(coverage.mean()),
        volume=float(np.median(results.relative_volume[rows])),
        gap=float(np.abs(coverage - wanted).mean()),
        undercovered=float((coverage < wanted - 0.05).mean()),
        cases=int(rows.sum()),
    )
