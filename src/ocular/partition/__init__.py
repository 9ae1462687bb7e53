"""Features -> cell: the whole space as one cell, or the leaves of a regression tree on scores (LOCART)."""

from ocular.partition.base import Partition, WholeSpace
from ocular.partition.tree import TreePartition, TreeSettings

__all__ = ["Partition", "TreePartition", "TreeSettings", "WholeSpace"]
