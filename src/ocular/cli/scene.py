"""`ocular scene`: write a road of the camera world as MJCF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class WriteScene:
    """Write one of the camera world's roads as MJCF: to look at in MuJoCo's viewer, or to change.

    The changed file is a map like any other: `ocular drive --world camera --map FILE`.
    """

    road: Annotated[str, tyro.conf.Positional]
    """icyMain, icyMiddle or icySide."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The file to write."""
    json: bool = False
    """Print what was written as JSON."""

    def run(self) -> None:
        """Write, and say how to look at it."""
        import json

        from ocular.sealed import atomic_write_bytes
        from ocular.worlds.junction import CAMERA, road, to_mjcf

        scene = road(self.road)
        atomic_write_bytes(self.output, to_mjcf(scene, CAMERA).encode())
        if self.json:
            print(json.dumps({"file": str(self.output), "solids": len(scene.solids)}))
        else:
            print(f"{self.output}: {len(scene.solids)} solids; python -m mujoco.viewer --mjcf={self.output}")
