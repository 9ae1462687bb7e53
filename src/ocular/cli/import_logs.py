"""`ocular import`: logs of a real or simulated robot into a transition store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, make_dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from ocular.data import TransitionStore
from ocular.data.importers import (
    IMPORTERS,
    Importer,
    Result,
    Target,
    check_environment,
    import_recordings,
    list_topics,
)
from ocular.errors import InputError
from ocular.footprint import load_classes
from ocular.records import FootprintGeometry


@dataclass(frozen=True, kw_only=True)
class Into:
    """What all formats have in common: where to, and which labels and footprints."""

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Recordings of one environment, each a file or folder."""
    store: Path
    """Directory of the transition store; it is made if it is not there."""
    environment: str
    """Name of the place that the logs are from."""
    classes: Path | None = None
    """Class table, a TOML file with lines such as `kerb = "OCCUPIED"`; images need one."""
    unknown_class: Literal["error", "unknown"] = "error"
    """What becomes of a class that the table lacks."""
    labels: tuple[str, ...] = ()
    """All labels; unless told, those of the store, or of the class table."""
    max_range: float | None = None
    """How far footprints reach [m]; a new store needs it."""
    field_of_view: float | None = None
    """How wide footprints are, centred on the heading [deg]; a new store needs it."""
    angles: int | None = None
    """Cells of a footprint across; 120 in a new store, unless told."""
    ranges: int | None = None
    """Cells of a footprint along a ray; 64 in a new store, unless told."""
    flatness: float = 0.25
    """A ground pixel counts if its depth is that of flat ground, to this share of it."""
    json: bool = False
    """Print the account as JSON."""

    source: Importer

    def run(self) -> None:
        """Plan, import, and say what was used and what was not."""
        if not self.paths:
            raise InputError("no recording is named; allowed is at least one file or folder")
        check_environment(self.environment)
        target = self._target()
        recordings = [self.source.plan(path, target) for path in self.paths]
        results = import_recordings(self.store, target, recordings)
        print(as_json(self.store, results) if self.json else as_text(self.store, self.environment, results))

    def _target(self) -> Target:
        shared = TransitionStore.open(self.store).shared if self.store.exists() else None
        labels = self.labels or (shared.labels if shared else None)
        table = load_classes(self.classes, labels, self.unknown_class) if self.classes else None
        labels = table.labels if table else labels
        if labels is None:
            raise InputError("neither labels nor a class table are given; a new store needs one of them")
        geometry = self._geometry(shared.geometry if shared else None)
        return Target(self.environment, labels, geometry, table, self.flatness)

    def _geometry(self, known: FootprintGeometry | None) -> FootprintGeometry:
        view = None if self.field_of_view is None else float(np.deg2rad(self.field_of_view))
        given = {
            "angles": self.angles,
            "ranges": self.ranges,
            "field_of_view": view,
            "max_range": self.max_range,
        }
        if known is None and None in (view, self.max_range):
            raise InputError(
                f"max_range is {self.max_range}, field_of_view {self.field_of_view}; a new store needs both"
            )
        default = {"angles": 120, "ranges": 64} if known is None else asdict(known)
        return FootprintGeometry(**{**default, **{name: n for name, n in given.items() if n is not None}})


@dataclass(frozen=True)
class Topics:
    """List the topics of a ROS bag, and suggest the options of `ocular import bag`."""

    bag: Annotated[Path, tyro.conf.Positional]
    """A .bag file, or the folder of a ROS 2 bag."""

    def run(self) -> None:
        """Print a table, and the options."""
        topics = list_topics(self.bag)
        width = max((len(topic.name) for topic in topics), default=0)
        for topic in topics:
            kind = f"{topic.type} {topic.encoding}".strip()
            print(f"{topic.name:{width}}  {topic.messages:>8,} messages  {topic.rate:7.1f} Hz  {kind}")
        options = [f"--{role} {topic.name}" for topic in topics for role in topic.suggested]
        print("\nsuggested:", " ".join(options) or "none: no topic is of a type that an import reads")


def as_json(store: Path, results: Sequence[Result]) -> str:
    """The account of an import, for programs."""
    return json.dumps({"store": str(store), "recordings": [asdict(result) for result in results]}, indent=1)


def as_text(store: Path, environment: str, results: Sequence[Result]) -> str:
    """The account of an import, for people."""
    lines = []
    for result in results:
        before = f", {result.resumed:,} of them by an earlier run" if result.resumed else ""
        lines.append(f"{result.path}: {result.steps:,} steps{before}, {result.used:,} used")
        lines += [f"  dropped {count:,}: {reason}" for reason, count in result.dropped.items()]
        lines += [f"  note: {note}" for note in result.notes]
    used = sum(result.used for result in results)
    return "\n".join(
        [*lines, f"{store}: {used:,} transitions of {environment} from {len(results)} recordings"]
    )


def _subcommand(name: str, importer: type[Importer]) -> Any:
    """The common options and those of one format, side by side."""
    options: Any = importer
    made = make_dataclass(
        f"Import{importer.__name__}",
        [("source", Annotated[options, tyro.conf.arg(prefix_name=False)])],
        bases=(Into,),
        frozen=True,
        kw_only=True,
    )
    return Annotated[
        made, tyro.conf.subcommand(name, description=(importer.__doc__ or "").partition("\n")[0])
    ]


Source: Any = reduce(
    or_,
    [_subcommand(name, importer) for name, importer in IMPORTERS.items()],
    Annotated[Topics, tyro.conf.subcommand("topics")],
)


@dataclass(frozen=True)
class Import:
    """Import logs into a transition store, part by part: a killed import goes on when it is run again.

    Nothing is dropped in silence: the account says how many steps were used, and why others were not.
    """

    what: Source

    def run(self) -> None:
        """Import, or list topics."""
        self.what.run()
