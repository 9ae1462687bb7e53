"""Figures as files: PNG and SVG at print quality."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from matplotlib import rc_context

from ocular.report.figures import PRINTS
from ocular.report.figures.base import PRINT_RC
from ocular.report.results import Results
from ocular.sealed import atomic_write_bytes

DOTS_PER_INCH = 300


def export_figures(
    results: Results, folder: Path, on_progress: Callable[[str], None] = lambda name: None
) -> list[Path]:
    """Every figure of every world as PNG and SVG; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with rc_context(PRINT_RC):
        for world in results.worlds.values():
            for name, printed in PRINTS.items():
                figure = printed(world)
                if figure is not None:
                    for suffix in ("png", "svg"):
                        buffer = io.BytesIO()
                        metadata = {"Date": None} if suffix == "svg" else None  # the same rows, the same file
                        figure.savefig(buffer, format=suffix, dpi=DOTS_PER_INCH, metadata=metadata)
                        made.append(folder / f"{world.name}-{name}.{suffix}")
                        atomic_write_bytes(made[-1], buffer.getvalue())
                on_progress(f"{world.name} {name}")
    return made
