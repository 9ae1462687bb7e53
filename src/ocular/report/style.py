"""How things look, once for all: a method has one colour and one dash in every table, figure and video.

The colours were searched for so that any two stay apart in normal vision and with protanopia, deuteranopia
and tritanopia, and all can be seen on white and on black; `tests/unit/report/test_style.py` simulates it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """One method."""

    name: str
    short: str  # where there is little room
    colour: str
    dash: str  # plotly's name of it
    dashes: tuple[float, ...]  # matplotlib's: lengths of stroke and gap, none for a whole line
    marker: tuple[str, str]  # plotly's symbol, matplotlib's
    own_map: bool | None  # calibrates on data of the map that it is tested on; None: needs no data


METHOD_LOOKS = {
    "nocp": Look("NoCP", "NoCP", "#c4150e", "dot", (1, 1.5), ("x", "X"), None),
    "splitcp": Look("SplitCP", "SplitCP", "#824789", "dashdot", (5, 2, 1, 2), ("square", "s"), True),
    "lucca": Look("LUCCa", "LUCCa", "#cd9321", "dash", (5, 2), ("diamond", "D"), True),
    "ocular": Look("OCULAR", "OCULAR", "#4c43dd", "solid", (), ("circle", "o"), False),
    "ocular_same_map": Look(
        "OCULAR, test map's data", "same map", "#a588ff", "longdash", (9, 2), ("star", "*"), True
    ),
    "ocular_no_encode": Look(
        "OCULAR, no encoding", "no encoding", "#3c9587", "longdashdot", (9, 2, 1, 2), ("cross", "P"), False
    ),
}
OTHER = Look("", "", "#7a7a7a", "solid", (), ("circle-open", "o"), None)

LABEL_COLOURS = {  # what the ground is, in maps; the first for what is there, the second for what is believed
    "OCCUPIED": ("#3b4048", "#1f2329"),
    "UNKNOWN": ("#b9bcc2", "#d8dade"),
    "NOMINAL": ("#e4e0d8", "#f6f3ee"),
    "LOW_FRICTION": ("#a9cfe6", "#cfe8f6"),
}
OUTCOME_MARKS = {  # outcome: (matplotlib's marker, colour)
    "success": ("o", "#1a7f37"),
    "collision": ("X", "#c4150e"),
    "timeout": ("s", "#8a6d00"),
}
# Slow to fast: the plasma map less its yellow end, its lightness falls and rises the same for everybody.
SPEED_COLOURS = (
    *("#0d0887", "#3e049c", "#6300a7", "#8606a6", "#a62098"),
    *("#c03a83", "#d5546e", "#e76f5a", "#f68d45", "#fdae32"),
)


def look(method: str) -> Look:
    """How to draw a method; one that is not the paper's is grey, under its own name."""
    known = METHOD_LOOKS.get(method)
    return known or Look(method, method, OTHER.colour, OTHER.dash, OTHER.dashes, OTHER.marker, None)


def in_order(methods: Collection[str]) -> list[str]:
    """The paper's methods in the paper's order, then any others."""
    known = list(METHOD_LOOKS)
    return sorted(methods, key=lambda m: (known.index(m) if m in known else len(known), m))
