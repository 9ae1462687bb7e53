"""Figures as files: PNG and SVG at print quality."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from ocular.errors import InputError, check_choice
from ocular.locks import make_folder
from ocular.report.figures import PRINTS
from ocular.report.figures.base import PRINT_RC
from ocular.report.results import Results
from ocular.sealed import atomic_write_bytes

DOTS_PER_INCH = 300
DOCUMENT_DOTS_PER_INCH = 150


def export_figures(
    results: Results, folder: Path, on_progress: Callable[[str], None] = lambda name: None
) -> list[Path]:
    """Every figure of every world as PNG and SVG; returns the files."""
    make_folder(folder)
    made: list[Path] = []
    with rc_context(PRINT_RC):
        for world in results.worlds.values():
            for name, printed in PRINTS.items():
                figure = printed(world)
                if figure is not None:
                    for suffix in ("png", "svg"):
                        made.append(folder / f"{world.name}-{name}.{suffix}")
                        _save(figure, made[-1], DOTS_PER_INCH)
                on_progress(f"{world.name} {name}")
    return made


def export_picture(results: Results, path: Path) -> None:
    """One figure as PNG for a document; the file's name says which: planar-drives.png."""
    choices = {f"{world}-{name}": (world, name) for world in results.worlds for name in PRINTS}
    check_choice("the picture", path.stem, choices)
    world, name = choices[path.stem]
    with rc_context(PRINT_RC):
        figure = PRINTS[name](results.worlds[world])
        if figure is None:
            raise InputError(
                f"{results.folder} has no rows for {path.stem}; allowed is a folder that has them: "
                + "; ".join(results.worlds[world].missing())
            )
        _save(figure, path, DOCUMENT_DOTS_PER_INCH)


def _save(figure: Figure, path: Path, dots: int) -> None:
    buffer = io.BytesIO()
    kind = path.suffix[1:]
    metadata = {"Date": None} if kind == "svg" else None  # the same rows, the same file
    figure.savefig(buffer, format=kind, dpi=dots, metadata=metadata)
    atomic_write_bytes(path, buffer.getvalue())
