"""Figures that have a limit of their own: rows of stress.csv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ocular.errors import InputError
from ocular.evaluation.rows import Provenance, RowFile
from ocular.experiments.jobs import gibibytes


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

    def __str__(self) -> str:
        verdict = "" if self.holds else "  NOT MET"
        return f"{self.name}: {self.got:.4g}, wanted {self.wanted} ({self.trials} trials){verdict}"

    @property
    def holds(self) -> bool:
        """Whether it is what it should be."""
        limit = float(self.wanted[2:])
        return self.got >= limit if self.wanted[0] == ">" else self.got <= limit

    def write(self, output: Path) -> None:
        """Into the rows, in the place of an older figure of this name."""
        RowFile(output / "stress.csv", ("name",), ("name", "wanted", "got", "trials")).add([asdict(self)])


def recorded(figures: Iterable[Limited], output: Path, *, workers: int) -> Iterator[Limited]:
    """The figures as they come, each written with what made it before it is given."""
    with Provenance(output / "stress.provenance.json", {}).start(workers=workers) as record:
        names = []
        for figure in figures:
            names.append(figure.name)
            record.record(names, gibibytes({}))
            figure.write(output)
            yield figure
