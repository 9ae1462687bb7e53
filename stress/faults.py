"""kill -9 at any moment, a full or read-only disk, two processes on one output: what becomes of the files?"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ocular.experiments.limits import Limited
from ocular.seeds import stream
from stress.verdicts import same, wrong_files
from stress.victims import Victim, Work, coverage, ocular, planning, training

KILLS, FULL_DISKS, PAIRS = 50, 20, 10  # of each work
MOST_IN_A_ROW = 4  # faults before a run is left to end
PAGE = 4096  # [bytes], which a disk in memory is made of
GRID = ("--positions", "10", "--velocities", "3", "--actions", "2")
REFUSED = "ocular: another process works on "
TOLD = ("ocular: cannot ", "No space left on device")


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Some work as it goes when nothing happens."""

    work: Work
    folder: Path  # what it left
    seconds: float
    operations: int  # on files

    @classmethod
    def of(cls, work: Work, folder: Path) -> Undisturbed:
        """Done now."""
        victim = Victim(work, folder)
        start = time.monotonic()
        must_end_well(victim)
        return cls(work, folder, time.monotonic() - start, victim.operations)

    def size(self) -> int:
        """How much room it takes [bytes]."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sum(-(-path.stat().st_size // PAGE) * PAGE for path in files)


@dataclass(slots=True)
class Tally:
    """What became of the faults of one kind."""

    faults: int = 0
    as_said: int = 0  # each fault by itself: right files, and the right words where there are any
    same_bytes: int = 0  # once the work was left to end

    def figures(self, name: str, what: str) -> Iterator[Limited]:
        """As shares of all."""
        yield Limited(f"faults_{name}_{what}", ">=1", self.as_said / self.faults, self.faults)
        yield Limited(f"faults_{name}_same_bytes", ">=1", self.same_bytes / self.faults, self.faults)


def faults(scratch: Path, quick: bool) -> Iterator[Limited]:
    """Every fault on every work."""
    made = works(scratch)
    few = 4 if quick else 0
    for name, work in made.items():
        case = Undisturbed.of(work, scratch / name)
        tally = killed(case, few or KILLS, scratch / f"{name}-killed", stream(0, "kill", name))
        yield from tally.figures(f"kill_{name}", "files_right")
        if mountable(scratch):
            tally = on_full_disks(case, few or FULL_DISKS, scratch / f"{name}-full", stream(0, "full", name))
            yield from tally.figures(f"full_disk_{name}", "clear_error")
            yield from told_that_nothing_can_be_written(name, case, scratch / f"{name}-read-only")
    for name, pair in pairs(scratch).items():
        tally = at_once(*pair, few or PAIRS, scratch / f"{name}-pair", stream(0, "pair", name))
        yield from tally.figures(f"two_{name}", "clear_error")


def works(scratch: Path) -> dict[str, Work]:
    """What is disturbed, by name."""
    logs = scratch / "logs"
    for map_name in "SL":
        must_end_well(Victim(_collect(map_name), logs))
    return {
        "collect": _collect("S"),
        "train": training(logs / "store"),
        "calibrate": _calibrate(scratch, 0),
        "coverage": coverage,
        "planning": planning,
    }


def pairs(scratch: Path) -> dict[str, tuple[Work, Work]]:
    """What is done twice at the same time, into one place."""
    return {
        "collect": (_collect("S"), _collect("L")),
        "calibrate": (_calibrate(scratch, 0), _calibrate(scratch, 0)),
        "coverage": (coverage, partial(coverage, maps=("L",))),
        "coverage_intermediate": (coverage, partial(coverage, output="other")),  # one waits for the other
        "planning": (planning, planning),
    }


def _collect(map_name: str) -> Work:
    return ocular("collect", "--map", map_name, "--store", "store", *GRID)


def _calibrate(scratch: Path, seed: int) -> Work:
    how = ("--model", "planar", "--method", "lucca", "--no-account", "--seed", str(seed))
    return ocular("calibrate", str(scratch / "logs" / "store"), "-o", "robot.ocular", *how)


def must_end_well(victim: Victim) -> None:
    """Wait; what fails undisturbed is no measurement."""
    if victim.end():
        raise RuntimeError(f"undisturbed work failed:\n{victim.said}")


def killed(case: Undisturbed, kills: int, scratch: Path, rng: np.random.Generator) -> Tally:
    """kill -9: half at random times, half just before a random operation on a file, several in a row."""
    tally = Tally()
    for attempt in _folders(scratch):
        if tally.faults >= kills:
            return tally
        in_a_row = 0
        for _ in range(min(int(rng.integers(1, MOST_IN_A_ROW + 1)), kills - tally.faults)):
            if rng.integers(2):
                victim = Victim(case.work, attempt, die_at=int(rng.integers(1, case.operations + 1)))
            else:
                victim = Victim(case.work, attempt)
                victim.kill(after=rng.uniform(0, case.seconds))
            if victim.end() != -9:  # the kills before have left it less to do than was thought
                break
            in_a_row += 1
            tally.as_said += not wrong_files(attempt, case.folder)
        tally.faults += in_a_row
        tally.same_bytes += in_a_row * ends_the_same(case, attempt)
    raise AssertionError


def ends_the_same(case: Undisturbed, folder: Path) -> bool:
    """Whether the work goes on to the files of an undisturbed run."""
    return Victim(case.work, folder).end() == 0 and same(folder, case.folder)


def on_full_disks(case: Undisturbed, disks: int, scratch: Path, rng: np.random.Generator) -> Tally:
    """Disks of random sizes, all too small; several in a row, each larger than the one before."""
    tally, size = Tally(), case.size()
    for disk in _folders(scratch):
        if tally.faults >= disks:
            return tally
        with small_disk(disk, PAGE) as resize:
            rooms = np.sort(rng.uniform(0, 1, min(MOST_IN_A_ROW, disks - tally.faults)))
            for share in rooms:
                resize(int(share * (size - PAGE)))
                victim = Victim(case.work, disk / "output")
                told = victim.end() == 1 and _said_once(victim, *TOLD)
                tally.as_said += told and not wrong_files(disk / "output", case.folder)
            resize(8 * size + 2**20)
            tally.faults += len(rooms)
            tally.same_bytes += len(rooms) * ends_the_same(case, disk / "output")
    raise AssertionError


def told_that_nothing_can_be_written(name: str, case: Undisturbed, disk: Path) -> Iterator[Limited]:
    """A disk that cannot be written to at all, at first and when all is there."""
    with small_disk(disk, 8 * case.size() + 2**20) as resize:
        output = disk / "output"
        output.mkdir()
        resize(None)
        victim = Victim(case.work, output)
        told = victim.end() == 1 and _said_once(victim, "ocular: cannot ", "Read-only file system")
        nothing = not any(output.iterdir())
        resize(8 * case.size() + 2**20)
        told &= ends_the_same(case, output)
        resize(None)
        Victim(case.work, output).end()  # it may have nothing left to do, or say so again
        kept = same(output, case.folder)
    yield Limited(f"faults_read_only_{name}_clear_error", ">=1", float(told and nothing and kept), 1)


def at_once(first: Work, second: Work, times: int, scratch: Path, rng: np.random.Generator) -> Tally:
    """Two processes that start at about the same time; whoever is refused does it again."""
    tally = Tally()
    folders = _folders(scratch)
    final = next(folders)
    start = time.monotonic()
    for work in (first, second):
        must_end_well(Victim(work, final))
    seconds = time.monotonic() - start
    for folder in folders:
        if tally.faults >= times:
            return tally
        one = Victim(first, folder)
        time.sleep(rng.uniform(0, seconds / 2))
        other = Victim(second, folder)
        ends = [(victim.end(), victim) for victim in (one, other)]
        tally.as_said += all(code == 0 or (code == 1 and _said_once(who, REFUSED)) for code, who in ends)
        again = [
            Victim(work, folder).end() for work, (code, _) in zip((first, second), ends, strict=True) if code
        ]
        tally.same_bytes += not any(again) and same(folder, final)
        tally.faults += 1
    raise AssertionError


def _said_once(victim: Victim, *words: str) -> bool:
    """Whether the last line, and no traceback, has these words."""
    lines = victim.said.splitlines()
    return bool(lines) and all(word in lines[-1] for word in words) and "Traceback" not in victim.said


def _folders(scratch: Path) -> Iterator[Path]:
    scratch.mkdir()
    for number in range(10_000):
        folder = scratch / str(number)
        folder.mkdir()
        yield folder


Resize = Callable[[int | None], None]  # to so many bytes; None makes it read-only


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Resize]:
    """A tmpfs of this size, which can be resized; it takes root."""
    folder.mkdir(exist_ok=True)

    def mount(*options: str) -> None:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", *options, "tmpfs", folder], check=True, capture_output=True
        )

    def resize(size: int | None) -> None:
        mount("remount,ro" if size is None else f"remount,rw,size={max(size // PAGE, 1) * PAGE}")

    mount(f"size={size}")
    try:
        yield resize
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def mountable(scratch: Path) -> bool:
    """Whether small disks can be made here."""
    try:
        with small_disk(scratch / "try", PAGE):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
