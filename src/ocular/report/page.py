"""The report: one HTML file that needs nothing else, no network either."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from ocular.report.comparison import Comparison, compare_coverage, compare_planning, limits
from ocular.report.figures import FAMILIES, Figure, drives
from ocular.report.findings import findings
from ocular.report.html import TABLE_KEY, bullets, comparison_table, plain_table
from ocular.report.results import WORLDS, Results, WorldResults
from ocular.report.style import LABEL_COLOURS, OUTCOME_MARKS, SPEED_COLOURS, in_order, look
from ocular.report.tables import Table, benchmark_table, dataset_table, planning_tables

TITLE = "How far can the model be trusted?"
LEAD = (
    "Local conformal calibration of a robot's dynamics uncertainty from what its camera sees: results of "
    "<b>ocular</b> beside those of the paper (OCULAR; Marques and Berenson)."
)
OUTCOME_SYMBOLS = {"success": "circle", "collision": "x", "timeout": "square"}
FOOTER = "Made by <code>ocular report</code> from the rows and recordings in <code>{folder}</code>."


def page(results: Results) -> str:
    """The whole file."""
    shown = [world for world in results.worlds.values() if world.maps]
    families = {world.name: _figures(world) for world in shown}
    data = {
        "order": [world.name for world in shown],
        "looks": _looks(shown),
        "outcomes": {name: colour for name, (_, colour) in OUTCOME_MARKS.items()},
        "speeds": SPEED_COLOURS,
        "worlds": {world.name: _world_data(world, families[world.name]) for world in shown},
    }
    body = [_world_section(world, families[world.name]) for world in shown]
    body += [_missing_world(world) for world in results.worlds.values() if not world.maps]
    if results.benchmarks:
        body.append(plain_table(benchmark_table(results.benchmarks), level=2))
    body.append("<h2>What this does not show</h2>" + bullets(limits()))
    assets = files("ocular.report").joinpath("assets")
    return Template(assets.joinpath("page.html").read_text()).substitute(
        title=escape(TITLE),
        lead=LEAD,
        style=assets.joinpath("page.css").read_text(),
        body="\n".join(body),
        footer=FOOTER.format(folder=escape(results.folder.name)),
        # The end of a script element must not appear inside of it.
        data=json.dumps(data, separators=(",", ":")).replace("</", "<\\/"),
        plotly=get_plotlyjs(),
        script=assets.joinpath("page.js").read_text() + assets.joinpath("drives.js").read_text(),
    )


def _figures(world: WorldResults) -> list[Figure]:
    return [figure for make in FAMILIES if (figure := make(world)) is not None]


def _looks(worlds: Iterable[WorldResults]) -> dict[str, Any]:
    methods = {method for world in worlds for method in world.methods}
    return {
        method: {"name": how.name, "colour": how.colour, "dash": how.dash, "symbol": how.marker[0]}
        for method in in_order(methods)
        for how in (look(method),)
    }


def _world_data(world: WorldResults, figures: list[Figure]) -> dict[str, Any]:
    return {
        "title": WORLDS[world.name],
        "maps": world.maps,
        "methods": world.methods,
        "figures": {f.key: {m: [p.spec() for p in panels] for m, panels in f.maps.items()} for f in figures},
        "drives": drives.page_data(world) if world.drives else None,
    }


def _world_section(world: WorldResults, figures: list[Figure]) -> str:
    tables = compare_coverage(world.coverage, world.name) if world.coverage else []
    tables += compare_planning(world.planning, world.name) if world.planning else []
    blocks = {
        f"{world.name}-drives": ("Every drive", _drives_block() if world.drives else ""),
        f"{world.name}-tables": ("The paper's tables, and ours", _tables_block(world, tables)),
        **{f"{world.name}-{f.key}": (f.title, _figure_block(f)) for f in figures},
        f"{world.name}-runs": ("Machine and versions", _runs_block(world)),
    }
    present = {key: (title, html) for key, (title, html) in blocks.items() if html}
    links = "".join(f'<a href="#{key}">{escape(title)}</a>' for key, (title, _) in present.items())
    parts = [
        f"<h2>{WORLDS[world.name]} at a glance</h2>",
        _cards(world),
        _missing(world.missing()),
        f'<p class="links">{links}</p>',
        *(
            f'<div class="block" id="{key}"><h2>{escape(title)}</h2>{html}</div>'
            for key, (title, html) in present.items()
        ),
    ]
    return f'<section id="world-{world.name}" hidden>' + "\n".join(parts) + "</section>"


def _tables_block(world: WorldResults, tables: list[Comparison]) -> str:
    shown = [comparison_table(table) for table in tables] + [plain_table(t) for t in _own_tables(world)]
    return TABLE_KEY + "".join(shown)


def _own_tables(world: WorldResults) -> list[Table]:
    """What the paper lacks: how drives fail, the promise in closed loop, time; and how much data there is."""
    data = [dataset_table(world.datasets)] if world.datasets else []
    if not world.planning:
        return data
    _, collision, _, left_region, step_time = planning_tables(world.planning, world.name)
    return [collision, left_region, step_time, *data]


def _cards(world: WorldResults) -> str:
    cards = (
        f'<div class="card"><b>{escape(f.figure)}</b><span>{escape(f.text)}</span></div>'
        for f in findings(world)
    )
    return f'<div class="cards">{"".join(cards)}</div>'


def _missing(lines: list[str]) -> str:
    if not lines:
        return ""
    texts = (line.split(": ", 1) for line in lines)
    return (
        '<div class="missing">'
        + "".join(f"<p>{escape(what)}: <code>{escape(how)}</code></p>" for what, how in texts)
        + "</div>"
    )


def _missing_world(world: WorldResults) -> str:
    return f"<h2>{WORLDS[world.name]}</h2>" + _missing(
        [f"No rows of the {WORLDS[world.name].lower()} yet: ocular reproduce {world.name}"]
    )


def _figure_block(figure: Figure) -> str:
    legend = "".join(
        f'<span class="mark" data-symbol="{symbol}" data-colour="{colour}">{escape(text)}</span>'
        for text, (symbol, colour) in figure.legend.items()
    )
    return (
        f'<p class="caption">{escape(figure.caption)}</p>'
        + (f'<p class="key">{legend}</p>' if legend else "")
        + _nothing(figure.title)
        + f'<div class="panels{" narrow" if figure.narrow else ""}"></div>'
    )


def _nothing(what: str) -> str:
    where = "nothing here for map <span data-map-name></span>"
    return f'<p class="none missing" hidden>{escape(what)}: {where}.</p>'


def _drives_block() -> str:
    ends = "".join(
        f'<span class="mark" data-symbol="{OUTCOME_SYMBOLS[name]}" data-colour="{colour}">{name}</span>'
        for name, (_, colour) in OUTCOME_MARKS.items()
    )
    grounds = {"NOMINAL": "good ground", "LOW_FRICTION": "ice", "OCCUPIED": "obstacle"}
    ground = "".join(
        f'<span><i style="background:{LABEL_COLOURS[label][0]}"></i>{text}</span>'
        for label, text in grounds.items()
    )
    return (
        '<p class="caption">Where each method drove, its speed as colour; rings are subgoals. Every method '
        "meets the same noise in the drive of the same number. Choose a drive, on the map or in the list, "
        "to see it alone.</p>"
        f'{_nothing("Drives")}<p class="key"><span>speed 0 <i class="ramp"></i><span class="fastest"></span>'
        f"</span>{ends}{ground}</p>"
        '<div class="player"><select aria-label="Drive"></select>'
        '<button class="play" type="button">▶ Play</button>'
        '<input type="range" min="0" value="0" aria-label="Time in the drive"><output></output></div>'
        '<div class="panels grid-drives"></div><div class="panels series"></div>'
    )


def _runs_block(world: WorldResults) -> str:
    blocks = []
    for name, runs in world.runs.items():
        lines = []
        for run in runs:
            versions = ", ".join(f"{package} {number}" for package, number in run["versions"].items())
            lines.append(
                f"commit {run['commit'][:12]}, {run['wall_seconds']:,.0f} s on {run['cores']} cores "
                f"({run['machine']}, {run['workers']} workers): {', '.join(run['rows'])}; {versions}"
            )
        blocks.append(f"<details><summary>{escape(name)}.csv</summary>{bullets(lines)}</details>")
    return "".join(blocks)
