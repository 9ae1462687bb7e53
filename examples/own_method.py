"""A method of one's own: registered, then tested beside NoCP and SplitCP on the same particles."""

from ocular import METHODS
from ocular.calibrators import LocalCalibrator, Method
from ocular.evaluation.coverage import evaluate_coverage, summarise
from ocular.partition import TreeSettings
from ocular.seeds import stream
from ocular.worlds.collect import GridSpec, collect_transitions, held_out_cases
from ocular.worlds.map_file import load_map
from ocular.worlds.planar import PlanarWorld

# Cells in speed and body-frame acceleration, and nothing of what is seen; at least 400 scores in each.
METHODS["speed_only"] = Method(
    lambda encoder: LocalCalibrator("speed_only", "body", tree=TreeSettings(min_leaf=400)),
    needs_test_map=True,
)

world = PlanarWorld(load_map("H"))
logs = collect_transitions(world, GridSpec(positions=16, velocities=6, actions=2), stream(0, "logs"))


def no_encoder(footprints, seed):
    """None of the three needs one."""
    raise NotImplementedError


calibrations = {
    name: METHODS[name].make(no_encoder).fit(logs, world.nominal, world.state_cov, seed=0)
    for name in ("nocp", "splitcp", "speed_only")
}
cases, on_ice = held_out_cases(world, GridSpec(positions=8, velocities=4, actions=2))
results = evaluate_coverage(world, cases, calibrations, 0.1, particles=200, rng=stream(0, "particles"))
for name, result in results.items():
    for ground, here in {"good ground": ~on_ice, "ice": on_ice}.items():
        found = summarise(result, here, 0.1)
        print(f"{name}, {ground}: coverage {100 * found.coverage:.1f} %, volume {found.volume:.2f}")
