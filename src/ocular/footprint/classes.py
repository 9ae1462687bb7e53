"""Which label stands for what a semantic camera names: a table that a user can edit.

A camera's simulator or network has its own classes ("kerb", "snow"); the stages after it share a few labels.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ocular.errors import InputError, check_choice, check_names, check_path, check_type
from ocular.records import OCCUPIED, UNKNOWN, Labels, check_labels


@dataclass(frozen=True, slots=True)
class ClassTable:
    """Raw class -> label. A class that the table lacks is an error, or UNKNOWN where that is asked for."""

    label_of: Mapping[str, str]
    labels: tuple[str, ...]
    missing: Literal["error", "unknown"] = "error"

    def __post_init__(self) -> None:
        check_labels(self.labels)
        check_choice("missing", self.missing, ("error", "unknown"))
        check_type("label_of", self.label_of, Mapping)
        check_names("classes", list(self.label_of))
        for name, label in self.label_of.items():
            check_choice(f"the label of the class {name!r}", label, self.labels)

    def numbers(self, classes: Sequence[str]) -> Labels:
        """The label of each of these classes, as a number: classes (n,) -> (n,)."""
        check_names("classes", classes)
        for name in classes:
            if name not in self.label_of and self.missing == "error":
                raise InputError(
                    f"the class {name!r} is not in the table; allowed are {', '.join(self.label_of)}. "
                    'Add it, or take missing="unknown"'
                )
        return np.array([self.labels.index(self.label_of.get(name, UNKNOWN)) for name in classes], np.uint8)


def load_classes(
    path: str | Path, labels: tuple[str, ...] | None = None, missing: Literal["error", "unknown"] = "error"
) -> ClassTable:
    """A table from a TOML file with lines such as `kerb = "OCCUPIED"`; its own labels, unless told others."""
    check_path("path", path)
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"there is no class table {path.name}; allowed is a TOML file") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; allowed is a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path.name} is not a TOML file: {error}") from error
    if labels is None:
        labels = tuple(dict.fromkeys((OCCUPIED, UNKNOWN, *map(str, table.values()))))
    return ClassTable(table, labels, missing)
