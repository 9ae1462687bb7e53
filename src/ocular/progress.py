"""Progress of long work: what, how far, how long still. On a terminal only; pipes and logs stay quiet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as RemainingColumn

Advance = Callable[[str], None]


@contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """A bar of `total` steps; the value given to `with` is called with a word on what was just done."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        RemainingColumn(),
        TextColumn("{task.fields[latest]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total, latest="")

        def advance(latest: str) -> None:
            bar.update(task, advance=1, latest=latest)

        yield advance
