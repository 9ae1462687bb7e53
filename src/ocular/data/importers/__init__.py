"""Importers of logs into the transition store, one file a format."""

from ocular.data.importers.arrays import Arrays
from ocular.data.importers.bag import Bag
from ocular.data.importers.base import Importer, Target
from ocular.data.importers.replicator import Replicator
from ocular.data.importers.topics import Topic, list_topics
from ocular.data.importers.writing import Result, check_environment, import_recordings

IMPORTERS: dict[str, type[Importer]] = {"arrays": Arrays, "bag": Bag, "replicator": Replicator}

__all__ = [
    "IMPORTERS",
    "Arrays",
    "Bag",
    "Importer",
    "Replicator",
    "Result",
    "Target",
    "Topic",
    "check_environment",
    "import_recordings",
    "list_topics",
]
