"""Pieces of the page: tables and lists as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ocular.report.comparison import Comparison
from ocular.report.style import METHOD_LOOKS, look
from ocular.report.tables import Table

METHODS_BY_NAME = {how.name: method for method, how in METHOD_LOOKS.items()}

TABLE_KEY = """<p class="key">
<span><i></i>as in the paper</span>
<span><i style="background:var(--near)"></i>nearer to the ideal than the paper's</span>
<span><i style="background:var(--far)"></i>farther from it</span>
<span>ours above; below, the paper's and the difference; choose a cell for the reason</span></p>"""


def comparison_table(table: Comparison) -> str:
    """Ours above, the paper's below, the difference coloured and explained."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = []
    for method, cells in table.rows:
        found = []
        for cell in cells:
            below = "" if cell.paper is None else escape(cell.paper)
            if cell.difference:
                below += f" · <b>{escape(cell.difference)}</b>"
            why = escape(cell.why, quote=True)
            found.append(
                f'<td class="{cell.verdict}" data-why="{why}" title="{why}" tabindex="0">'
                f"{escape(cell.ours)}<small>{below}</small></td>"
            )
        rows.append(f"{_row_start(method)}{''.join(found)}</tr>")
    return (
        f'<div class="compared"><h3>{escape(table.title)}</h3><div class="scroll"><table>'
        f'<thead><tr><th scope="col">method</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        f'<p class="why" aria-live="polite"></p>{bullets(table.notes)}</div>'
    )


def _row_start(method: str) -> str:
    """The beginning of a row; one that is about a method bears its colour."""
    if method not in METHOD_LOOKS:
        return f'<tr><th scope="row">{escape(method)}</th>'
    how = look(method)
    ours = ' class="ours"' if method == "ocular" else ""
    return (
        f'<tr data-method="{escape(method)}"{ours}><th scope="row">'
        f'<i style="background:{how.colour}"></i>{escape(how.name)}</th>'
    )


def plain_table(table: Table, level: int = 3) -> str:
    """A table that the paper lacks, under a heading of this level."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.header)
    rows = ""
    for name, *cells in table.rows:
        found = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows += f"{_row_start(METHODS_BY_NAME.get(name, name))}{found}</tr>"
    title = table.title[0].upper() + table.title[1:]
    return (
        f'<h{level}>{escape(title)}</h{level}><div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def bullets(lines: Iterable[str]) -> str:
    """A list; nothing for no lines."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="notes">{items}</ul>' if items else ""
