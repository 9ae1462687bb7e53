"""A label for every square cell of some ground: the truth of a planar world, or a robot's map of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocular.errors import (
    LARGEST,
    InputError,
    check_array,
    check_choice,
    check_finite,
    check_number,
    check_type,
)
from ocular.records import Floats, Labels, check_labels

FINEST, COARSEST = 1e-9, 1e9  # [m]
MOST_CELLS = 2**31  # the scan numbers them by 32-bit integers


@dataclass(frozen=True, slots=True, eq=False)
class LabelGrid:
    """Labels of square cells; row 0 is the lowest y, column 0 the lowest x."""

    labels: Labels  # (rows, cols), indices into names
    names: tuple[str, ...]
    resolution: float  # side of a cell [m]
    origin: tuple[float, float]  # lower-left corner of the grid [m]
    outside: str  # the label of everywhere else

    def __post_init__(self) -> None:
        check_labels(self.names)
        check_array("grid labels", self.labels)
        check_number("grid resolution", self.resolution)
        check_type("grid origin", self.origin, (tuple, list))
        if len(self.origin) != 2:
            raise InputError(f"grid origin is {self.origin}; allowed are two numbers [m]")
        for value in self.origin:
            check_number("grid origin", value)
        check_choice("the label outside the grid", self.outside, self.names)
        if self.labels.dtype != np.uint8 or self.labels.ndim != 2 or not self.labels.size:
            raise InputError(
                f"grid labels are {self.labels.dtype} of shape {self.labels.shape}; "
                "allowed is uint8 of shape (rows, cols), at least 1 x 1"
            )
        if self.labels.size >= MOST_CELLS:
            raise InputError(
                f"a grid of {self.labels.shape} cells; allowed are fewer than {MOST_CELLS} in all: "
                "choose a coarser resolution"
            )
        highest = int(self.labels.max())
        if highest >= len(self.names):
            names = ", ".join(f"{i}={name}" for i, name in enumerate(self.names))
            raise InputError(f"grid cells hold the label {highest}; allowed are {names}")
        if not FINEST <= self.resolution <= COARSEST:
            raise InputError(f"grid resolution is {self.resolution} m; allowed is a positive number")
        check_finite("grid origin", np.asarray(self.origin), LARGEST)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the grid [m]."""
        rows, cols = self.labels.shape
        return cols * self.resolution, rows * self.resolution

    def index(self, name: str) -> int:
        """The number that stands for this label in the cells."""
        check_choice("label", name, self.names)
        return self.names.index(name)

    def at(self, points: Floats) -> Labels:
        """The label at each point (..., 2) [m]; a point on an edge belongs to the cell above or right."""
        check_array("points", points)
        if points.shape[-1:] != (2,):
            raise InputError(f"points have shape {points.shape}; allowed is (..., 2)")
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinitely far is outside
            cells = (points - np.asarray(self.origin)) * (1.0 / self.resolution)
        return self.at_cells(cells[..., 0], cells[..., 1])

    def at_cells(self, columns: Floats, rows: Floats) -> Labels:
        """The label at each point given in units of cells from the origin, fractions included."""
        height, width = self.labels.shape
        inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
        # Clear the points outside before the cast: a float too large for an integer has no defined one.
        column = np.where(inside, columns, 0).astype(np.intp)
        row = np.where(inside, rows, 0).astype(np.intp)
        return np.where(inside, self.labels[row, column], np.uint8(self.index(self.outside)))
