"""What every encoder offers: footprints in, a few numbers each out; and what one may be trained on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from ocular.records import Floats, FootprintGeometry, Footprints, Labels

T = TypeVar("T")


class Encoder(Protocol):
    """Maps each footprint to a latent vector; rows do not influence each other."""

    @property
    def dim(self) -> int:
        """Number of latent entries."""

    def encode(self, cells: Labels) -> Floats:
        """Latents (n, dim) of label images (n, angles, ranges)."""


class FootprintStream(ABC):
    """Footprints that come by in parts, as often as wanted: more than fit into memory."""

    def __init__(self, labels: tuple[str, ...], geometry: FootprintGeometry) -> None:
        self.labels, self.geometry = labels, geometry

    @abstractmethod
    def each(self, stage: Callable[[Labels], T], what: str) -> Iterator[T]:
        """What this stage makes of each part's cells (m, angles, ranges), in order.

        `what` names the work for whoever waits.
        """


Sights = Footprints | FootprintStream
