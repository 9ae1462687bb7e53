"""Ask a calibration on a robot: state, action and what is seen go in, region and verdict come out.

Everything that does not change from query to query is made once, when loading. What a query works in, the
encoder's memory and a small map of the footprint, belongs to the thread that asks, and is used again until
that thread ends. Queries write to nothing else, so threads need no lock.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.calibrators import Calibration, load
from ocular.conformal import Region
from ocular.deployment.workspace import Workspace
from ocular.encoding import ConvEncoder
from ocular.errors import InputError, check_shape, check_type
from ocular.footprint import Projector
from ocular.planning.ellipse import Obstacles
from ocular.planning.safety import is_clear
from ocular.records import OCCUPIED, UNKNOWN, Floats, Inputs, Labels

Images = tuple[npt.NDArray[Any], npt.NDArray[Any], Sequence[str]]
"""Depth [m], indices into class names, and these names: what a `Projector` takes."""

_ORIGIN = np.zeros(2)


class Verdict(Enum):
    """Whether the next position may touch a known obstacle."""

    CLEAR = "clear: no known obstacle in the region or on the way there"
    OBSTACLE = "not clear: the region, or the way there, meets a known obstacle"
    UNBOUNDED = "not clear: the region has no bounds, as too few logs are of such a situation"
    UNJUDGED = "not judged: no map was given, and this method knows no footprints"


@dataclass(frozen=True, slots=True)
class Ellipse:
    """The region's shadow on the ground; infinite semi-axes mean the whole plane."""

    centre: Floats  # (2,) [m]
    semi_axes: Floats  # (2,) [m], ascending
    angle: float  # of the longer axis, from x [rad]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a calibration says of one action."""

    region: Region  # mean (d,), cov (d, d), threshold (): holds the next state with probability 1 - alpha
    xi: float  # by how much the model's covariance is scaled
    verdict: Verdict

    @property
    def clear(self) -> bool:
        """Whether the verdict lets the action pass."""
        return self.verdict is Verdict.CLEAR

    @property
    def ellipse(self) -> Ellipse:
        """Where the robot will be, of a state that begins with x and y."""
        lengths, directions = self.region.marginal((0, 1)).semi_axes()
        return Ellipse(
            self.region.prediction.mean[:2], lengths, float(np.arctan2(directions[1, 1], directions[0, 1]))
        )


class Deployment:
    """A calibration at one alpha, ready for queries: any number of threads get the same answers, to the bit.

    Deployments may share a calibration and a projector, and be made by several threads at once. Obstacles
    that are given must hold still during a query: a `BeliefMap` is not for one thread to update while
    another asks about it.
    """

    def __init__(
        self,
        calibration: Calibration,
        alpha: float | Fraction = 0.1,
        projector: Projector | None = None,
    ) -> None:
        """`projector` makes footprints of images; without it, queries are given footprints."""
        check_type("calibration", calibration, Calibration)
        check_type("projector", projector, (Projector, NoneType))
        self.calibration, self.alpha, self.projector = calibration, alpha, projector
        self._of_cell = calibration.thresholds(alpha)
        self._chi2 = calibration.chi2(alpha)
        self._own = threading.local()
        if projector is not None and calibration.encoder is not None:
            _check_same_view(projector, calibration.encoder)
        self._prepare()

    @classmethod
    def load(
        cls, path: str | Path, *, alpha: float | Fraction = 0.1, projector: Projector | None = None
    ) -> Deployment:
        """From a file that `ocular calibrate` wrote."""
        return cls(load(path), alpha, projector)

    def query(
        self,
        state: Floats,
        action: Floats,
        seen: Labels | Images | None,
        heading: float,
        *,
        obstacles: Obstacles | None = None,
    ) -> Answer:
        """The calibrated region of the next state, and whether it is clear.

        `seen` is a footprint (angles, ranges) or images; None where the method looks at neither. Obstacles
        are those of the footprint, or of a map: `obstacles_of(belief)`.
        """
        model = self.calibration.model
        check_type("obstacles", obstacles, (Obstacles, NoneType))
        check_shape("state", state, (model.state_dim,))
        check_shape("action", action, (model.action_dim,))
        cells = self._project(seen) if isinstance(seen, tuple) else seen
        inputs = self.calibration.one_input(state, action, heading, cells)
        threshold = self.calibration.look_up(self._rows(inputs), self._of_cell)[0, ...]
        prediction = self.calibration.predict(inputs)
        one = replace(prediction, mean=prediction.mean[0], cov=_only(prediction.cov))
        region = Region(one, threshold)
        return Answer(region, float(threshold) / self._chi2, self._judge(inputs, region, obstacles))

    def encode(self, cells: Labels) -> Floats:
        """The latent (dim,) of one checked footprint."""
        encoder = self.calibration.encoder
        assert encoder is not None
        latent = np.empty(encoder.dim)
        encoder.encode_into(cells, self._workspace(encoder).scratch, latent)
        return latent

    def _project(self, images: Images) -> Labels:
        if self.projector is None:
            raise InputError("images are given; allowed are footprints, or images with a `projector`")
        if len(images) != 3:
            raise InputError(f"seen has {len(images)} entries; allowed are depth, semantics and class names")
        return self.projector(*images)

    def _rows(self, inputs: Inputs) -> Floats:
        """What the partition looks at, as `Calibration.process` has it."""
        calibration, columns = self.calibration, []
        if calibration.features is not None:
            columns.append(calibration.features(inputs))
        if calibration.encoder is not None:
            columns.append(self.encode(inputs.footprints.cells[0])[None])
        return np.concatenate(columns, axis=1) if columns else np.empty((1, 0))

    def _judge(self, inputs: Inputs, region: Region, obstacles: Obstacles | None) -> Verdict:
        encoder = self.calibration.encoder
        if obstacles is None and encoder is None:
            return Verdict.UNJUDGED
        threshold = float(region.threshold)
        if np.isinf(threshold):
            return Verdict.UNBOUNDED
        start, mean, cov = inputs.states[0, :2], region.prediction.mean[:2], region.prediction.cov[:2, :2]
        if obstacles is None and encoder is not None:
            # Into the frame of the robot, in which the footprint is.
            cosine, sine = np.cos(inputs.headings[0]), np.sin(inputs.headings[0])
            turn = np.array([[cosine, sine], [-sine, cosine]])
            start, mean, cov = _ORIGIN, turn @ (mean - start), turn @ cov @ turn.T
            workspace = self._workspace(encoder)
            obstacles = workspace.obstacles(inputs.footprints.cells[0], mean, cov, threshold)
        if obstacles is None or is_clear(start, mean, cov, threshold, obstacles):
            return Verdict.CLEAR
        return Verdict.OBSTACLE

    def _workspace(self, encoder: ConvEncoder) -> Workspace:
        workspace: Workspace | None = getattr(self._own, "workspace", None)
        if workspace is None:
            workspace = self._own.workspace = Workspace(encoder)
        return workspace

    def _prepare(self) -> None:
        """Ask and judge once, so that kernels are compiled and tables made before the robot moves."""
        model, encoder = self.calibration.model, self.calibration.encoder
        if self.projector is not None and self.projector.table.label_of:
            camera = self.projector.camera.intrinsics
            nothing = np.zeros((camera.height, camera.width), np.float32)
            self.projector(nothing, nothing.astype(np.uint8), list(self.projector.table.label_of)[:1])
        rest = np.zeros(model.state_dim), np.zeros(model.action_dim)
        if encoder is None:
            self.query(*rest, None, 0.0)
            return
        geometry = encoder.geometry
        cells = np.full((geometry.angles, geometry.ranges), encoder.labels.index(UNKNOWN), np.uint8)
        cells[:, -1] = encoder.labels.index(OCCUPIED)
        self.query(*rest, cells, 0.0)
        wide = geometry.max_range**2 * np.eye(2)
        obstacles = self._workspace(encoder).obstacles(cells, _ORIGIN, wide, 1.0)
        assert obstacles is not None
        is_clear(_ORIGIN, _ORIGIN, wide, 1e-12, obstacles)


def _only(cov: Floats) -> Floats:
    """The covariance of a batch of one."""
    return cov if cov.ndim == 2 else cov[0]


def _check_same_view(projector: Projector, encoder: ConvEncoder) -> None:
    """Raise when images would become footprints of another kind than those calibrated on."""
    for name, found, wanted in (
        ("labels", projector.table.labels, encoder.labels),
        ("geometry", projector.geometry, encoder.geometry),
    ):
        if found != wanted:
            raise InputError(f"the projector has the {name} {found}; allowed is {wanted}")
