"""LUCCa: cells in position, velocity and action; it needs data from the very map it is used on."""

from __future__ import annotations

from ocular.calibrators.base import LocalCalibrator
from ocular.partition import TreeSettings


def lucca(*, tree: TreeSettings = TreeSettings(), fallback: bool = False) -> LocalCalibrator:
    """X = (p, v, a) in the world frame."""
    return LocalCalibrator("lucca", "position", tree=tree, fallback=fallback)
