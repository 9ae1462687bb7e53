"""Calibrate on two maps, then ask on a third that no log is from: how wrong can the model be? Is it so?"""

import numpy as np

import ocular
from ocular.encoding import TrainingSettings
from ocular.encoding.training import train
from ocular.seeds import stream
from ocular.worlds.collect import GridSpec, collect_transitions, held_out_cases
from ocular.worlds.map_file import load_map
from ocular.worlds.planar import PlanarWorld

# Logs: states, actions, next states, headings and footprints. Here from a simulator; yours come from a robot.
grid = GridSpec(positions=16, velocities=6, actions=2)
worlds = {name: PlanarWorld(load_map(name)) for name in ("S", "L", "H")}
logs = ocular.concatenate([collect_transitions(worlds[m], grid, stream(0, m)) for m in ("S", "L")])

# Calibrate the model that the robot believes in. The short training is for this example's sake.
short = TrainingSettings(epochs=2, most_footprints=400)
calibrator = ocular.ocular(lambda footprints, seed: train(footprints, short, seed)[0])
model = ocular.double_integrator(dt=0.05, floor=1e-6)
calibration = calibrator.fit(logs, model, state_cov=2e-5 * np.eye(4), seed=0)
ocular.save(calibration, "robot.ocular")

# Ask on map H, on ice and off it.
cases, on_ice = held_out_cases(worlds["H"], GridSpec(positions=8, velocities=4, actions=2))
region = ocular.load("robot.ocular").region(cases, alpha=0.1)
inside = region.contains(worlds["H"].draw(stream(0, "test"), cases.states, cases.actions))
scale = calibration.scale(cases, 0.1)
for ground, here in {"good ground": ~on_ice, "ice": on_ice}.items():
    low, high = np.quantile(scale[here], [0.1, 0.9])
    print(f"{ground}: {100 * inside[here].mean():.1f} % inside, xi from {low:.1f} to {high:.1f}")
