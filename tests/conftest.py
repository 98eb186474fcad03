"""How property tests run: the same examples every time here; `make soak` draws new ones."""

from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, Phase, settings

os.environ["BROWSER"] = "true"  # no test opens a page on the desktop of whoever runs it
FOUND = (Phase.explicit, Phase.reuse, Phase.generate)

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, phases=FOUND, suppress_health_check=list(HealthCheck)
)
settings.register_profile("searching", deadline=None, print_blob=True)
settings.load_profile("searching" if os.environ.get("CAESURA_SEARCH") else "repeatable")


def pytest_collection_finish() -> None:
    """What is loaded by now stays: the collector need not look through it, nor so often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
