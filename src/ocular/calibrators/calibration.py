"""The result of calibrating: a model that knows, for every input, how far to trust itself."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import chdtri

from ocular.calibrators.features import FeatureMap
from ocular.calibrators.levels import Levels, raised
from ocular.conformal import CellScores, Lineage, Region, exact_fraction, squared_mahalanobis
from ocular.dynamics import GaussianModel
from ocular.encoding import ConvEncoder
from ocular.errors import CalibrationWarning, InputError, check_array, check_number, check_type, shown
from ocular.partition import Partition, TreePartition, WholeSpace
from ocular.records import (
    OCCUPIED,
    UNKNOWN,
    Floats,
    FootprintGeometry,
    Footprints,
    Gaussian,
    Indices,
    Inputs,
    Labels,
    Transitions,
    for_kernels,
)

_FIRST = np.zeros(1, np.int64)
_BLIND = Footprints(np.zeros((1, 1, 1), np.uint8), (OCCUPIED, UNKNOWN), FootprintGeometry(1, 1))


@dataclass(frozen=True)
class Calibration:
    """A model, the rule that sorts inputs into cells, and the scores seen in each cell.

    Without scores (NoCP) the model is taken at its word. Any alpha can be asked for: nothing is refitted.
    """

    method: str
    model: GaussianModel
    state_cov: Floats  # (d, d), covariance of the state estimate that predictions start from
    features: FeatureMap | None = None  # None: cells do not depend on velocity and action
    encoder: ConvEncoder | None = None  # None: cells do not depend on what is seen
    partition: Partition = field(default_factory=WholeSpace)
    scores: CellScores | None = None
    levels: Levels | None = None  # logged values between which thresholds are raised
    fallback: bool = False  # starved cells take their nearest sufficient ancestor's threshold
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def one_input(self, state: Floats, action: Floats, heading: float, cells: Labels | None) -> Inputs:
        """A single step's input; what was seen, (angles, ranges), is not looked at without an encoder."""
        seen = _BLIND
        if self.encoder is not None:
            if not isinstance(cells, np.ndarray):
                raise InputError(
                    f"seen is {shown(cells)}; allowed are a footprint or images, as {self.method} sees"
                )
            seen = Footprints(for_kernels(cells)[None], self.encoder.labels, self.encoder.geometry)
        check_array("state", state)
        check_array("action", action)
        check_number("heading", heading)
        return Inputs(
            np.asarray(state, np.float64)[None],
            np.asarray(action, np.float64)[None],
            np.array([heading], np.float64),
            _FIRST,
            seen,
        )

    def predict(self, inputs: Inputs) -> Gaussian:
        """The uncalibrated prediction of the next state, from the estimate N(s, Sigma_0)."""
        check_type("inputs", inputs, Inputs)
        return self.model.predict(Gaussian(inputs.states, self.state_cov), inputs.actions)

    def score(self, transitions: Transitions) -> Floats:
        """How wrong the model was about each transition: the squared Mahalanobis distance."""
        check_type("transitions", transitions, Transitions)
        return squared_mahalanobis(self.predict(transitions.inputs), transitions.next_states)

    def cells(self, inputs: Inputs) -> Indices:
        """Cell k of each input: PROCESS, then the partition (Sec. 4.3)."""
        return self.partition.apply(self.process(inputs))

    def threshold(self, inputs: Inputs, alpha: float | Fraction) -> Floats:
        """q_hat of each input: that of its cell, or more between logged values."""
        return self.look_up(self.process(inputs), self.thresholds(alpha))

    def look_up(self, rows: Floats, of_cell: Floats) -> Floats:
        """The same of processed rows, given what `thresholds` found once and for all."""
        if self.levels is None:
            return of_cell[self.partition.apply(rows)]
        below, above, share = self.levels.neighbours(rows)
        cells = self.partition.apply(np.concatenate([rows, below, above])).reshape(3, len(rows))
        return raised(of_cell[cells[0]], of_cell[cells[1]], of_cell[cells[2]], share)

    def process(self, inputs: Inputs) -> Floats:
        """What the partition looks at: features, then the latent of what is seen."""
        check_type("inputs", inputs, Inputs)
        return process(inputs, self.features, self.encoder)

    def thresholds(self, alpha: float | Fraction) -> Floats:
        """q_hat of each cell, on the squared distance; infinite where a cell has too few points."""
        if self.scores is None:
            return np.full(self.partition.n_cells, self.chi2(alpha))
        lineage = None
        if self.fallback and isinstance(self.partition, TreePartition):
            lineage = Lineage(self.partition.leaves(), self.partition.parents())
        return self.scores.thresholds(alpha, lineage)

    def scales(self, alpha: float | Fraction) -> Floats:
        """xi_k = q_hat_k / chi2 quantile: the factor on the covariance in each cell."""
        return self.thresholds(alpha) / self.chi2(alpha)

    def scale(self, inputs: Inputs, alpha: float | Fraction) -> Floats:
        """xi of each input."""
        return self.threshold(inputs, alpha) / self.chi2(alpha)

    def region(self, inputs: Inputs, alpha: float | Fraction) -> Region:
        """Where the next state lies with probability at least 1 - alpha, one ellipsoid an input (Eq. 2)."""
        return Region(self.predict(inputs), self.threshold(inputs, alpha))

    def chi2(self, alpha: float | Fraction) -> float:
        """The threshold of a model that is right: what xi is measured by."""
        return float(chdtri(self.model.state_dim, float(exact_fraction(alpha))))


def quiet_thresholds(calibration: Calibration, alpha: float | Fraction) -> Floats:
    """The thresholds without the warning of starved cells, for those who tell of them otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return calibration.thresholds(alpha)


def process(inputs: Inputs, features: FeatureMap | None, encoder: ConvEncoder | None) -> Floats:
    """PROCESS of the paper: drop the pose, keep velocity and action, encode each distinct footprint once."""
    columns = [np.empty((len(inputs), 0))]
    if features is not None:
        columns.append(features(inputs))
    if encoder is not None:
        columns.append(latents(inputs, encoder))
    return np.concatenate(columns, axis=1)


def latents(inputs: Inputs, encoder: ConvEncoder) -> Floats:
    """The latent of what each input looks at (n, dim); each distinct footprint is encoded once."""
    _check_same_view(inputs.footprints, encoder)
    seen, row = np.unique(inputs.footprint_index, return_inverse=True)
    return encoder.encode(inputs.footprints.cells[seen])[row]


def _check_same_view(footprints: Footprints, encoder: ConvEncoder) -> None:
    """Raise when the footprints have other labels, or another grid, than the encoder was trained on."""
    if footprints.labels != encoder.labels:
        raise InputError(f"footprints have the labels {footprints.labels}; allowed are {encoder.labels}")
    if footprints.geometry != encoder.geometry:
        raise InputError(f"footprints have the geometry {footprints.geometry}; allowed is {encoder.geometry}")
