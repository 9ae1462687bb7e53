"""Damaged and forged files: none loads as if nothing had happened, runs code, hangs, or takes memory at will.

Half of the edits are what disks, copies and hands do: bytes change, files come and go. The other half keeps
every checksum right, as another program would that is wrong about the content or means harm.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ocular.experiments.limits import Limited
from ocular.progress import progress
from ocular.seeds import stream
from stress.artefact_kinds import KINDS, Kind
from stress.edits import BOMB, damaged, open_sealed, resealed
from stress.sandbox import CODE, CRASHED, LOADED, MEMORY_GONE, NO_END, RAISED, UNSOUND, Sandbox

EDITS, QUICK_EDITS = 2000, 120
UNNOTICED = "unnoticed"
FIGURES = {
    "loaded_as_if_nothing_had_happened": (UNNOTICED, UNSOUND),
    "undocumented_errors": (RAISED,),
    "code_run": (CODE,),
    "memory_beyond_limit": (MEMORY_GONE,),
    "hangs_and_crashes": (NO_END, CRASHED),
}


@dataclass(frozen=True)
class Trial:
    """One edit of one file, and what came of it."""

    kind: str
    edit: str
    verdict: str
    word: str


def artefacts(scratch: Path, quick: bool) -> Iterator[Limited]:
    """How many edits had which bad end; each such edit is printed."""
    trials = list(edit_and_read(scratch, QUICK_EDITS if quick else EDITS))
    for name, verdicts in FIGURES.items():
        bad = [trial for trial in trials if trial.verdict in verdicts]
        for trial in bad:
            print(trial)
        yield Limited(f"artefacts_{name}", "<=0", len(bad), len(trials))
    refused = sum(trial.verdict == "refused" for trial in trials)
    yield Limited("artefacts_refused_share", ">=0.5", refused / len(trials), len(trials))


def edit_and_read(scratch: Path, edits: int, seed: int = 0) -> Iterator[Trial]:
    """Edit every kind of file in turn, and read each."""
    kinds = {name: make() for name, make in KINDS.items()}
    originals = {name: scratch / f"original {number}" for number, name in enumerate(kinds)}
    for name, kind in kinds.items():
        kind.make(originals[name])
    trace = scratch / "code-was-run"
    before = Path.cwd()
    os.chdir(scratch)  # where code would leave its trace
    try:
        with Sandbox(originals) as sandbox, progress("Damaged files", edits) as advance:
            for number in range(edits):
                name = list(kinds)[number % len(kinds)]
                rng = stream(seed, "artefacts", number)
                edit, silent = _edit(kinds[name], originals[name], scratch / "edited", rng)
                verdict, word = sandbox.read(name, scratch / "edited")
                if trace.exists():
                    verdict, word = CODE, "left its trace"
                    trace.unlink()
                if verdict == LOADED and not silent:
                    noticed = edit.startswith("resealed") and word != sandbox.digests[name]
                    verdict = LOADED if noticed else UNNOTICED
                advance(f"{name}: {verdict}")
                yield Trial(name, edit, verdict, word)
    finally:
        os.chdir(before)


def _edit(kind: Kind, original: Path, edited: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Copy and edit; what was done, and whether it may pass without notice."""
    while True:
        _remove(edited)
        if original.is_dir():
            shutil.copytree(original, edited)
        else:
            shutil.copyfile(original, edited)
        if kind.is_sealed and rng.random() < 0.5 and not (original.is_dir() and kind.reseal is None):
            done, silent = _forge(kind, edited, rng)
            return f"resealed: {done}", silent
        # What people write and name may be a pipe, or have another file beside it, if they like.
        is_folder = original.is_dir() and kind.is_sealed
        done = _rearrange(edited, rng) if is_folder and rng.random() < 0.4 else _damage(edited, rng)
        if done:
            return done, not kind.is_sealed


def _forge(kind: Kind, edited: Path, rng: np.random.Generator) -> tuple[str, bool]:
    if kind.reseal is not None:
        return kind.reseal(edited, rng)
    before = open_sealed(edited)
    done = resealed(edited, rng, kind.skip)
    try:
        document, arrays = open_sealed(edited)
    except Exception:  # forged beyond reading by plain means
        return done, False
    same = document == before[0] and arrays.keys() == before[1].keys()
    return done, same and all(
        arrays[n].dtype == a.dtype and np.array_equal(arrays[n], a) for n, a in before[1].items()
    )


def _damage(edited: Path, rng: np.random.Generator) -> str:
    """Change the bytes of one file; empty where they came out the same."""
    file = edited
    if edited.is_dir():
        files = sorted(each for each in edited.rglob("*") if each.is_file())
        file = files[int(rng.integers(len(files)))]
    data = file.read_bytes()
    done, new = damaged(data, rng)
    file.write_bytes(new)
    return "" if new == data else f"{file.name}: {done}"


def _rearrange(edited: Path, rng: np.random.Generator) -> str:
    """Files of a folder that vanish, appear, change places, or become something else."""
    files = sorted(each for each in edited.rglob("*") if each.is_file())
    one, other = (files[int(rng.integers(len(files)))] for _ in range(2))
    kind = str(rng.choice(["delete", "add", "swap", "endless", "pipe", "folder", "pickle", "elsewhere"]))
    if kind == "add":  # a stray file beside a store's parts is none of its business
        (max(files, key=lambda each: len(each.parts)).parent / "extra.npy").write_bytes(BOMB)
        return "extra file"
    if kind == "swap":
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)
        return "" if first == second else f"swapped {one.name} and {other.name}"
    data = one.read_bytes()
    one.unlink()
    if kind == "endless":
        one.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(one)
    elif kind == "folder":
        one.mkdir()
    elif kind == "pickle":
        one.write_bytes(BOMB)
    elif kind == "elsewhere":  # bytes of the same length that lie outside
        outside = edited.with_name("outside")
        outside.write_bytes(bytes(len(data)))
        one.symlink_to(outside)
    return f"{kind}: {one.name}"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
