"""A real Chromium for the tests of the console; what is not there is not run, and says why."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SCREENSHOTS = Path("build") / "console"
FETCH_SECONDS = 600


def chromium() -> str:
    """The browser: that of `CAESURA_CHROMIUM`, one on the path, or Debian's package, fetched once."""
    found = os.environ.get("CAESURA_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found:
        return found
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        pytest.skip(
            "not run: no chromium; install it (apt-get install chromium), or name it in CAESURA_CHROMIUM"
        )
    command = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    there = shutil.which("chromium")
    if there is None:
        pytest.skip(f"not run: chromium could not be fetched: {done.stderr.strip()[-300:]}")
    return there


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="not run: playwright is not installed")
    with api.sync_playwright() as driver:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        running = driver.chromium.launch(executable_path=chromium(), args=root, timeout=60_000)
        yield running
        running.close()


@pytest.fixture(params=["light", "dark"])
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A window that fails the test where its scripts fail or its policy stops something."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, color_scheme=request.param)
    context.set_default_timeout(20_000)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield opened
    context.close()
    assert complaints == []


@pytest.fixture
def shot(page: Any, request: pytest.FixtureRequest) -> Any:
    """Keeps what the window shows, under the name of the test."""

    def keep(what: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        scheme = request.node.callspec.params["page"]
        page.screenshot(path=SCREENSHOTS / f"{what}-{scheme}.png")

    return keep


def violations(page: Any) -> list[str]:
    """What axe finds that keeps somebody from using the page."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['help']} ({one['nodes'][0]['html'][:200]})" for one in found]
