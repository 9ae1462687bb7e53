"""A camera whose depth is rough and whose segmentation errs: what a real one is like."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ocular.errors import InputError
from ocular.records import Floats
from ocular.seeds import stream
from ocular.worlds.junction.raycast import Images, RayCamera


@dataclass(frozen=True, slots=True)
class CameraNoise:
    """How much, and of which draw."""

    depth: float  # standard deviation, relative to the depth
    flipped: float  # share of pixels that show another class, any one
    seed: int

    def __post_init__(self) -> None:
        if not (0 <= self.depth < 1 and 0 <= self.flipped <= 1):
            raise InputError(f"{self}; allowed are 0 <= depth < 1 and 0 <= flipped <= 1")


class NoisyCamera(RayCamera):
    """Every pixel errs on its own. The noise belongs to the pose: who looks twice sees the same."""

    def __init__(self, camera: RayCamera, noise: CameraNoise) -> None:
        super().__init__(camera.model, camera.camera, camera.max_range)
        self.noise = noise

    def take(self, position: Floats, heading: float) -> Images:
        """Depth and semantics from a robot at this position (2,) [m], both noisy."""
        images = super().take(position, heading)
        pose = np.array([*position, heading], np.float64).tobytes().hex()
        rng = stream(self.noise.seed, "camera", pose)
        roughness = 1 + self.noise.depth * rng.standard_normal(images.depth.shape, np.float32)
        flipped = rng.random(images.depth.shape, np.float32) < self.noise.flipped
        # A step of 1 to (classes - 1) round the circle of classes never ends where it began.
        steps = rng.integers(1, len(images.classes), np.count_nonzero(flipped), np.uint8)
        semantics = images.semantics.copy()
        semantics[flipped] = (semantics[flipped] + steps) % len(images.classes)
        return replace(images, depth=images.depth * roughness, semantics=semantics)
