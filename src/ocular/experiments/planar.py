"""The planar world of the paper's section 5.1, as the experiments see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ocular.experiments.workshop import CalibrationSettings, Site
from ocular.planning.belief import BeliefMap
from ocular.records import FootprintGeometry
from ocular.worlds.map_file import load_map
from ocular.worlds.planar import PlanarWorld

MAPS = ("S", "L", "H", "U")


def _open(map_name: str, slip: float) -> PlanarWorld:
    return PlanarWorld(load_map(map_name), slip=slip)


def _belief(truth: PlanarWorld) -> BeliefMap:
    return BeliefMap(truth.map.grid.names)


PLANAR = Site("planar", MAPS, _open, FootprintGeometry(), _belief)


@dataclass(frozen=True, slots=True)
class PlanarSettings(CalibrationSettings):
    """Everything that the planar calibrations depend on; the defaults are the paper's."""

    site: ClassVar[Site] = PLANAR
