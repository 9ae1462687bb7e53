"""Imported by the process that victims are forked from, once: what each of them would begin with."""

import numpy as np

import ocular.encoding.training  # noqa: F401
from ocular.worlds.map_file import load_map
from ocular.worlds.planar import PlanarWorld

PlanarWorld(load_map("S")).observe(np.array([[1.0, 0.6]]), np.zeros(1))  # loads the compiled kernel
