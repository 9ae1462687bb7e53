"""Every cell says how far it is from the paper's, in which direction, and never calls noise a difference."""

import pytest
from tests.support.results import make_results

from ocular.report.comparison import COVERAGE, STEPS, SUCCESS, compare_coverage, compare_planning, judge
from ocular.report.results import Results


@pytest.mark.parametrize(
    ("yardstick", "ours", "paper", "verdict", "difference"),
    [
        (COVERAGE[0], [91.0], 91.9, "same", ""),
        (COVERAGE[0], [90.5, 91.1], 93.8, "nearer", "−3.0"),
        (COVERAGE[0], [87.0], 88.9, "farther", "−1.9"),
        (COVERAGE[0], [92.0], 90.0, "farther", "+2.0"),
        (COVERAGE[1], [1.06], 1.15, "nearer", "−0.09"),
        (COVERAGE[1], [0.018], 0.02, "same", ""),  # the same two digits, ten per cent apart
        (COVERAGE[1], [52.0], 50.26, "same", ""),
        (SUCCESS, [0.0], 33.3, "farther", "−33.3"),
        (STEPS, [250.0, 260.0], 278.1, "nearer", "−23.1"),
    ],
)
def test_verdicts(yardstick, ours, paper, verdict, difference):
    cell = judge(yardstick, ours, paper)
    assert (cell.verdict, cell.difference) == (verdict, difference)
    assert ("the paper's" in cell.why) == (yardstick.key != "")


def test_what_only_one_side_has_is_said():
    assert judge(COVERAGE[0], [91.0], None).why == "the paper has no such figure"
    assert judge(STEPS, [], 155.5, "155.5 ± 0.7").why == "none of our runs arrived"
    assert judge(STEPS, [200.0], None, "-").why == "none of the paper's runs arrived"
    assert judge(COVERAGE[0], [], None).why == "no rows yet"


def test_every_figure_of_the_paper_stands_beside_ours(tmp_path):
    world = Results.of(make_results(tmp_path, maps=("S", "L", "H", "U"), episodes=1)).worlds["planar"]
    coverage, volume, gap, undercovered = compare_coverage(world.coverage, "planar")
    assert coverage.columns == ("S ID", "S OOD", "L ID", "L OOD", "H ID", "H OOD", "U ID", "U OOD")
    for table in (coverage, volume):
        assert all(cell.paper is not None for _, cells in table.rows for cell in cells)
    assert all(cell.paper is None for t in (gap, undercovered) for _, cells in t.rows for cell in cells)
    success, steps = compare_planning(world.planning, "planar")
    by_method = dict(success.rows)
    assert [cell.paper for cell in by_method["nocp"]] == ["33.3", "0", "6.7", "0"]
    assert dict(steps.rows)["ocular"][0].paper == "177.6 ± 7.0"
    assert dict(steps.rows)["nocp"][0].why == "none of our runs arrived"
