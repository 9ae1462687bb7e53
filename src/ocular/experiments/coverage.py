"""Tables 1, 3, 4 and 6 of the paper: coverage and volume of every method on every map of a world."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import joblib

from ocular.calibrators import METHODS
from ocular.encoding import TrainingSettings
from ocular.errors import InputError, check_choice
from ocular.evaluation.coverage import CaseResults, evaluate_coverage, summarise
from ocular.evaluation.recordings import cases_path, write_cases
from ocular.evaluation.rows import Provenance, Row, RowFile
from ocular.experiments.jobs import gibibytes, own_peak_bytes, prepare, run
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.workshop import CalibrationSettings, Workshop
from ocular.progress import progress
from ocular.records import Inputs
from ocular.seeds import stream
from ocular.worlds.collect import TEST_GRID, GridSpec, held_out_cases
from ocular.worlds.planar import Flags

VARIANTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    # name: (changed settings, methods)
    "main": ({}, tuple(METHODS)),
    "other_frame": ({"other_frame": True}, ("ocular", "ocular_same_map", "ocular_no_encode")),
    "noisy": ({"camera_noise": 0.05}, ("ocular", "ocular_same_map")),
}
REGIONS = {"ID": False, "OOD": True}
_COLUMNS = (
    *("world", "map", "method", "region", "coverage", "volume", "gap", "undercovered"),
    *("cases", "particles", "seed"),
)
_TRAINING_COLUMNS = (
    *("world", "map", "method", "seed"),
    *("epochs", "best_epoch", "held_out_loss", "held_out_accuracy", "seconds"),
)
_DATASET_COLUMNS = ("world", "map", "transitions", "footprints", "test_cases", "seed")


@dataclass(frozen=True, slots=True)
class CoverageSettings:
    """The paper's protocol."""

    calibration: CalibrationSettings = field(default_factory=PlanarSettings)
    test_grid: GridSpec = TEST_GRID
    particles: int = 10_000

    @classmethod
    def full(cls, seed: int, kind: type[CalibrationSettings] = PlanarSettings) -> CoverageSettings:
        """The paper's own numbers."""
        return cls(kind(seed=seed), kind.site.test_grid)

    @classmethod
    def quick(cls, seed: int, kind: type[CalibrationSettings] = PlanarSettings) -> CoverageSettings:
        """Minutes instead of half an hour: fewer particles and a shorter training, on the same grids."""
        training = replace(TrainingSettings(), epochs=QUICK_EPOCHS, most_footprints=QUICK_FOOTPRINTS)
        return cls(kind(training=training, seed=seed), kind.site.test_grid, particles=1_000)


QUICK_EPOCHS, QUICK_FOOTPRINTS = 4, 1_500


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a worker reports back."""

    rows: list[Row]
    dataset: Row
    cases: Inputs
    ood: Flags
    results: dict[str, CaseResults]
    pid: int
    peak_bytes: int


def reproduce_coverage(
    settings: CoverageSettings,
    variant: str,
    maps: Sequence[str],
    output: Path,
    work: Path,
    workers: int,
) -> list[Path]:
    """Make the rows that are missing, whatever was done before; returns the files that hold them."""
    check_choice("variant", variant, VARIANTS)
    changes, methods = VARIANTS[variant]
    unknown = sorted(changes.keys() - {setting.name for setting in fields(settings.calibration)})
    if unknown:
        raise InputError(
            f"the variant {variant!r} changes {', '.join(unknown)}; allowed is a world that has it, "
            f"not {settings.calibration.site.name}"
        )
    varied = replace(settings, calibration=replace(settings.calibration, **changes))
    site, seed = settings.calibration.site.name, settings.calibration.seed
    folder = output / site
    name = "coverage" if variant == "main" else f"coverage_{variant}"
    rows = RowFile(folder / f"{name}.csv", ("world", "map", "method", "region", "seed"), _COLUMNS)
    datasets = RowFile(folder / "datasets.csv", ("world", "map", "seed"), _DATASET_COLUMNS)
    provenance = Provenance(folder / f"{name}.provenance.json", _config(varied))
    provenance.check()
    missing = [m for m in maps if not _row_keys(site, m, methods, seed) <= rows.keys()]
    if missing:
        with provenance.start(workers=workers) as record:
            workshop = Workshop.under(work, varied.calibration)
            prepare(workshop, missing, methods, workers)
            calls = [joblib.delayed(_evaluate)(varied, m, methods, workshop) for m in missing]
            peaks: dict[int, int] = {}
            made: list[str] = []
            for outcome in run(calls, missing, workers, f"{name}: testing"):
                made.append(f"{outcome.dataset['map']} seed {seed}")
                peaks[outcome.pid] = max(outcome.peak_bytes, peaks.get(outcome.pid, 0))
                record.record(made, gibibytes(peaks))
                if variant == "main":
                    kept = cases_path(folder, outcome.dataset["map"], seed)
                    write_cases(kept, outcome.cases, outcome.ood, outcome.results)
                    datasets.add([outcome.dataset])
                rows.add(outcome.rows)
    if variant != "main":
        return [rows.path, provenance.path]
    trainings = RowFile(folder / "trainings.csv", ("world", "map", "method", "seed"), _TRAINING_COLUMNS)
    trainings.add(_trainings(Workshop.under(work, varied.calibration), maps, methods))
    return [rows.path, provenance.path, datasets.path, trainings.path]


def _trainings(workshop: Workshop, maps: Sequence[str], methods: Sequence[str]) -> list[Row]:
    """How well each encoder reconstructs what it was not trained on."""
    settings = workshop.settings
    return [
        {"world": settings.site.name, "map": map_name, "method": method, "seed": settings.seed, **how}
        for map_name in maps
        for method in methods
        if workshop.fitted(map_name, method)  # else the training may be under way
        and (how := workshop.training(map_name, method)) is not None
    ]


def _config(settings: CoverageSettings) -> dict[str, Any]:
    """What all rows of one file share; the seed is a column."""
    config = asdict(settings)
    calibration = config.pop("calibration")
    del calibration["seed"]
    return {settings.calibration.site.name: calibration, **config}


def _row_keys(site: str, map_name: str, methods: Sequence[str], seed: int) -> set[tuple[str, ...]]:
    return {(site, map_name, method, region, str(seed)) for method in methods for region in REGIONS}


def _evaluate(
    settings: CoverageSettings, map_name: str, methods: Sequence[str], workshop: Workshop
) -> Outcome:
    """All methods of one map on the same particles."""
    truth = settings.calibration.world(map_name)
    alpha, seed, site = settings.calibration.alpha, settings.calibration.seed, settings.calibration.site.name
    cases, ood = held_out_cases(truth, settings.test_grid)
    calibrations = {method: workshop.calibration(map_name, method) for method in methods}
    particles = stream(seed, site, map_name, "particles")
    with progress(f"testing on {map_name}", len(cases)) as advance:
        tested = 0

        def tell(done: int, _: int) -> None:
            nonlocal tested
            advance("", done - tested)
            tested = done

        results = evaluate_coverage(
            truth, cases, calibrations, alpha, settings.particles, particles, on_progress=tell
        )
    where = {"world": site, "map": map_name, "seed": seed}
    rows = [
        {
            **where,
            "method": method,
            "region": region,
            "particles": settings.particles,
            **asdict(summarise(results[method], ood == is_ood, alpha)),
        }
        for method in methods
        for region, is_ood in REGIONS.items()
    ]
    logged = workshop.transitions((map_name,))
    dataset = {
        **where,
        "transitions": len(logged),
        "footprints": len(logged.inputs.footprints),
        "test_cases": len(cases),
    }
    return Outcome(rows, dataset, cases, ood, results, os.getpid(), own_peak_bytes())
