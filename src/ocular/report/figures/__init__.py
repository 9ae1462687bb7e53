"""Figures, one family a file: each is made of rows alone, for the page and for print."""

from ocular.report.figures import cases, drives, leaves, point, timing, volume
from ocular.report.figures.base import Figure, Panel

FAMILIES = (volume.figure, cases.figure, leaves.figure, timing.figure)  # in the order of the page
PRINTS = {
    "the-point": point.printed,
    "coverage-against-volume": volume.printed,
    "coverage-of-single-cases": cases.printed,
    "drives": drives.printed,
    "scale-against-speed": leaves.printed,
    "step-times": timing.printed,
}

__all__ = ["FAMILIES", "PRINTS", "Figure", "Panel"]
