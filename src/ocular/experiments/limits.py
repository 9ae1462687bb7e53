"""Figures that have a limit of their own: rows of stress.csv."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from ocular.errors import InputError
from ocular.evaluation.rows import RowFile


@dataclass(frozen=True, slots=True)
class Limited:
    """A figure, and what it should be."""

    name: str
    wanted: str  # ">=x" or "<=x"
    got: float
    trials: int

    def __post_init__(self) -> None:
        if self.wanted[:2] not in (">=", "<="):
            raise InputError(f"{self.name} wants {self.wanted!r}; allowed are '>=x' and '<=x'")

    @property
    def holds(self) -> bool:
        """Whether it is what it should be."""
        limit = float(self.wanted[2:])
        return self.got >= limit if self.wanted[0] == ">" else self.got <= limit

    def write(self, output: Path) -> None:
        """Into the rows, in the place of an older figure of this name."""
        RowFile(output / "stress.csv", ("name",), ("name", "wanted", "got", "trials")).add([asdict(self)])
