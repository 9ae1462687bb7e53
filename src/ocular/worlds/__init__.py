"""Where a robot can be without a robot: worlds with true dynamics, a sensor and a map.

`ocular.worlds.gym_env` registers them with gymnasium when it is imported.
"""

from ocular.worlds.collect import (
    CALIBRATION_GRID,
    TEST_GRID,
    GridSpec,
    collect_transitions,
    grid_cases,
    held_out_cases,
)
from ocular.worlds.map_file import PLANAR_LABELS, PlanarMap, load_map, packaged_maps
from ocular.worlds.planar import PlanarWorld, heading

__all__ = [
    "CALIBRATION_GRID",
    "PLANAR_LABELS",
    "TEST_GRID",
    "GridSpec",
    "PlanarMap",
    "PlanarWorld",
    "collect_transitions",
    "grid_cases",
    "heading",
    "held_out_cases",
    "load_map",
    "packaged_maps",
]
