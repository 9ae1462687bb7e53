"""Maps of planar worlds, as files that a user writes without code: rectangles, or an image and a legend."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from ocular.errors import DamagedFileError, InputError, check_path
from ocular.footprint.grid import LabelGrid
from ocular.records import OCCUPIED, UNKNOWN, Floats, Labels

NOMINAL = "NOMINAL"
LOW_FRICTION = "LOW_FRICTION"
PLANAR_LABELS = (OCCUPIED, UNKNOWN, NOMINAL, LOW_FRICTION)
FREE_LABELS = (NOMINAL, LOW_FRICTION)

PACKAGED = Path(__file__).parent / "maps"
DEFAULT_RESOLUTION = 0.005  # [m]; every edge of the paper's maps is a whole number of these
MOST_CELLS = 100_000_000
COMMON_KEYS = ("name", "resolution", "start", "subgoals")
RECTANGLE_KEYS = ("size", "free", "slippery")
IMAGE_KEYS = ("image", "legend")
IMAGE_FORMATS = ("PNG", "BMP", "GIF", "PPM", "TIFF")  # without loss; and to open others may start a program


@dataclass(frozen=True, slots=True, eq=False)
class PlanarMap:
    """Labels on the ground, and optionally a route through them."""

    name: str
    grid: LabelGrid
    start: tuple[float, float] | None  # [m]
    subgoals: tuple[tuple[float, float], ...]  # in the order of driving [m]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height [m]."""
        return self.grid.size


def packaged_maps() -> tuple[str, ...]:
    """Names of the maps that come with the package."""
    return tuple(sorted(path.stem for path in PACKAGED.glob("*.toml")))


def load_map(name_or_path: str | Path) -> PlanarMap:
    """A packaged map by its name, or any map file by its path."""
    check_path("the map", name_or_path)
    path = Path(name_or_path)
    if str(name_or_path) in packaged_maps():
        path = PACKAGED / f"{name_or_path}.toml"
    elif not path.is_file():
        raise InputError(
            f"there is no map {str(name_or_path)!r}; allowed are {', '.join(packaged_maps())} "
            "or the path of a map file (.toml)"
        )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; allowed is a readable file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path.name} is not a TOML file: {error}") from error
    return _MapFile(path, table).read()


@dataclass(frozen=True)
class _MapFile:
    """A parsed file; every complaint names it and the key."""

    path: Path
    table: dict[str, Any]

    def read(self) -> PlanarMap:
        has_image = "image" in self.table
        own_keys = IMAGE_KEYS if has_image else RECTANGLE_KEYS
        self.only_keys("", self.table, (*COMMON_KEYS, *own_keys))
        name = self.table.get("name", self.path.stem)
        if not isinstance(name, str) or not name:
            raise self.complaint("name", name, "a text of at least one letter")
        resolution = self.positive("resolution", self.table.get("resolution", DEFAULT_RESOLUTION))
        labels = self.labels_from_image() if has_image else self.labels_from_rectangles(resolution)
        grid = LabelGrid(labels, PLANAR_LABELS, resolution, (0.0, 0.0), outside=OCCUPIED)
        if not np.isin(labels, [PLANAR_LABELS.index(label) for label in FREE_LABELS]).any():
            raise InputError(
                f"{self.path.name} leaves no free space; allowed is a map with at least one free cell"
            )
        subgoals = self.table.get("subgoals", [])
        if not isinstance(subgoals, list):
            raise self.complaint("subgoals", subgoals, "a list of [x, y]")
        return PlanarMap(
            name=name,
            grid=grid,
            start=self.free_point("start", self.table["start"], grid) if "start" in self.table else None,
            subgoals=tuple(self.free_point(f"subgoals[{i}]", p, grid) for i, p in enumerate(subgoals)),
        )

    def labels_from_rectangles(self, resolution: float) -> Labels:
        """A cell has the label of its centre."""
        width, height = self.pair("size", self.required("size"))
        columns, rows = (
            self.cell_count(f"size[{axis}]", length, resolution)
            for axis, length in enumerate((width, height))
        )
        if columns * rows > MOST_CELLS:
            raise self.complaint("resolution", resolution, f"one that makes at most {MOST_CELLS:,} cells")
        x = (np.arange(columns, dtype=np.float64) + 0.5) * resolution
        y = (np.arange(rows, dtype=np.float64) + 0.5) * resolution
        free, slippery = (self.covered(key, x, y, (width, height)) for key in ("free", "slippery"))
        surface = np.where(slippery, PLANAR_LABELS.index(LOW_FRICTION), PLANAR_LABELS.index(NOMINAL))
        return np.where(free, surface, PLANAR_LABELS.index(OCCUPIED)).astype(np.uint8)

    def covered(self, key: str, x: Floats, y: Floats, size: tuple[float, float]) -> npt.NDArray[np.bool_]:
        """Which cells lie in any of the rectangles [[key]]."""
        rectangles = self.table.get(key, [])
        if not isinstance(rectangles, list) or not all(isinstance(r, dict) for r in rectangles):
            raise self.complaint(key, rectangles, f"tables [[{key}]] with x = [x0, x1] and y = [y0, y1]")
        cells = np.zeros((len(y), len(x)), np.bool_)
        for i, rectangle in enumerate(rectangles):
            where = f"{key}[{i}]"
            self.only_keys(where, rectangle, ("x", "y"))
            in_x, in_y = (
                self.within(f"{where}.{axis}", rectangle.get(axis), centres, length)
                for axis, centres, length in zip("xy", (x, y), size, strict=True)
            )
            cells |= in_y[:, None] & in_x
        return cells

    def within(self, key: str, value: object, centres: Floats, length: float) -> npt.NDArray[np.bool_]:
        low, high = self.pair(key, value)
        if not 0 <= low < high <= length:
            raise self.complaint(key, value, f"[low, high] with 0 <= low < high <= {length}, the map's size")
        covered = (centres >= low) & (centres < high)
        if not covered.any():
            raise self.complaint(
                key, value, "an interval that holds the centre of a cell: use a finer resolution"
            )
        return covered

    def labels_from_image(self) -> Labels:
        """One pixel is one cell; the image's last row is the lowest y."""
        image = self.required("image")
        if not isinstance(image, str):
            raise self.complaint("image", image, "the path of an image, from the folder of the map file")
        path = self.path.parent / image
        try:
            with Image.open(path, formats=IMAGE_FORMATS) as opened:
                if opened.width * opened.height > MOST_CELLS:
                    raise self.complaint("image", image, f"an image of at most {MOST_CELLS:,} pixels")
                pixels = np.asarray(opened.convert("RGBA"))
        except FileNotFoundError as error:
            raise self.complaint("image", image, f"an existing file; there is none at {path}") from error
        except InputError:
            raise
        except Exception as error:  # each codec has errors of its own
            raise DamagedFileError(
                f"{path.name}, the image of {self.path.name}, is not readable: {error}"
            ) from error
        label_of = self.legend()
        colours, cells = np.unique(pixels.reshape(-1, 4), axis=0, return_inverse=True)
        cells = cells.reshape(pixels.shape[:2])
        names = [_colour_name(colour) for colour in colours]
        for i, colour in enumerate(names):
            if colour not in label_of:
                row, column = (int(k) for k in np.argwhere(cells == i)[0])
                raise InputError(
                    f"{path.name} has the colour {colour} at column {column}, row {row} from its top; "
                    f"allowed are the colours in the legend of {self.path.name}: "
                    + ", ".join(f"{known} = {label}" for known, label in label_of.items())
                )
        numbers = np.array([PLANAR_LABELS.index(label_of[colour]) for colour in names], np.uint8)
        return np.ascontiguousarray(numbers[cells][::-1])

    def legend(self) -> dict[str, str]:
        legend = self.required("legend")
        if not isinstance(legend, dict) or not legend:
            raise self.complaint(
                "legend", legend, 'a table [legend] with lines such as "#ffffff" = "NOMINAL"'
            )
        for colour, label in legend.items():
            digits = colour.removeprefix("#")
            if len(colour) != 7 or len(digits) != 6 or set(digits.lower()) - set("0123456789abcdef"):
                raise self.complaint("legend", colour, 'colours such as "#ff8000"')
            if label not in PLANAR_LABELS:
                raise self.complaint(f"legend.{colour}", label, ", ".join(PLANAR_LABELS))
        return {colour.lower(): label for colour, label in legend.items()}

    def cell_count(self, key: str, length: float, resolution: float) -> int:
        self.positive(key, length)
        count = round(min(length / resolution, 1.0 + MOST_CELLS))
        if count < 1 or abs(count * resolution - length) > 1e-6 * resolution:
            raise self.complaint(key, length, f"a whole number of cells of {resolution} m")
        return count

    def free_point(self, key: str, value: object, grid: LabelGrid) -> tuple[float, float]:
        point = self.pair(key, value)
        label = grid.names[int(grid.at(np.array(point)))]
        if label not in FREE_LABELS:
            raise self.complaint(key, value, f"a free point, but this one is {label}")
        return point

    def pair(self, key: str, value: object) -> tuple[float, float]:
        if not isinstance(value, list) or len(value) != 2:
            raise self.complaint(key, value, "two numbers, [a, b]")
        first, second = (self.number(f"{key}[{i}]", entry) for i, entry in enumerate(value))
        return first, second

    def number(self, key: str, value: object) -> float:
        # To Python, true is a number; to somebody who writes a map, it is a slip of the pen. And whole
        # numbers may be too large to be floats.
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= sys.float_info.max
        ):
            raise self.complaint(key, value, "a finite number [m]")
        return float(value)

    def positive(self, key: str, value: object) -> float:
        number = self.number(key, value)
        if number <= 0:
            raise self.complaint(key, value, "a positive number [m]")
        return number

    def required(self, key: str) -> object:
        if key not in self.table:
            raise InputError(
                f"{self.path.name} has no {key!r}, which it needs; its keys are {', '.join(self.table)}"
            )
        return self.table[key]

    def only_keys(self, where: str, table: dict[str, Any], allowed: Collection[str]) -> None:
        for key in table:
            if key not in allowed:
                place = f"{where}.{key}" if where else key
                raise InputError(f"{self.path.name} has the key {place!r}; allowed are {', '.join(allowed)}")

    def complaint(self, key: str, value: object, allowed: str) -> InputError:
        return InputError(f"{self.path.name}: {key} is {value!r}; allowed is {allowed}")


def _colour_name(rgba: npt.NDArray[np.uint8]) -> str:
    """#rrggbb, and #rrggbbaa when not opaque (no legend has such a colour)."""
    red, green, blue, alpha = (int(v) for v in rgba)
    return f"#{red:02x}{green:02x}{blue:02x}" + (f"{alpha:02x}" if alpha != 255 else "")
