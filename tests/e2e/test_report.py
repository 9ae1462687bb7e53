"""The report in a real browser, on a desk and on a phone, by day and by night."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.browser import listen
from tests.support.results import make_results

from ocular.report.page import page
from ocular.report.results import Results
from ocular.sealed import atomic_write_bytes

SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}
ARTEFACTS = Path(__file__).parents[2] / "out" / "screenshots"
HIDDEN = """() => [...document.querySelectorAll('.plot, canvas, table, .card')].filter(e => {
  if (e.closest('[hidden]')) return false;
  const box = e.getBoundingClientRect();
  return box.width < 100 || box.height < 40 || box.right > innerWidth + 1 && !e.closest('.scroll');
}).map(e => e.outerHTML.slice(0, 200))"""
BLANK = """() => [...document.querySelectorAll('canvas')].filter(c => {
  const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  return new Set(new Uint32Array(data.buffer)).size < 20;
}).length"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    make_results(folder / "results")
    make_results(folder / "results", maps=("icyMain",), methods=("nocp", "ocular"), world="camera")
    atomic_write_bytes(folder / "report.html", page(Results.of(folder / "results")).encode())
    return folder / "report.html"


@pytest.fixture
def opened(browser, report, request):
    """A page, and everything that it complained about or asked of the network."""
    screen, scheme = request.param
    width, height = SCREENS[screen]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab = context.new_page()
    noise = listen(tab)
    tab.goto(report.as_uri())
    tab.wait_for_selector("#planar-timing .plot .main-svg")
    yield tab
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=str(ARTEFACTS / f"report-{screen}-{scheme}.png"), full_page=True)
    context.close()
    assert noise == []


@pytest.mark.parametrize(
    "opened",
    [("desktop", "light"), ("desktop", "dark"), ("phone", "light"), ("phone", "dark")],
    ids="-".join,
    indirect=True,
)
def test_everything_is_seen_and_nothing_complains(opened):
    assert opened.evaluate(HIDDEN) == []
    assert opened.evaluate(BLANK) == 0
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    drawn = opened.evaluate(
        "[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('.trace').length)"
    )
    assert len(drawn) >= 12
    assert all(drawn)
    overlapping = (
        """() => [...document.querySelectorAll('.plot')].filter(p => p.querySelector('.legend')).length"""
    )
    assert opened.evaluate(overlapping) == 0  # the legend is the bar of methods, outside of all plots


@pytest.mark.parametrize("opened", [("desktop", "light"), ("phone", "dark")], ids="-".join, indirect=True)
def test_choices_change_what_is_shown(opened):
    def caption_of_leaves():
        return opened.locator("#planar-leaves .panel figcaption").all_inner_texts()

    before = opened.evaluate("document.querySelector('#planar-drives canvas').toDataURL()")
    opened.click("#map-choice [data-value=U]")
    assert opened.evaluate("document.querySelector('#planar-drives canvas').toDataURL()") != before
    assert opened.get_attribute("#map-choice [data-value=U]", "aria-pressed") == "true"

    assert "LUCCa" in caption_of_leaves()
    canvases = opened.locator("#planar-drives canvas").count()
    opened.click("#method-choice [data-method=lucca]")
    assert "LUCCa" not in caption_of_leaves()
    assert opened.locator("#planar-drives canvas").count() == canvases - 1
    assert opened.locator("#planar-tables tr[data-method=lucca]:visible").count() == 0
    opened.click("#method-choice [data-method=lucca]")
    assert opened.locator("#planar-drives canvas").count() == canvases


@pytest.mark.parametrize("opened", [("desktop", "light")], ids="-".join, indirect=True)
def test_a_drive_can_be_chosen_and_played_and_a_cell_explains_itself(opened):
    opened.select_option("#planar-drives select", "1")
    assert "Drive 1: speed" in opened.locator("#planar-drives .series figcaption").all_inner_texts()
    opened.click("#planar-drives .play")
    opened.wait_for_function("document.querySelector('#planar-drives output').textContent > '0.30 s'")
    assert opened.inner_text("#planar-drives .play") == "❚❚ Pause"
    opened.click("#planar-drives .play")
    opened.locator("#planar-drives canvas").first.click(position={"x": 80, "y": 200})
    opened.click("#planar-tables tr[data-method=lucca] td.nearer >> nth=0")
    assert "nearer to the ideal" in opened.locator("#planar-tables .why").first.inner_text()
    opened.click("#world-choice [data-value=camera]")
    assert opened.locator("#world-camera h2").first.inner_text() == "Camera world at a glance"
    assert opened.locator("#method-choice .chip").count() == 2
    opened.click("#theme")
    assert opened.get_attribute("html", "data-theme") == "dark"


def test_the_command_writes_the_page_and_the_figures(report, tmp_path):
    program = Path(sys.executable).parent / "ocular"
    started = time.monotonic()
    done = subprocess.run(
        [
            program,
            "report",
            "--results",
            report.parent / "results",
            "--output",
            tmp_path / "r.html",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert time.monotonic() - started < 60
    said = json.loads(done.stdout)
    assert said["files"] == [str(tmp_path / "r.html")]
    assert os.path.getsize(tmp_path / "r.html") < 15_000_000
    assert (tmp_path / "r.html").read_bytes() == report.read_bytes()
    nothing = subprocess.run(
        [program, "report", "--results", tmp_path], capture_output=True, text=True, check=False
    )
    assert nothing.returncode == 1
    assert "has no coverage or planning rows; allowed is a folder" in nothing.stderr


def test_the_page_asks_for_nothing_from_outside(report):
    text = report.read_text()
    own = text.split('<script type="application/json"')[0]
    assert "http" not in own.replace('http-equiv="Content-Security-Policy"', "")
    assert "connect-src 'none'" in own
