"""Reads files in a process of its own, which notices code that runs, memory beyond a limit, and no end."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from PIL import Image

from ocular.errors import OcularError
from stress.artefact_kinds import KINDS, UnsoundError, digest

MEMORY = 2**30  # [bytes] that reading a small file may take beyond what the process has
SECONDS = 60.0  # after which reading is said to have no end; a busy machine takes its time
GRACE = 5.0  # [s] in which it may end by itself
# What Python announces when code is about to run, or something is about to leave the process.
FORBIDDEN = (
    "exec",
    "pickle.find_class",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
    "socket.connect",
)

REFUSED, LOADED, RAISED, UNSOUND, MEMORY_GONE, CODE, NO_END, CRASHED = (
    *("refused", "loaded", "raised", "unsound", "memory", "code", "no end", "crashed"),
)


class Sandbox:
    """A process that reads; begun anew whenever it was lost."""

    def __init__(self, originals: dict[str, Path]) -> None:
        self._originals = originals

    def __enter__(self) -> Sandbox:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, self._originals), daemon=True)
        self._process.start()
        there.close()
        self.digests: dict[str, str] = self._here.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._here.send(None)
        self._process.join(GRACE)
        self._process.kill()
        self._process.join()
        self._here.close()

    def read(self, name: str, path: Path) -> tuple[str, str]:
        """What became of reading this, and a word on it: of what was loaded, its digest."""
        self._here.send((name, path))
        try:
            if self._here.poll(SECONDS):
                verdict: tuple[str, str] = self._here.recv()
                return verdict
            lost = NO_END, f"after {SECONDS:g} s"
        except (EOFError, ConnectionError):
            self._process.join()
            lost = CRASHED, f"exit code {self._process.exitcode}"
        self.__exit__(None, None, None)
        self.__enter__()
        return lost


def _serve(pipe: Connection, originals: dict[str, Path]) -> None:
    """Read the originals, so that nothing is compiled or imported later; then whatever is asked for."""
    warnings.simplefilter("ignore")
    Image.init()  # else its decoders come with the first image that the usual ones do not know
    kinds = {name: KINDS[name]() for name in originals}
    pipe.send({name: digest(kinds[name].read(path)) for name, path in originals.items()})
    seen: list[str] = []
    watched = False

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if watched and event in FORBIDDEN:
            seen.append(f"{event} {arguments!r:.80}")

    sys.addaudithook(audit)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + MEMORY,) * 2)
    while (asked := pipe.recv()) is not None:
        name, path = asked
        seen.clear()
        watched = True
        verdict = _verdict(kinds[name], path)
        watched = False
        pipe.send((CODE, seen[0]) if seen else verdict)


def _verdict(kind: Any, path: Path) -> tuple[str, str]:
    try:
        return LOADED, digest(kind.read(path))
    except OcularError as error:
        return REFUSED, f"{error}"
    except UnsoundError as error:
        return UNSOUND, f"{error}"
    except MemoryError as error:
        return MEMORY_GONE, f"{error!r}"
    except Exception as error:  # whatever else comes out of it is what this looks for
        return RAISED, f"{error!r}"
