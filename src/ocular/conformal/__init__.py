"""Scores, exact quantiles and per-cell thresholds. Arrays only: this room knows no image and no model."""

from ocular.conformal.cells import CellScores, Lineage
from ocular.conformal.quantile import conformal_quantile, conformal_rank, exact_fraction
from ocular.conformal.score import Region, squared_mahalanobis

__all__ = [
    "CellScores",
    "Lineage",
    "Region",
    "conformal_quantile",
    "conformal_rank",
    "exact_fraction",
    "squared_mahalanobis",
]
