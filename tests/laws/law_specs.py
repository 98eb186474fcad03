"""What the cases of the law suite draw, and how far and how large they may be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caesura.ops.aggregate import Aggregate
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.testing import oracles
from caesura.testing.spec import InputSpec

READINGS = InputSpec({"id": "key", "v": "float"}, key="id")
SMALL = InputSpec({"id": "key", "s": "name"}, key="id")
NAMED = InputSpec({"id": "key", "n": "int", "s": "str"}, key="id")


def none(_: tuple[int, ...]) -> int:
    """No row may be held."""
    return 0


def slowest(ctis: tuple[int, ...]) -> int:
    """The output is as far as the slowest input."""
    return min(ctis)


def moved(by: int) -> Any:
    """The output is as far as the slowest input, and some ticks."""
    return lambda ctis: min(ctis) if min(ctis) in (MIN_TIME, INFINITY) else min(INFINITY - 2, min(ctis) + by)


END, BEGINNING = INFINITY - 25, MIN_TIME + 40
"""Origins of rows that live at the ends of time."""


def held(factor: int) -> Any:
    """So many rows for each one that lives."""
    return lambda live: factor * sum(live)


LEFT = InputSpec({"id": "key", "v": "float"}, key="id", max_rows=4)
RIGHT = InputSpec({"other": "key", "s": "name"}, key="other", max_rows=4)
ROW_KEYED = InputSpec({"id": "key", "n": "int"}, key="n", max_rows=4)


FINITE = replace(LEFT, lifetimes="finite")
FINITE_RIGHT = replace(RIGHT, lifetimes="finite")

FLOATS = InputSpec({"id": "key", "v": "float"}, key="id")
INTS = InputSpec({"id": "key", "v": "int"}, key="id")


WINDOWED = (("n", Aggregate("count", None)),)


def windowed(rows: oracles.Rows) -> oracles.Rows:
    """Counts per id and window of 5."""
    return oracles.tumbling(rows, ["id"], 5, 0, {"n": ("count", None)})
