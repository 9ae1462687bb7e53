"""The ray casting camera against MuJoCo's own renderer, pixel by pixel, where there is OpenGL."""

import os
import subprocess
import sys

import numpy as np
import pytest

PROBE = """
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
mujoco.Renderer(model, 8, 8).render()
"""


def has_egl() -> bool:
    """In a process of its own: MuJoCo chooses its way to OpenGL once, when it is imported."""
    environment = os.environ | {"MUJOCO_GL": "egl"}
    probe = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, check=False)
    return probe.returncode == 0


COMPARE = """
import numpy as np
from ocular.worlds.junction import open_junction
from ocular.worlds.junction.render import RenderedCamera

rng = np.random.default_rng(1)
for name in ("icyMain", "icyMiddle", "icySide"):
    world = open_junction(name)
    with RenderedCamera(world.scene, world.camera, world.geometry.max_range) as rendered:
        for _ in range(8):
            position = rng.uniform((0, 0), world.map.size)
            while not world.is_free(position):
                position = rng.uniform((0, 0), world.map.size)
            heading = rng.uniform(-np.pi, np.pi)
            ours, theirs = world.eye.take(position, heading), rendered.take(position, heading)
            same = ours.semantics == theirs.semantics
            both = np.isfinite(ours.depth) & np.isfinite(theirs.depth) & same
            error = np.abs(ours.depth[both] / theirs.depth[both] - 1)
            cells = [world.projector(i.depth, i.semantics, i.classes) for i in (ours, theirs)]
            print(same.mean(), np.quantile(error, 0.99), (cells[0] == cells[1]).mean())
"""


def test_ray_casting_agrees_with_mujoco_pixel_by_pixel():
    if not has_egl():
        pytest.skip("MuJoCo cannot render here: no EGL (on Debian: libegl1 and libgl1)")
    done = subprocess.run(
        [sys.executable, "-c", COMPARE],
        env=os.environ | {"MUJOCO_GL": "egl"},
        capture_output=True,
        text=True,
        check=True,
    )
    same, error, footprint = np.array([line.split() for line in done.stdout.splitlines()], float).T
    assert len(same) == 24
    assert same.min() > 0.99  # the rest are pixels that an edge runs through
    assert same.mean() > 0.997
    assert error.max() < 0.005
    assert footprint.min() > 0.97
