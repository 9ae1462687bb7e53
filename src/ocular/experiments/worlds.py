"""The paper's two worlds by name."""

from __future__ import annotations

from ocular.experiments.camera import CameraSettings
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.workshop import CalibrationSettings, Site
from ocular.worlds.planar import PlanarWorld

SETTINGS: dict[str, type[CalibrationSettings]] = {"planar": PlanarSettings, "camera": CameraSettings}


def open_map(world: str, map_name: str) -> tuple[Site, PlanarWorld]:
    """A world by its name, and one of its maps by name or path, with the paper's constants."""
    settings = SETTINGS[world]()
    return settings.site, settings.world(map_name)
