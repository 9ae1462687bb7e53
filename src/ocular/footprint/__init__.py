"""What the robot sees: a robot-frame polar image of semantic labels."""

from ocular.footprint.grid import LabelGrid
from ocular.footprint.scan import scan
from ocular.footprint.scan_reference import scan_reference

__all__ = ["LabelGrid", "scan", "scan_reference"]
