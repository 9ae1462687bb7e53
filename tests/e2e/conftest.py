"""A real browser, for the pages that people look at."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; without it, what needs it is skipped."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine; apt-get install chromium brings it")
    playwright = pytest.importorskip("playwright.sync_api").sync_playwright().start()
    arguments = ("--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader")
    running = playwright.chromium.launch(
        executable_path=CHROMIUM, args=[*arguments, "--disable-background-networking"]
    )
    yield running
    running.close()
    playwright.stop()
