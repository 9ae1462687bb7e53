"""Figures are pure functions of rows; every axis says what it shows, and no legend lies on data."""

import numpy as np
import plotly.graph_objects as go
import pytest
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from tests.support.results import make_results

from ocular.errors import InputError
from ocular.report import exports
from ocular.report.exports import export_figures
from ocular.report.figures import FAMILIES, PRINTS, drives
from ocular.report.figures.base import PRINT_RC
from ocular.report.figures.cases import LEVELS, shares
from ocular.report.figures.leaves import counts
from ocular.report.ground import SURROUNDINGS, known_map, surroundings
from ocular.report.results import Results

UNITS = ("[m]", "[s]", "[m/s]", "[%]", "[ms]", "oracle = 1", "factor on the covariance", "method")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return Results.of(make_results(tmp_path_factory.mktemp("made-up"))).worlds["planar"]


@pytest.mark.parametrize("name", PRINTS)
def test_printed_axes_have_units_and_legends_lie_outside(world, name):
    with rc_context(PRINT_RC):
        figure = PRINTS[name](world)
        FigureCanvasAgg(figure).draw()
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    for axes in panels:
        left_column = axes.get_subplotspec().is_first_col()
        bottom_row = axes.get_subplotspec().is_last_row()
        for label, shown in ((axes.get_xlabel(), bottom_row), (axes.get_ylabel(), left_column)):
            assert not shown or label.endswith(UNITS), (name, label)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes)
    assert box.x0 >= 0, "the legend is cut off"
    assert box.x1 <= figure.bbox.x1, "the legend is cut off"


@pytest.mark.parametrize("make", FAMILIES)
def test_panels_are_valid_for_plotly_and_their_axes_have_units(world, make):
    figure = make(world)
    assert list(figure.maps) == ["H", "U"]
    for panels in figure.maps.values():
        for panel in panels:
            spec = panel.spec()
            go.Figure(data=spec["data"], layout=spec["layout"])  # refuses what plotly.js does not know
            for axis in ("xaxis", "yaxis"):
                assert spec["layout"][axis]["title"]["text"].endswith(UNITS), (figure.key, axis)


def test_a_method_has_its_colour_in_every_figure(world):
    for make in FAMILIES:
        for panels in make(world).maps.values():
            for trace in (t for panel in panels for t in panel.traces if "meta" in t):
                drawn = trace.get("line", {}).get("color") or trace["marker"]["color"]
                assert drawn == drives.look(trace["meta"]).colour


def test_shares_are_a_distribution_function():
    found = shares([0.9, 0.9, 0.5, 1.0])
    assert dict(zip(LEVELS, found, strict=True))[49.5] == 0
    assert dict(zip(LEVELS, found, strict=True))[50.0] == 25
    assert dict(zip(LEVELS, found, strict=True))[90.0] == 75
    assert found[-1] == 100


def test_scales_of_test_cases_come_from_volumes(world):
    """Volume goes with xi squared, and NoCP's xi is one."""
    expected = {round((48.0 / 1.0) ** 0.5, 2), round((0.81 / 0.02) ** 0.5, 2)}
    driven = {1.0, 1.4, 2.5}
    found = {round(xi, 2) for _, _, xi in counts(world, "H")["splitcp"]}
    assert found - driven == {float(f"{xi:.3g}") for xi in expected}
    assert "nocp" not in counts(world, "H")


@pytest.mark.parametrize(("name", "map_name"), [("planar", "H"), ("camera", "icyMain")])
def test_drives_lie_on_the_true_ground(name, map_name, tmp_path):
    world = Results.of(make_results(tmp_path, (map_name,), ("ocular",), name, episodes=1)).worlds[name]
    (found,) = drives.page_data(world)["maps"].values()
    truth = known_map(name, map_name)
    assert found["box"] == (0.0, truth.size[0], 0.0, truth.size[1])
    assert found["ground"].startswith("data:image/png")
    assert found["route"] == [truth.start, *truth.subgoals]
    ahead = surroundings(name, truth.grid, np.array([[*truth.start, 0.0, 0.0]]), [False])
    assert list(SURROUNDINGS)[ahead[0]] == "good ground, and ahead too"


def test_drives_for_the_page_are_small(world):
    data = drives.page_data(world)
    drive = data["maps"]["H"]["methods"]["ocular"][0]
    assert (drive["steps"], drive["outcome"]) == (40, "success")
    assert len(drive["data"]) == -(-4 * 2 * 41 // 3) * 4


def test_exports_are_the_same_for_the_same_rows(tmp_path, world, monkeypatch):
    monkeypatch.setattr(exports, "PRINTS", {name: PRINTS[name] for name in ("drives", "step-times")})
    results = Results.of(world.folder.parent)
    first = export_figures(results, tmp_path / "a")
    assert sorted(p.suffix for p in first) == [".png", ".png", ".svg", ".svg"]
    for path in export_figures(results, tmp_path / "b"):
        assert path.read_bytes() == (tmp_path / "a" / path.name).read_bytes()


def test_what_is_missing_is_said_and_the_rest_is_shown(tmp_path):
    with pytest.raises(InputError, match="has no coverage or planning rows"):
        Results.of(tmp_path)
    results = Results.of(make_results(tmp_path, maps=("S",), methods=("nocp", "ocular"), episodes=0))
    assert [make(results.worlds["planar"]) is None for make in FAMILIES] == [False, False, False, True]
    assert PRINTS["drives"](results.worlds["planar"]) is None
    said = "\n".join(line for world in results.worlds.values() for line in world.missing())
    assert "No planning of the planar maps yet: ocular reproduce planar --only planning" in said
    assert "No coverage of the camera world yet" in said
