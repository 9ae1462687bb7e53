"""Rows -> tables: pure functions of what is on disk, never of a running experiment."""

from ocular.report.documents import with_tables
from ocular.report.tables import METRICS, coverage_table, planning_tables, print_table

__all__ = ["METRICS", "coverage_table", "planning_tables", "print_table", "with_tables"]
