"""What a calibration came to: cells, points, thresholds, and how it does where it has no data from.

Coverage in a new place is measured by leaving one environment out: calibrate on the others, test on it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.calibrators import Calibration, Calibrator
from ocular.calibrators.calibration import quiet_thresholds
from ocular.calibrators.trials import HANDFUL
from ocular.conformal import conformal_rank
from ocular.errors import CalibrationWarning, InputError
from ocular.records import Floats, Transitions

SHORT = 0.05  # coverage that a left-out environment may lack before it is worth a warning


@dataclass(frozen=True, slots=True)
class Spread:
    """Least, median and most of some numbers; infinite ones count."""

    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: npt.NDArray[np.number]) -> Spread:
        """Of at least one number; the median is one of them, so infinity does no harm."""
        ordered = np.sort(values)
        return cls(float(ordered[0]), float(ordered[(len(ordered) - 1) // 2]), float(ordered[-1]))


@dataclass(frozen=True, slots=True)
class Performance:
    """A calibration on transitions that it was not fitted on."""

    transitions: int
    missed: int  # outside of their regions
    coverage: float
    volume: float  # median over transitions, relative to the uncalibrated region's (NoCP's)
    unbounded: float  # share of transitions whose region is the whole space

    @classmethod
    def of(cls, covered: npt.NDArray[np.bool_], scales: Floats, calibration: Calibration) -> Performance:
        """Sum up the outcomes of at least one transition."""
        # A factor xi on the covariance is xi^(d/2) on the volume.
        volumes = scales ** (calibration.model.state_dim / 2)
        return cls(
            transitions=len(covered),
            missed=int((~covered).sum()),
            coverage=float(covered.mean()),
            volume=Spread.of(volumes).median,
            unbounded=float(np.isinf(scales).mean()),
        )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An environment, tested by a calibration on all others; or why it could not be."""

    environment: str
    tested: Performance | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """A calibration at one alpha, in numbers."""

    method: str
    alpha: float
    transitions: int
    environments: dict[str, int]  # transitions of each
    cells: int
    points: Spread | None  # calibration points a cell; None where no scores are kept (NoCP)
    thresholds: Spread  # on the squared Mahalanobis distance
    scales: Spread  # xi
    selection: Mapping[str, Any] | None  # settings that were tried, and the choice; None where none was made
    left_out: tuple[LeftOut, ...]
    warnings: tuple[str, ...]


def account(
    calibration: Calibration,
    environments: Mapping[str, int],
    alpha: float | Fraction,
    left_out: Sequence[LeftOut] = (),
) -> Account:
    """Sum up a calibration, and how many transitions of each environment it was fitted on."""
    thresholds, scores = quiet_thresholds(calibration, alpha), calibration.scores
    selection = calibration.provenance.get("selection")
    return Account(
        method=calibration.method,
        alpha=float(alpha),
        transitions=sum(environments.values()),
        environments=dict(environments),
        cells=calibration.partition.n_cells,
        points=None if scores is None else Spread.of(scores.counts),
        thresholds=Spread.of(thresholds),
        scales=Spread.of(thresholds / calibration.chi2(alpha)),
        selection=selection,
        left_out=tuple(left_out),
        warnings=(
            *_of_environments(environments),
            *_of_selection(selection),
            *_of_cells(calibration, thresholds, alpha),
            *_of_left_out(left_out, alpha),
        ),
    )


def leave_out(
    environment: str,
    calibrator: Calibrator,
    *,
    transitions: Transitions,
    like: Calibration,
    alpha: float | Fraction,
    seed: int,
) -> LeftOut:
    """Fit anew on all other environments, with the model of `like`, and test on this one."""
    own = transitions.environment == transitions.environments.index(environment)
    if not own.any():
        return LeftOut(environment, None, "it has no transitions")
    if own.all():
        return LeftOut(environment, None, "there is no other environment to calibrate on")
    try:
        others = calibrator.fit(transitions.take(~own), like.model, like.state_cov, seed=seed)
    except InputError as error:
        return LeftOut(environment, None, f"without it: {error}")
    return LeftOut(environment, Performance.of(*outcomes(others, transitions.take(own), alpha), others))


def outcomes(
    calibration: Calibration, transitions: Transitions, alpha: float | Fraction
) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Whether each transition's region holds what came, and the scale xi of the region."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # infinite regions are counted instead
        threshold = calibration.threshold(transitions.inputs, alpha)
    return calibration.score(transitions) <= threshold, threshold / calibration.chi2(alpha)


def _of_environments(environments: Mapping[str, int]) -> list[str]:
    found = []
    if len(environments) == 1:
        name = next(iter(environments))
        found.append(
            f"all transitions are of one environment, {name!r}: the promise holds for that place alone"
        )
    for name, count in environments.items():
        if count < HANDFUL:
            found.append(
                f"environment {name!r} has {count} transitions: fewer than {HANDFUL} hardly count, "
                "and say next to nothing when left out"
            )
    return found


def _of_cells(calibration: Calibration, thresholds: Floats, alpha: float | Fraction) -> list[str]:
    if calibration.scores is None:
        return []
    counts = calibration.scores.counts
    needed = math.ceil(1 / float(alpha)) - 1
    while conformal_rank(needed, alpha) > needed:
        needed += 1
    starved = counts < needed
    if not starved.any():
        return []
    unbounded = int(np.isinf(thresholds).sum())
    how = f"{unbounded} have regions without bounds" if unbounded else "they borrow their ancestors' points"
    return [
        f"{int(starved.sum())} of {len(counts)} cells have fewer than the {needed} points that "
        f"alpha = {float(alpha):g} needs; {how}"
    ]


def _of_selection(selection: Mapping[str, Any] | None) -> list[str]:
    if selection is None or selection["holds"]:
        return []
    wanted = 1 - selection["alpha"] - selection["tolerance"]
    return [
        f"no setting that was tried covers every environment left out to {wanted:.1%}: the one was chosen "
        "whose worst environment is covered best"
    ]


def _of_left_out(left_out: Sequence[LeftOut], alpha: float | Fraction) -> list[str]:
    found = []
    for left in left_out:
        tested, wanted = left.tested, 1 - float(alpha)
        if tested is not None and tested.transitions >= HANDFUL and tested.coverage < wanted - SHORT:
            found.append(
                f"environment {left.environment!r} is covered to {tested.coverage:.1%} when left out, and "
                f"{wanted:.1%} are wanted: it differs from the others in ways that this method does not see"
            )
    return found
