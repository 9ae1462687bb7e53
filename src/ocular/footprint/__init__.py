"""What the robot sees: a robot-frame polar image of semantic labels."""

from ocular.footprint.camera import Camera, Intrinsics, Projector
from ocular.footprint.camera_reference import project_reference
from ocular.footprint.classes import ClassTable, load_classes
from ocular.footprint.grid import LabelGrid
from ocular.footprint.scan import scan
from ocular.footprint.scan_reference import scan_reference
from ocular.footprint.uniform import uniform_footprints

__all__ = [
    "Camera",
    "ClassTable",
    "Intrinsics",
    "LabelGrid",
    "Projector",
    "load_classes",
    "project_reference",
    "scan",
    "scan_reference",
    "uniform_footprints",
]
