"""`ocular report`: results that people look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Report:
    """Write one HTML file with every table and figure, made from the rows of `ocular reproduce`.

    It needs no network and nothing beside it. What has no rows yet is said in it.
    """

    results: Path = Path("results")
    """Folder of the rows."""
    output: Path = Path("out/report.html")
    """The file to write."""
    figures: Path | None = None
    """Folder for every figure as PNG and SVG at print quality, too."""
    json: bool = False
    """Print what was written as JSON."""

    def run(self) -> None:
        """Write, and say where."""
        import json

        from ocular.locks import make_folder
        from ocular.progress import progress
        from ocular.report.exports import export_figures
        from ocular.report.figures import PRINTS
        from ocular.report.page import page
        from ocular.report.results import Results
        from ocular.sealed import atomic_write_bytes

        results = Results.of(self.results)
        make_folder(self.output.parent)
        made = [self.output]
        prints = len(results.worlds) * len(PRINTS) if self.figures else 0
        with progress("writing the report", 1 + prints) as advance:
            atomic_write_bytes(self.output, page(results).encode())
            advance(self.output.name)
            if self.figures:
                made += export_figures(results, self.figures, advance)
        missing = [line for world in results.worlds.values() for line in world.missing()]
        if self.json:
            print(json.dumps({"files": [str(path) for path in made], "missing": missing}))
        else:
            print("\n".join([*missing, "wrote " + ", ".join(map(str, made))]))
