"""How jobs of experiments are run: in parallel, in a fixed order, with progress; and those all need."""

from __future__ import annotations

import resource
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import joblib

from ocular.experiments.workshop import Workshop
from ocular.progress import News, progress

TRAINED = ("ocular", "ocular_same_map")  # the slow ones: they train an encoder


def run(
    calls: Sequence[Any], names: Sequence[str], workers: int, what: str, news: News | None = None
) -> Iterator[Any]:
    """Results in the order of the calls, as they come, with a progress bar; `workers_at` says from where."""
    with progress(what, len(calls), news) as advance, warnings.catch_warnings():
        # loky replaces a worker that has grown; no job is lost, and where warnings are errors this one,
        # raised in loky's own thread, would leave us waiting for ever.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator")
        for name, result in zip(names, parallel(calls), strict=True):
            advance(name)
            yield result


def prepare(workshop: Workshop, maps: Sequence[str], methods: Sequence[str], workers: int) -> None:
    """Log the maps, then fit what is missing, the slow fits first."""
    fits = [(map_name, method) for method in methods for map_name in maps]
    fits.sort(key=lambda fit: fit[1] not in TRAINED)
    data_for = workshop.settings.data_for
    needed = sorted({name for map_name, method in fits for name in (map_name, *data_for(map_name, method))})
    with progress("logging transitions", len(needed)) as advance:
        for map_name in needed:
            workshop.collect(map_name)
            advance(map_name)
    calls = [joblib.delayed(_calibrate)(workshop, *fit) for fit in fits]
    names = [" ".join(fit) for fit in fits]
    for _ in run(calls, names, workers, "calibrating", lambda: "; ".join(_trainings(workshop, fits))):
        pass


def _trainings(workshop: Workshop, fits: Sequence[tuple[str, str]]) -> Iterator[str]:
    """How far the encoders are that workers train for fits under way, from their checkpoints."""
    epochs = workshop.settings.training.epochs
    for fit in fits:
        if fit[1] in TRAINED and not workshop.fitted(*fit) and (how := workshop.training(*fit)):
            yield f"{' '.join(fit)}: epoch {how['epochs']}/{epochs}, loss {how['held_out_loss']:.4f}"


def _calibrate(workshop: Workshop, map_name: str, method: str) -> None:
    workshop.calibration(map_name, method)


def gibibytes(peaks: Mapping[int, int]) -> float:
    """The most memory of these processes, by number, and of this one; an upper bound of their sum."""
    return (sum(peaks.values()) + own_peak_bytes()) / 2**30


def own_peak_bytes() -> int:
    """The most memory that this process ever had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
