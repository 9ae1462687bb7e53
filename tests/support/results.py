"""A made-up folder of results, small but whole, as `ocular reproduce` would leave it."""

from pathlib import Path

import numpy as np

from ocular.evaluation.coverage import CaseResults
from ocular.evaluation.episodes import EpisodeResult
from ocular.evaluation.recordings import TrajectoryFile, cases_path, write_cases
from ocular.evaluation.rows import Provenance, RowFile
from ocular.records import FootprintGeometry, Footprints, Inputs
from ocular.report.style import METHOD_LOOKS
from ocular.seeds import stream

METHODS = tuple(METHOD_LOOKS)
COVERAGE = ("world", "map", "method", "region", "coverage", "volume", "gap", "undercovered", "cases", "seed")
PLANNING = (
    *("world", "map", "method", "episode", "seed", "outcome", "steps", "subgoals"),
    *("step_ms_p50", "step_ms_p99", "id_steps", "id_left_region", "ood_steps", "ood_left_region"),
)
# Coverage ID, OOD and volume ID, OOD of each method: about as in the paper.
LIKE_THE_PAPER = {
    "nocp": (0.90, 0.064, 1.00, 0.02),
    "splitcp": (1.00, 0.68, 48.0, 0.81),
    "lucca": (0.905, 0.92, 1.04, 1.10),
    "ocular": (0.91, 0.91, 1.02, 1.06),
    "ocular_same_map": (0.91, 0.92, 1.05, 1.08),
    "ocular_no_encode": (1.00, 0.89, 58.0, 0.97),
}


def make_results(folder: Path, maps=("H", "U"), methods=METHODS, world="planar", episodes=2) -> Path:
    """Rows, trajectories, cases and provenance of one world; returns the folder."""
    home = folder / world
    rng = stream(0, "made-up results", world)
    coverage = RowFile(home / "coverage.csv", ("world", "map", "method", "region", "seed"), COVERAGE)
    coverage.add(
        {
            **{"world": world, "map": name, "method": method, "region": region, "seed": seed, "cases": 60},
            "coverage": LIKE_THE_PAPER[method][i] - 0.001 * seed,
            "volume": LIKE_THE_PAPER[method][2 + i],
            **{"gap": 0.02, "undercovered": 0.01},
        }
        for name in maps
        for method in methods
        for i, region in enumerate(("ID", "OOD"))
        for seed in (0, 1)
    )
    for name in maps:
        write_cases(cases_path(home, name, 0), *made_up_cases(rng, methods))
        for method in methods:
            for episode in range(episodes):
                drive = made_up_drive(rng, method)
                TrajectoryFile.under(home, name, method).add(episode, drive)
                rows = RowFile(home / "planning.csv", ("world", "map", "method", "episode"), PLANNING)
                rows.add([planning_row(world, name, method, episode, drive)])
    with Provenance(home / "coverage.provenance.json", {"particles": 10}).start(workers=1) as record:
        record.record(list(maps), 0.5)
    return folder


def planning_row(world: str, name: str, method: str, episode: int, drive: EpisodeResult) -> dict[str, object]:
    left = dict.fromkeys(("id_left_region", "ood_left_region"), 1)
    return {
        **{"world": world, "map": name, "method": method, "episode": episode, "seed": 7 + episode},
        **{"outcome": drive.outcome, "steps": drive.steps, "subgoals": drive.subgoals},
        **{"step_ms_p50": 5.5 + episode, "step_ms_p99": 30.5, "id_steps": 10, "ood_steps": 10, **left},
    }


def made_up_drive(rng: np.random.Generator, method: str, steps: int = 40) -> EpisodeResult:
    """Up the left side of the map; NoCP at a run into something."""
    speed = 1.4 if method == "nocp" else 0.5
    way = np.linspace(0.3, 0.3 + 0.05 * speed * steps, steps + 1)
    x = 0.5 + 0.02 * np.cumsum(rng.standard_normal(steps + 1)) / 6
    states = np.column_stack([x, way, np.zeros(steps + 1), np.full(steps + 1, speed)])
    nothing = np.zeros(steps)
    return EpisodeResult(
        outcome="collision" if method == "nocp" else "success",
        subgoals=1,
        states=states,
        headings=nothing,
        actions=np.zeros((steps, 2)),
        scales=np.full(steps, np.nan) if method == "nocp" else rng.choice([1.0, 1.4, 2.5], steps),
        step_ms=nothing,
        slippery=nothing.astype(bool),
        missed=nothing.astype(bool),
        all_collide=nothing.astype(bool),
    )


def made_up_cases(rng: np.random.Generator, methods, n: int = 60):
    """Inputs, whether each is OOD, and every method's results."""
    geometry = FootprintGeometry(angles=8, ranges=8)
    seen = Footprints(np.zeros((1, 8, 8), np.uint8), ("OCCUPIED", "UNKNOWN"), geometry)
    states = np.column_stack([rng.uniform(0.3, 3.9, (n, 2)), rng.choice([-1.8, -0.6, 0.6, 1.8], (n, 2))])
    inputs = Inputs(states, np.zeros((n, 2)), np.zeros(n), np.zeros(n, np.int64), seen)
    ood = np.arange(n) % 2 == 1
    results = {}
    for method in methods:
        mean = np.where(ood, *(LIKE_THE_PAPER[method][i] for i in (1, 0)))
        volume = np.where(ood, *(LIKE_THE_PAPER[method][i] for i in (3, 2)))
        results[method] = CaseResults(np.clip(mean + 0.02 * rng.standard_normal(n), 0, 1), volume)
    return inputs, ood, results
