"""Does a process that does the same over and over need more and more memory? Readings, and their growth."""

from __future__ import annotations

import ctypes
import gc
import resource
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from ocular.experiments.limits import Limited

MIB = 2**20
LIBC = ctypes.CDLL(None)
WARM_UP = 0.1  # share of the readings: caches fill, and memory is asked for that is used again


@dataclass
class Memory:
    """Readings [MiB]: what the process holds, and what of it Python and NumPy have in use."""

    resident: list[float] = field(default_factory=list)
    traced: list[float] = field(default_factory=list)

    def read(self) -> None:
        """One more reading of both."""
        gc.collect()
        if hasattr(LIBC, "malloc_trim"):  # else what is free, but kept for the next demand, counts too
            LIBC.malloc_trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.resident.append(pages * resource.getpagesize() / MIB)
        self.traced.append(tracemalloc.get_traced_memory()[0] / MIB)

    def figures(self, name: str, most: tuple[float, float], trials: int) -> Iterator[Limited]:
        """Growth from the first half of the run to the second, and what is allowed [MiB]."""
        for kind, readings, limit in zip(("", "python_"), (self.resident, self.traced), most, strict=True):
            yield Limited(f"{name}_{kind}memory_growth_mib", f"<={limit:g}", growth(readings), trials)


def growth(readings: Sequence[float]) -> float:
    """Median of the second half less that of the first, the warm-up left out; of a steady leak, its half."""
    steady = readings[int(WARM_UP * len(readings)) :]
    half = len(steady) // 2
    return median(steady[half:]) - median(steady[:half])


@contextmanager
def watched_memory() -> Iterator[Memory]:
    """Memory whose readings know what is asked for from now on."""
    gc.collect()
    gc.freeze()  # what is there stays, and need not be looked through at each reading
    tracemalloc.start()
    try:
        yield Memory()
    finally:
        tracemalloc.stop()
        gc.unfreeze()
