"""How property tests run: the same examples every time here; `make soak` draws new ones."""

from __future__ import annotations

import gc
import os

import pytest
from depth import DEPTH
from hypothesis import HealthCheck, Phase, settings
from thin import quickened, thinned

os.environ["BROWSER"] = "true"  # no test opens a page on the desktop of whoever runs it
FOUND = (Phase.explicit, Phase.reuse, Phase.generate)

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, phases=FOUND, suppress_health_check=list(HealthCheck)
)
settings.register_profile("searching", deadline=None, print_blob=True)
settings.load_profile("searching" if os.environ.get("CAESURA_SEARCH") else "repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="all cases of the searches that are thinned")
    parser.addoption("--quick", action="store_true", help="a cross-section: one test in four, one case each")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a search marked ``thin`` a part, unless a test is asked for by its name."""
    if config.getoption("quick", default=False):
        taken = set(chosen := quickened(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in taken])
        items[:] = chosen
        return
    named = config.getoption("keyword") or any("::" in arg for arg in config.args)
    if DEPTH == 1 and not named and not config.getoption("whole", default=False):
        items[:], left = thinned(items)
        config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    """What is loaded by now stays: the collector need not look through it, nor so often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
