"""What every encoder offers: footprints in, a few numbers each out."""

from __future__ import annotations

from typing import Protocol

from ocular.records import Floats, Labels


class Encoder(Protocol):
    """Maps each footprint to a latent vector; rows do not influence each other."""

    @property
    def dim(self) -> int:
        """Number of latent entries."""

    def encode(self, cells: Labels) -> Floats:
        """Latents (n, dim) of label images (n, angles, ranges)."""
