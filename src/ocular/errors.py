"""One base error, and the checks that raise it: every message shows the bad value and what is allowed."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Hashable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

LARGEST = 1e30  # of any quantity: what is made of a few of them is finite still
_WORDS = {
    "fiu": "float64, float32 or integers",
    "f": "float64 or float32",
    "iu": "integers",
    "u": "unsigned integers",
}


class OcularError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(OcularError, ValueError):
    """A value that the caller gave is outside what is allowed."""


class DamagedFileError(OcularError):
    """A file is cut short, altered, or of a newer format than this version reads."""


class CalibrationWarning(UserWarning):
    """The calibration is legal, but weaker than its user may think."""


def check_number(name: str, value: object) -> None:
    """Raise unless it is a number that a float can hold, be it NaN or infinite: limits are the caller's."""
    if isinstance(value, float):
        return
    if isinstance(value, int | np.integer | np.floating) and not isinstance(value, bool):
        with suppress(OverflowError):
            float(value)
            return
    raise InputError(f"{name} is {shown(value)}; allowed is a number")


def check_whole(name: str, value: object, least: int = -(2**63), most: int = 2**63 - 1) -> None:
    """Raise unless it is a whole number within these limits; to Python, true is one and 3.0 equals one."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= most:
        wanted = f"of at least {least}" if most == 2**63 - 1 else f"from {least} to {most}"
        raise InputError(f"{name} is {shown(value)}; allowed is a whole number {wanted}")


def check_path(name: str, value: object) -> None:
    """Raise unless it can be a path."""
    if not isinstance(value, str | Path) or "\0" in str(value):
        raise InputError(f"{name} is {shown(value)}; allowed is a path")


def check_names(name: str, value: object) -> None:
    """Raise unless it is a tuple or list of texts."""
    if not isinstance(value, tuple | list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{name} are {shown(value)}; allowed is a tuple of names")


def check_type(name: str, value: object, kind: type | tuple[type, ...]) -> None:
    """Raise unless it is one of these."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise InputError(f"{name} is {shown(value)}; allowed is a {' or a '.join(k.__name__ for k in kinds)}")


def check_array(name: str, value: object, kinds: str = "fiu") -> None:
    """Raise unless it is an array of numbers (f: floating-point, i: integer, u: unsigned) for kernels."""
    if (
        not isinstance(value, np.ndarray)
        or (dtype := value.dtype).kind not in kinds
        or not (4 if dtype.kind == "f" else 1) <= dtype.itemsize <= 8  # no half or extended precision
        or not dtype.isnative
        or isinstance(value, np.ma.MaskedArray)
    ):
        raise InputError(f"{name} is {shown(value)}; allowed is an array of {_WORDS[kinds]}")


def shown(value: object) -> str:
    """A value and its type, short enough for a message."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return "None" if value is None else f"{reprlib.repr(value)} ({type(value).__name__})"


def check_shape(name: str, array: npt.NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Raise unless it is an array of this shape; None allows any length along that axis."""
    if not isinstance(array, np.ndarray):
        raise InputError(f"{name} is {shown(array)}; allowed is an array")
    if array.shape == shape:  # by far the most frequent, and queries are counted in microseconds
        return
    fits = array.ndim == len(shape) and all(
        want is None or got == want for got, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
        raise InputError(f"{name} has shape {array.shape}; allowed is {wanted}")


def check_finite(name: str, array: npt.NDArray[Any], most: float = np.inf) -> None:
    """Raise, naming the first offender, when anything in `array` is NaN, infinite, too large or no number."""
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} is {shown(array)}; allowed are finite numbers")
    good = np.isfinite(array) if most == np.inf else np.abs(array) <= most
    if not good.all():
        where = tuple(int(i) for i in np.argwhere(~good)[0])
        raise InputError(
            f"{name} has {np.count_nonzero(~good)} values that are not finite{_or_beyond(most)}, the first "
            f"at index {where}: {array[where]}; allowed are finite numbers"
        )


def _or_beyond(most: float) -> str:
    return "" if most == np.inf else f" or beyond {most:g}"


def check_choice(name: str, value: object, allowed: Collection[object]) -> None:
    """Raise unless `value` is one of the allowed ones, which the message lists."""
    if not isinstance(value, Hashable) or value not in allowed:
        raise InputError(f"{name} is {value!r}; allowed are {', '.join(map(repr, allowed))}")


def check_probability(name: str, value: float | Fraction) -> None:
    """Raise unless 0 < value < 1 (NaN is refused too)."""
    if not isinstance(value, Fraction):
        check_number(name, value)
    if not 0 < value < 1:
        raise InputError(f"{name} is {value!r}; allowed is a number strictly between 0 and 1")


def check_covariance(name: str, cov: npt.NDArray[np.float64], most: float = LARGEST**2) -> None:
    """Raise unless every matrix in `cov` is square, finite, symmetric and positive semidefinite."""
    check_array(name, cov)
    if cov.ndim < 2 or cov.shape[-1] != cov.shape[-2]:
        raise InputError(f"{name} has shape {cov.shape}; allowed are square matrices (..., d, d)")
    check_finite(name, cov)
    scale = np.abs(cov).max(axis=(-1, -2), initial=0.0)
    if float(np.max(scale, initial=0.0)) > most:
        raise InputError(f"{name} has entries up to {scale.max():.3g}; allowed are {most:g} at most")
    asymmetry = np.abs(cov - np.swapaxes(cov, -1, -2)).max(axis=(-1, -2), initial=0.0)
    if (asymmetry > 1e-9 * scale).any():
        raise InputError(
            f"{name} is not symmetric: entries differ from their mirror by up to {asymmetry.max():.3g}; "
            "allowed is a symmetric matrix"
        )
    lowest = np.linalg.eigvalsh(cov)[..., 0]
    if (lowest < -1e-9 * scale).any():
        raise InputError(
            f"{name} is not positive semidefinite: its lowest eigenvalue is {lowest.min():.3g}; "
            "allowed are eigenvalues of at least 0"
        )
