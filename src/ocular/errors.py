"""One base error, and the checks that raise it: every message shows the bad value and what is allowed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt


class OcularError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(OcularError, ValueError):
    """A value that the caller gave is outside what is allowed."""


class DamagedFileError(OcularError):
    """A file is cut short, altered, or of a newer format than this version reads."""


class CalibrationWarning(UserWarning):
    """The calibration is legal, but weaker than its user may think."""


def check_shape(name: str, array: npt.NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Raise unless `array` has this shape; None allows any length along that axis."""
    if array.shape == shape:  # by far the most frequent, and queries are counted in microseconds
        return
    fits = array.ndim == len(shape) and all(
        want is None or got == want for got, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
        raise InputError(f"{name} has shape {array.shape}; allowed is {wanted}")


def check_finite(name: str, array: npt.NDArray[Any]) -> None:
    """Raise, naming the first offender, when anything in `array` is NaN or infinite."""
    good = np.isfinite(array)
    if not good.all():
        where = tuple(int(i) for i in np.argwhere(~good)[0])
        raise InputError(
            f"{name} has {np.count_nonzero(~good)} values that are not finite, the first at index "
            f"{where}: {array[where]}; allowed are finite numbers"
        )


def check_choice(name: str, value: object, allowed: Collection[object]) -> None:
    """Raise unless `value` is one of the allowed ones, which the message lists."""
    if value not in list(allowed):  # a list also takes what cannot be hashed
        raise InputError(f"{name} is {value!r}; allowed are {', '.join(map(repr, allowed))}")


def check_whole(name: str, value: object, least: int = 0) -> None:
    """Raise unless `value` is a whole number of at least this; to Python, true is one and 3.0 equals one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}; allowed is a whole number of at least {least}")


def check_probability(name: str, value: float) -> None:
    """Raise unless 0 < value < 1 (NaN is refused too)."""
    if not 0 < value < 1:
        raise InputError(f"{name} is {value!r}; allowed is a number strictly between 0 and 1")


def check_covariance(name: str, cov: npt.NDArray[np.float64]) -> None:
    """Raise unless every matrix in `cov` is square, finite, symmetric and positive semidefinite."""
    if cov.ndim < 2 or cov.shape[-1] != cov.shape[-2]:
        raise InputError(f"{name} has shape {cov.shape}; allowed are square matrices (..., d, d)")
    check_finite(name, cov)
    scale = np.abs(cov).max(axis=(-1, -2), initial=0.0)
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
