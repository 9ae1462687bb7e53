"""The documents as a site: built strictly, whole, and without a word to the network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.browser import listen

ROOT = Path(__file__).parents[2]
ARTEFACTS = ROOT / "out" / "screenshots"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    program = Path(sys.executable).parent / "mkdocs"
    command = [program, "build", "--strict", "--site-dir", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_document_is_a_page_and_loads_nothing_from_elsewhere(site):
    pages = {path.stem for path in site.glob("*.html")} - {"404"}
    assert pages == {path.stem for path in (ROOT / "docs").glob("*.md")}
    for page in site.glob("*.html"):
        loaded = re.findall(
            r"<(?:script|link|img|iframe)[^>]* (?:src|href)=\"?(https?:[^\" >]*)", page.read_text()
        )
        assert loaded == [], page.name


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=("desktop", "phone"))
def test_the_site_opens_in_a_browser(browser, site, width, height):
    context = browser.new_context(viewport={"width": width, "height": height})
    tab = context.new_page()
    noise = listen(tab)
    for name in ("index", "quickstart", "results-planar"):
        tab.goto((site / f"{name}.html").as_uri())
        tab.wait_for_selector("h1")
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert tab.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 100)"), name
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    tab.goto((site / "index.html").as_uri())
    tab.screenshot(path=str(ARTEFACTS / f"site-{width}.png"), full_page=True)
    context.close()
    assert noise == []
