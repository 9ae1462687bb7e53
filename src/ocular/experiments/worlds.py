"""The paper's two worlds by name."""

from __future__ import annotations

from ocular.experiments.camera import CameraSettings
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.workshop import CalibrationSettings

SETTINGS: dict[str, type[CalibrationSettings]] = {"planar": PlanarSettings, "camera": CameraSettings}
