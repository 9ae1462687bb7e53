"""Tables are pure functions of rows, ours beside the paper's, cell by cell."""

import pytest

from ocular.errors import InputError
from ocular.report import coverage_markdown, coverage_table, print_table
from ocular.report.tables import METHOD_NAMES


def row(map_name, method, region, coverage, volume=1.0):
    return {
        **{"world": "planar", "map": map_name, "method": method, "region": region},
        **{"coverage": str(coverage), "volume": str(volume), "gap": "0.012", "undercovered": "0.05"},
    }


ROWS = [
    row("H", "ocular", "ID", 0.9123),
    row("H", "ocular", "OOD", 0.9014),
    row("S", "ocular", "ID", 0.95),
    row("S", "nocp", "OOD", 0.064, 0.0171),
    row("mine", "ocular", "ID", 0.97),
]


def test_cells_stand_beside_the_papers():
    table = coverage_table(ROWS, "planar", "coverage")
    assert table.header == ("method", "S ID", "S OOD", "H ID", "H OOD", "mine ID", "mine OOD")
    assert table.rows == [
        ("NoCP", "- (89.9)", "6.4 (6.4)", "- (90.0)", "- (6.4)", "-", "-"),
        ("OCULAR", "95.0 (90.6)", "- (93.4)", "91.2 (91.2)", "90.1 (91.0)", "97.0", "-"),
    ]
    assert coverage_table(ROWS, "planar", "volume").rows[0][2] == "0.02 (0.02)"
    assert coverage_table(ROWS, "planar", "gap").rows[0][2] == "1.2"


def test_every_paper_column_is_known():
    """All six methods of both paper tables have a figure for every map and region."""
    rows = [row(m, method, r, 0.9) for m in "SLHU" for method in METHOD_NAMES for r in ("ID", "OOD")]
    for metric in ("coverage", "volume"):
        for line in coverage_table(rows, "planar", metric).rows:
            assert all("(" in cell for cell in line[1:]), line


def test_markdown_and_terminal(capsys):
    text = coverage_markdown(ROWS, "planar")
    assert "| OCULAR | 95.0 (90.6) | - (93.4) |" in text
    assert text.count("| method | S ID |") == 4
    print_table(coverage_table(ROWS, "planar", "coverage"))
    printed = capsys.readouterr().out
    assert "91.2 (91.2)" in printed
    assert "mine OOD" in printed


def test_seeds_become_mean_and_spread():
    rows = [row("S", "ocular", "ID", value) for value in (0.90, 0.91, 0.92)]
    assert coverage_table(rows, "planar", "coverage").rows == [("OCULAR", "91.0 ± 1.0 (90.6)", "- (93.4)")]


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="no coverage rows of the world 'moon'"):
        coverage_table(ROWS, "moon", "coverage")
