"""Progress of long work: what, how far, how long still. On a terminal only; pipes and workers are quiet."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as RemainingColumn
from rich.text import Text

SECONDS_BETWEEN_NEWS = 2.0

News = Callable[[], str]


class Advance(Protocol):
    """Tells how far the work is."""

    def __call__(self, latest: str, steps: int = 1) -> None:
        """So many steps further, and a word on what was just done."""


class _Latest(TextColumn):
    """The last word, and the latest news of work that others do; asked for only when it is drawn."""

    max_refresh = SECONDS_BETWEEN_NEWS

    def __init__(self) -> None:
        super().__init__("{task.fields[latest]}", markup=False)

    def render(self, task: Task) -> Text:
        """What stands behind the bar."""
        news: News | None = task.fields["news"]
        return super().render(task) if news is None else Text(news() or task.fields["latest"])


_running: list[Progress] = []  # bars within bars share one display: two would write over each other


@contextmanager
def progress(what: str, total: int, news: News | None = None) -> Iterator[Advance]:
    """A bar of `total` steps; the value given to `with` is called with a word on what was just done.

    `news` tells what goes on between two steps, where they are done by other processes.
    """
    console = Console(stderr=True)
    if not console.is_terminal or multiprocessing.current_process().name != "MainProcess":
        yield lambda latest, steps=1: None
        return
    if _running:
        with _bar(_running[0], what, total, news) as advance:
            yield advance
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        RemainingColumn(),
        _Latest(),
    )
    # What is printed meanwhile stands above the bar, unless it goes to a file: there it must arrive.
    with Progress(*columns, console=console, redirect_stdout=sys.stdout.isatty()) as display:
        _running.append(display)
        try:
            with _bar(display, what, total, news) as advance:
                yield advance
        finally:
            _running.remove(display)


@contextmanager
def _bar(display: Progress, what: str, total: int, news: News | None) -> Iterator[Advance]:
    """One line of the display; a line within another's goes when it is done."""
    inner = bool(display.tasks)
    task = display.add_task(what, total=total, latest="", news=news)

    def advance(latest: str, steps: int = 1) -> None:
        display.update(task, advance=steps, latest=latest)

    try:
        yield advance
    finally:
        if inner:
            display.remove_task(task)
