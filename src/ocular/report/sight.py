"""What a robot with a camera saw at one moment, as it is kept and shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ocular.records import Labels
from ocular.report.ground import label_colours

Picture = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Sight:
    """Three images of one size (height, width)."""

    rgb: Picture  # (height, width, 3); nobody but people looks at it
    depth: npt.NDArray[np.float16]  # [m]; infinite where nothing is within range
    labels: Labels  # what each pixel counts as, indices into names
    names: tuple[str, ...]

    def pictures(self, farthest: float) -> dict[str, Picture]:
        """All three to look at, by what they show; `farthest` [m] is the camera's range."""
        near = np.clip(1.0 - np.asarray(self.depth, np.float32) / farthest, 0.0, 1.0)
        grey = np.round(255 * near).astype(np.uint8)
        return {
            "its camera": self.rgb,
            f"depth, black at {farthest:g} m": np.repeat(grey[..., None], 3, axis=-1),
            "semantics": label_colours(self.names)[self.labels],
        }
