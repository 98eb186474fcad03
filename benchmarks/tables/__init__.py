"""What each table and plot of the documentation says, by the name that stands in its place."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.figures import Results

TABLES: dict[str, Callable[[Results], str]] = {}
PLOTS: dict[str, Callable[[Results], str]] = {}
