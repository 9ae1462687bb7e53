"""What calibration makes of logs, part by part: each is loaded, worked on and dropped.

What stays in memory is a few numbers a transition. The stages run wherever joblib's configuration in force
says (`joblib.parallel_config`), one after the other in this process unless told; the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TypeVar

import joblib
import numpy as np

from ocular.calibrators.calibration import Calibration, latents
from ocular.calibrators.features import FeatureMap
from ocular.encoding import ConvEncoder, FootprintStream, Sights
from ocular.progress import progress
from ocular.records import Floats, FootprintGeometry, Footprints, Indices, Labels, LogPart, Logs, Transitions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Look:
    """A few numbers of each transition."""

    features: Floats  # (n, k)
    scores: Floats  # (n,)
    environment: Indices  # (n,) indices into the logs' environments


def score_logs(logs: Logs, blank: Calibration) -> Floats:
    """How wrong the model was about each transition (n,)."""
    return np.concatenate(list(_each(logs, repeat(blank.score), "scoring")))


def look_at_logs(logs: Logs, blank: Calibration, features: FeatureMap) -> Look:
    """All transitions, without what they saw."""
    look = partial(_look, blank=blank, features=features, environments=logs.environments)
    looks = list(_each(logs, repeat(look), "scoring"))
    return Look(
        np.concatenate([part.features for part in looks]),
        np.concatenate([part.scores for part in looks]),
        np.concatenate([part.environment for part in looks]),
    )


def encode_logs(logs: Logs, encoder: ConvEncoder) -> Floats:
    """What each transition saw, as its latent (n, dim)."""
    encode = partial(_encode, encoder=encoder)
    return np.concatenate(list(_each(logs, repeat(encode), "encoding")))


def footprints_of(logs: Logs, rows: Indices) -> Sights:
    """The footprints that these transitions (ascending) look at: in memory where all logs are one part."""
    first = logs.parts[0].load()
    if len(logs.parts) == 1:
        return Footprints(_seen_cells(first, rows), *_view(first))
    ends = np.cumsum([part.transitions for part in logs.parts])
    of_parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
    starts = ends - [part.transitions for part in logs.parts]
    own = [mine - start for mine, start in zip(of_parts, starts, strict=True)]
    return _StreamedFootprints(logs, own, *_view(first))


class _StreamedFootprints(FootprintStream):
    """The footprints that some rows of each part look at."""

    def __init__(
        self, logs: Logs, rows: Sequence[Indices], labels: tuple[str, ...], geometry: FootprintGeometry
    ) -> None:
        super().__init__(labels, geometry)
        self._logs, self._rows = logs, rows

    def each(self, stage: Callable[[Labels], T], what: str) -> Iterator[T]:
        return _each(self._logs, (partial(_on_cells, rows=rows, stage=stage) for rows in self._rows), what)


def _each(logs: Logs, stages: Iterable[Callable[[Transitions], T]], what: str) -> Iterator[T]:
    """What the stages make of the parts, in order; logs of one part never leave this process."""
    if len(logs.parts) == 1:
        yield next(iter(stages))(logs.parts[0].load())
        return
    calls = (joblib.delayed(_work)(part, stage) for part, stage in zip(logs.parts, stages, strict=False))
    with progress(what, len(logs.parts)) as advance:
        for result in joblib.Parallel(return_as="generator")(calls):
            advance("")
            yield result


def _work(part: LogPart, stage: Callable[[Transitions], T]) -> T:
    return stage(part.load())


def _look(
    transitions: Transitions, blank: Calibration, features: FeatureMap, environments: tuple[str, ...]
) -> Look:
    numbers = np.array([environments.index(name) for name in transitions.environments], np.int64)
    return Look(features(transitions.inputs), blank.score(transitions), numbers[transitions.environment])


def _encode(transitions: Transitions, encoder: ConvEncoder) -> Floats:
    return latents(transitions.inputs, encoder)


def _on_cells(transitions: Transitions, rows: Indices, stage: Callable[[Labels], T]) -> T:
    return stage(_seen_cells(transitions, rows))


def _seen_cells(transitions: Transitions, rows: Indices) -> Labels:
    """The footprints that these rows look at, each once."""
    inputs = transitions.inputs
    return inputs.footprints.cells[np.unique(inputs.footprint_index[rows])]


def _view(transitions: Transitions) -> tuple[tuple[str, ...], FootprintGeometry]:
    footprints = transitions.inputs.footprints
    return footprints.labels, footprints.geometry
