"""Work that is disturbed: each is done by a process of its own, forked from one that has imported everything.

So what a kill hits is work, not imports, and fifty kills cost no more than the work between them.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ocular.cli import main
from ocular.data import TransitionStore
from ocular.encoding import TrainingSettings
from ocular.errors import OcularError
from ocular.experiments.coverage import CoverageSettings, reproduce_coverage
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.planning import PlanningSettings, reproduce_planning
from ocular.planning.mppi import PlannerSettings
from ocular.sealed import atomic_write_bytes
from ocular.worlds.collect import GridSpec

Work = Callable[[Path], None]  # in a folder, below which everything is written

TINY = PlanarSettings(
    grid=GridSpec(positions=12, velocities=4, actions=2),
    training=TrainingSettings(epochs=2, most_footprints=80, batch=16),
)
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["__main__", "stress.victims", "stress.warm"])
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def ocular(*arguments: str) -> Work:
    """A command of ours, as from a terminal in the folder."""
    return partial(_command, arguments)


def _command(arguments: tuple[str, ...], folder: Path) -> None:
    os.chdir(folder)
    sys.argv = ["ocular", *arguments]
    main()


def training(store: Path) -> Work:
    """An encoder, to be trained with a checkpoint on the footprints of a store."""
    return partial(_train, store)


def _train(store: Path, folder: Path) -> None:
    from ocular.encoding.training import train  # loads torch, which only the process to fork from needs

    footprints = TransitionStore.open(store).load().inputs.footprints
    settings = replace(TINY.training, epochs=4)
    encoder, _ = train(footprints, settings, 0, checkpoint=folder / "training.sealed")
    weights = b"".join(array.tobytes() for array in encoder.to_arrays().values())
    atomic_write_bytes(folder / "encoder.weights", weights)


def coverage(folder: Path, maps: tuple[str, ...] = ("H",), output: str = "results") -> None:
    """The paper's coverage tables at toy size: logs, encoders, calibrations and rows."""
    settings = CoverageSettings(TINY, GridSpec(positions=6, velocities=2, actions=2), particles=50)
    reproduce_coverage(settings, "main", maps, folder / output, folder / "work", workers=1)


def planning(folder: Path) -> None:
    """The paper's drives at toy size."""
    settings = PlanningSettings(TINY, replace(PlannerSettings(), samples=64), episodes=3, most_steps=8)
    methods = ("nocp", "lucca")
    reproduce_planning(settings, ("S",), methods, folder / "results", folder / "work", workers=1)


class Victim:
    """A process that does some work in a folder, until it is done or killed."""

    def __init__(self, work: Work, folder: Path, die_at: int | None = None) -> None:
        self._reports = Path(tempfile.mkdtemp(prefix="ocular-victim-"))  # the folder's disk may be full
        self.said, self.operations = "", 0
        folder.mkdir(exist_ok=True)
        self._process: Any = _FORKS.Process(target=_perform, args=(work, folder, self._reports, die_at))
        self._process.start()

    def kill(self, after: float) -> None:
        """kill -9, so many seconds from now, unless it ends before."""
        self._process.join(after)
        if self._process.exitcode is None:
            os.kill(self._process.pid, signal.SIGKILL)

    def end(self) -> int:
        """Wait for its exit code, -9 if it was killed; then it is known what it said and did.

        Its operations on files, each of them a moment to die at, are known if it was not killed.
        """
        self._process.join()
        self.said = (self._reports / "said").read_text() if (self._reports / "said").exists() else ""
        if (self._reports / "operations").exists():
            self.operations = int((self._reports / "operations").read_text())
        shutil.rmtree(self._reports)
        return int(self._process.exitcode)


def _perform(work: Work, folder: Path, reports: Path, die_at: int | None) -> None:
    os.setsid()
    with open(reports / "said", "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    operations = _die_at(folder, die_at)
    try:
        work(folder)
    except OcularError as error:  # as a command does
        sys.exit(f"ocular: {error}")
    finally:
        sys.stdout.flush()
        (reports / "operations").write_text(str(next(operations) - 1))


def _die_at(folder: Path, number: int | None) -> itertools.count[int]:
    """Count what is done to files below the folder, and die just before the operation of this number."""
    operations, inside = itertools.count(1), f"{folder}/"

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        if not (writes or event in ("os.rename", "os.remove", "os.mkdir")):
            return
        path = os.fspath(arguments[0]) if isinstance(arguments[0], str | Path) else ""
        if (path.startswith(inside) or not path.startswith("/")) and next(operations) == number:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)  # in a thread that is not the one to be stopped first

    sys.addaudithook(hook)
    return operations
