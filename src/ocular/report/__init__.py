"""Rows -> tables: pure functions of what is on disk, never of a running experiment."""

from ocular.report.tables import METRICS, coverage_markdown, coverage_table, print_table

__all__ = ["METRICS", "coverage_markdown", "coverage_table", "print_table"]
