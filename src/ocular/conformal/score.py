"""The nonconformity score, squared Mahalanobis distance, and its inverse, an ellipsoid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from ocular.errors import InputError, check_array, check_covariance, check_finite, check_type
from ocular.records import Floats, Gaussian


def squared_mahalanobis(prediction: Gaussian, outcomes: Floats) -> Floats:
    """r(N(mu, Sigma), y) = (y - mu)^T Sigma^+ (y - mu): squared, so that a ratio of scores scales Sigma.

    Sigma may be singular. A deviation along a direction in which it has no variance is impossible under
    the model, so its score is infinite; deviations there below 1e-7 of the largest standard deviation
    count as rounding. Differences between angles are taken the shorter way round.
    """
    check_type("prediction", prediction, Gaussian)
    check_array("outcomes", outcomes)
    check_finite("outcomes", outcomes)
    check_finite("the predicted mean", prediction.mean)
    check_covariance("the predicted covariance", prediction.cov, most=np.inf)
    variances, directions, degenerate = _principal_axes(prediction.cov)
    safe = np.where(degenerate, 1.0, variances)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the largest number, infinity is right
        deviation = np.einsum("...i,...ij->...j", prediction.deviation(outcomes), directions)
        scores = ((np.where(degenerate, 0.0, deviation) / np.sqrt(safe)) ** 2).sum(axis=-1)
    tolerance = 1e-7 * np.sqrt(variances[..., -1:])
    impossible = (degenerate & (np.abs(deviation) > tolerance)) | ~np.isfinite(deviation)
    return np.where(impossible.any(axis=-1), np.inf, scores)


def _principal_axes(cov: Floats) -> tuple[Floats, Floats, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    """Variances (ascending), directions in columns, and which variances are zero up to rounding."""
    variances, directions = np.linalg.eigh(cov)
    variances = np.clip(variances, 0.0, None)
    limit = variances.shape[-1] * np.finfo(np.float64).eps * variances[..., -1:]
    return variances, directions, variances <= limit


@dataclass(frozen=True, slots=True)
class Region:
    """{y : score(y) <= threshold}: the inverse of the score, one ellipsoid a row (Eq. 2).

    An infinite threshold means the whole space.
    """

    prediction: Gaussian
    threshold: Floats  # (...,), on the squared distance

    def __post_init__(self) -> None:
        check_type("prediction", self.prediction, Gaussian)
        check_array("threshold", self.threshold)
        batch = self.prediction.mean.shape[:-1]
        if self.threshold.shape not in ((), batch):
            raise InputError(f"threshold has shape {self.threshold.shape}; allowed are () and {batch}")
        if not (self.threshold >= 0).all():  # NaN fails this too
            raise InputError(f"thresholds run down to {np.min(self.threshold)}; allowed is 0 to infinity")

    def contains(self, outcomes: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether each outcome lies in its region; the boundary belongs to it."""
        return squared_mahalanobis(self.prediction, outcomes) <= self.threshold

    def semi_axes(self) -> tuple[Floats, Floats]:
        """Lengths (..., d), ascending, and unit directions in the columns of (..., d, d)."""
        check_covariance("the predicted covariance", self.prediction.cov, most=np.inf)
        variances, directions, degenerate = _principal_axes(self.prediction.cov)
        variances = np.where(degenerate, 0.0, variances)
        unbounded = np.isinf(self.threshold)[..., None]
        # Of the product, the root could overflow or vanish.
        bounded = np.sqrt(np.where(unbounded, 0.0, self.threshold[..., None])) * np.sqrt(variances)
        return np.where(unbounded, np.inf, bounded), directions

    def volume(self) -> Floats:
        """Volume of the d-ball, scaled by the semi-axes; 0 where the covariance is singular."""
        lengths, _ = self.semi_axes()
        d = lengths.shape[-1]
        ball = np.exp(d / 2 * np.log(np.pi) - gammaln(d / 2 + 1))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            volume = ball * lengths.prod(axis=-1)
        return np.asarray(np.where((lengths == 0).any(axis=-1), 0.0, volume))

    def marginal(self, dims: Sequence[int] = (0, 1)) -> Region:
        """The shadow on these state entries: if y is inside, its entries are inside the shadow.

        The threshold stays that of the full state, so the shadow on the position keeps the promise.
        """
        check_type("dims", dims, (tuple, list))
        d = self.prediction.mean.shape[-1]
        if not dims or not all(isinstance(entry, int) and 0 <= entry < d for entry in dims):
            raise InputError(f"dims are {dims}; allowed are entries 0 to {d - 1}, at least one")
        picked = np.asarray(dims)
        cov = self.prediction.cov[..., picked[:, None], picked]
        angles = tuple(new for new, old in enumerate(dims) if old in self.prediction.angles)
        return Region(Gaussian(self.prediction.mean[..., picked], cov, angles), self.threshold)
