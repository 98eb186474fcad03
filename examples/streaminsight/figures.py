"""The paper's tables and figures as drawn streams: what goes in, the query, what comes out.

The figures' own numbers are not in the paper's text; these are ours. Run it to see them all.

    python examples/streaminsight/figures.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
from modules import below_threshold, my_average, my_time_weighted_average, peaks

import caesura as cz
from caesura import col
from caesura.events import History
from caesura.ops.input import Input
from caesura.testing import run

SIGNAL = pa.schema([("id", pa.int64()), ("value", pa.float64())])
NAMED = pa.schema([("payload", pa.string())])

PHYSICAL = """
 LE  RE      | payload |
  1  inf     | P1      | +
  1  inf->10 | P1      | -
  1  10->5   | P1      | -
  4  9       | P2      | +
"""
EVENTS = """
 LE  RE | id value |
  1  4  | 1  8.0   | +
  3  11 | 2  60.0  | +
  6  8  | 1  20.0  | +
"""
PRICES = """
 LE  RE | id value |
  0  1  | 1  3.0   | +
  2  3  | 1  7.0   | +
  4  5  | 1  5.0   | +
  6  7  | 1  9.0   | +
  8  9  | 1  4.0   | +
"""


class Figure(NamedTuple):
    """One picture: its input, and the query over it."""

    title: str
    schema: pa.Schema
    drawn: str
    query: Callable[[cz.Stream], cz.Stream]


def _tumbling_count(stream: cz.Stream) -> cz.Stream:
    return stream.tumbling(5).agg(n=cz.count())


FIGURES = [
    Figure("Tables I and II: a physical stream and its history", NAMED, PHYSICAL, lambda s: s),
    Figure("Figure 2 A: a filter keeps lifetimes", SIGNAL, EVENTS, lambda s: s.where(col("value") > 10)),
    Figure(
        "Figure 2 B: counts in tumbling windows", SIGNAL, EVENTS, lambda s: s.tumbling(5).agg(n=cz.count())
    ),
    Figure("Figure 3: hopping windows", SIGNAL, EVENTS, lambda s: s.hopping(6, every=3).agg(n=cz.count())),
    Figure("Figure 4: tumbling windows", SIGNAL, EVENTS, lambda s: s.tumbling(4).agg(n=cz.count())),
    Figure("Figure 5: snapshot windows", SIGNAL, EVENTS, lambda s: s.snapshot().agg(n=cz.count())),
    Figure(
        "Figure 6: count by start, N = 2", SIGNAL, EVENTS, lambda s: s.count_by_start(2).agg(n=cz.count())
    ),
    Figure(
        "Figure 7: clipped in, aligned out",
        SIGNAL,
        EVENTS,
        lambda s: s.tumbling(5).agg(mean=my_time_weighted_average("value"), clip="full"),
    ),
    Figure(
        "Figure 8: fully clipped events of tumbling windows",
        SIGNAL,
        EVENTS,
        lambda s: s.tumbling(5).apply(_lifetimes("id"), clip="full", stamp="clipped"),
    ),
    Figure("MyAverage", SIGNAL, EVENTS, lambda s: s.tumbling(5).agg(mean=my_average("value"))),
    Figure(
        "A chart pattern",
        SIGNAL,
        PRICES,
        lambda s: s.group_by("id").tumbling(10).apply(peaks("value"), clip="full", stamp="clipped"),
    ),
    Figure("The threshold function", SIGNAL, EVENTS, lambda s: s.where(below_threshold)),
]


@cz.udo
def _lifetimes(events: list[cz.Event[int]]) -> list[cz.Event[int]]:
    return list(events)


def answer(figure: Figure) -> str:
    """What comes out, drawn."""
    stream = figure.query(cz.Stream(Input(label="in", payload=figure.schema)))
    return repr(History.of(run(stream, {"in": figure.drawn}), stream.schema))


def main() -> None:
    for figure in FIGURES:
        print(f"{figure.title}\n{figure.drawn.rstrip()}\n  ->\n{answer(figure)}\n")


if __name__ == "__main__":
    main()
