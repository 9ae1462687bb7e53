"""Tables are pure functions of rows, ours beside the paper's, cell by cell."""

import pytest

from ocular.errors import InputError
from ocular.report import coverage_table, print_table, with_tables
from ocular.report.documents import markdown
from ocular.report.style import METHOD_LOOKS
from ocular.report.tables import dataset_table, limits_table


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
    row("mine", "my_method", "ID", 0.96),
]


def test_cells_stand_beside_the_papers():
    table = coverage_table(ROWS, "planar", "coverage")
    assert table.header == ("method", "S ID", "S OOD", "H ID", "H OOD", "mine ID", "mine OOD")
    assert table.rows == [
        ("NoCP", "- (89.9)", "6.4 (6.4)", "- (90.0)", "- (6.4)", "-", "-"),
        ("OCULAR", "95.0 (90.6)", "- (93.4)", "91.2 (91.2)", "90.1 (91.0)", "97.0", "-"),
        ("my_method", "-", "-", "-", "-", "96.0", "-"),
    ]
    assert coverage_table(ROWS, "planar", "volume").rows[0][2] == "0.02 (0.02)"
    assert coverage_table(ROWS, "planar", "gap").rows[0][2] == "1.2"


def test_every_paper_column_is_known():
    """All six methods of both paper tables have a figure for every map and region."""
    rows = [row(m, method, r, 0.9) for m in "SLHU" for method in METHOD_LOOKS for r in ("ID", "OOD")]
    for metric in ("coverage", "volume"):
        for line in coverage_table(rows, "planar", metric).rows:
            assert all("(" in cell for cell in line[1:]), line


def test_data_stand_in_the_papers_order_of_maps():
    counts = {"transitions": "79921", "footprints": "1027", "test_cases": "4096"}
    rows = [{"world": "planar", "map": m, "seed": s, **counts} for s in "10" for m in ("H", "mine", "S")]
    lines = dataset_table(rows).rows
    assert [line[0] for line in lines][:3] == ["S, seed 0", "S, seed 1", "H, seed 0"]
    assert lines[0][1:] == ("79,921 (79,900)", "1,027", "4,096 (4,096)")


def test_markdown_and_terminal(capsys):
    table = coverage_table(ROWS, "planar", "coverage")
    assert "| OCULAR | 95.0 (90.6) | - (93.4) |" in markdown(table)
    print_table(table)
    printed = capsys.readouterr().out
    assert "91.2 (91.2)" in printed
    assert "mine OOD" in printed


def test_documents_get_their_tables_between_the_marks(tmp_path):
    (tmp_path / "planar").mkdir()
    (tmp_path / "planar" / "datasets.csv").write_text(
        "world,map,transitions,footprints,test_cases,seed\nplanar,S,79913,4472,4096,0\n"
    )
    text = "before\n<!-- table: planar datasets -->\nstale\n<!-- end of table -->\nafter"
    renewed = with_tables(text, tmp_path)
    assert "| S, seed 0 | 79,913 (79,900) | 4,472 | 4,096 (4,096) |" in renewed
    assert "stale" not in renewed
    assert renewed.startswith("before\n<!-- table: planar datasets -->\n")
    assert renewed.endswith("\n<!-- end of table -->\nafter")
    assert with_tables(renewed, tmp_path) == renewed
    with pytest.raises(InputError, match="asks for the table 'nonsense'"):
        with_tables(text.replace("planar datasets", "nonsense"), tmp_path)


def test_limits_are_told_with_what_was_got():
    rows = [{"name": "step_ms_p50", "wanted": "<=50", "got": "41.2345", "trials": "214"}]
    assert limits_table(rows).rows == [("step_ms_p50", "≤ 50", "41.2", "214")]


def test_seeds_become_mean_and_spread():
    rows = [row("S", "ocular", "ID", value) for value in (0.90, 0.91, 0.92)]
    assert coverage_table(rows, "planar", "coverage").rows == [("OCULAR", "91.0 ± 1.0 (90.6)", "- (93.4)")]


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="no coverage rows of the world 'moon'"):
        coverage_table(ROWS, "moon", "coverage")
