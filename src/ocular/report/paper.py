"""The paper's own figures, to stand beside ours; only ever for comparison."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from typing import Any

REGIONS = ("ID", "OOD")


@cache
def _published() -> dict[str, Any]:
    return tomllib.loads(files("ocular.report").joinpath("paper.toml").read_text())


def published(world: str, key: str) -> dict[str, Any]:
    """One block of paper.toml; empty where the paper has none."""
    found: dict[str, Any] = _published().get(world, {}).get(key, {})
    return found


def paper_maps(world: str) -> list[str]:
    """The maps of the paper's tables, in its order."""
    return list(published(world, "coverage").get("maps", []))


def maps_in_order(world: str, maps: Collection[str]) -> list[str]:
    """The paper's maps in the paper's order, then any others."""
    known = paper_maps(world)
    return sorted(maps, key=lambda m: (known.index(m) if m in known else len(known), m))


def paper_number(world: str, key: str, method: str, map_name: str, region: str) -> float | None:
    """Coverage [%] or volume; None where the paper has none."""
    block = published(world, key)
    if method not in block or map_name not in block["maps"]:
        return None
    return float(block[method][2 * block["maps"].index(map_name) + REGIONS.index(region)])


def paper_text(world: str, key: str, method: str, map_name: str) -> str | None:
    """Success [%] or steps as printed; None where the paper has none."""
    block, known = published(world, key), paper_maps(world)
    if method not in block or map_name not in known:
        return None
    return str(block[method][known.index(map_name)])
