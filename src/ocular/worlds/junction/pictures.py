"""What a robot saw at one moment, as images that any viewer shows and that lose nothing."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
from PIL import Image

from ocular.errors import InputError
from ocular.records import Labels
from ocular.worlds.junction.raycast import SKY, Images
from ocular.worlds.junction.scene import COLOURS, OTHER_COLOUR

LABEL_COLOURS = {
    "OCCUPIED": (0.20, 0.20, 0.20),
    "UNKNOWN": (0.75, 0.75, 0.75),
    "NOMINAL": (0.45, 0.62, 0.45),
    "LOW_FRICTION": (0.65, 0.86, 1.0),
}
MILLIMETRES = 1000.0


def rgb_png(pixels: Labels) -> bytes:
    """Colours (height, width, 3)."""
    return _bytes(Image.fromarray(pixels))


def depth_png(depth: npt.NDArray[np.float32]) -> bytes:
    """Depth in whole millimetres, 16 bits; 0 where nothing was met."""
    known = np.isfinite(depth)
    millimetres = np.round(MILLIMETRES * np.where(known, depth, 0.0))
    if millimetres.max(initial=0) > np.iinfo(np.uint16).max:
        raise InputError(f"depth reaches {millimetres.max() / MILLIMETRES} m; allowed is at most 65.535 m")
    return _bytes(Image.fromarray(millimetres.astype(np.uint16)))


def semantics_png(images: Images) -> bytes:
    """Indices into the classes, with their colours as the palette."""
    colours = [(0.68, 0.80, 0.92) if c == SKY else COLOURS.get(c, OTHER_COLOUR) for c in images.classes]
    return _indexed(images.semantics, colours)


def labels_png(cells: Labels, names: tuple[str, ...]) -> bytes:
    """Labels of a footprint or a map, with their colours as the palette."""
    return _indexed(cells, [LABEL_COLOURS.get(name, OTHER_COLOUR) for name in names])


def _indexed(numbers: Labels, colours: list[tuple[float, float, float]]) -> bytes:
    image = Image.fromarray(np.ascontiguousarray(numbers), mode="P")
    image.putpalette((255 * np.array(colours)).round().astype(np.uint8).tobytes())
    return _bytes(image)


def _bytes(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
