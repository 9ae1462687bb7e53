"""What a partition must offer, and the simplest one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ocular.records import Floats, Indices


class Partition(Protocol):
    """A fixed rule that assigns every feature vector to one of finitely many cells."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""

    def apply(self, features: Floats) -> Indices:
        """Cell of each row."""


@dataclass(frozen=True, slots=True)
class WholeSpace:
    """One cell: local conformal prediction becomes split conformal prediction."""

    @property
    def n_cells(self) -> int:
        """One."""
        return 1

    def apply(self, features: Floats) -> Indices:
        """Zero for every row."""
        return np.zeros(len(features), dtype=np.int64)
