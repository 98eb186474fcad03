"""Windows without events, on request: a row for every known key and window of a grid.

     LE  RE | id |        group_by("id").tumbling(10).agg(n=cz.count(), empty=True)
      3   4 | 7  | +          0  10 | 7 1 | +
     22  23 | 7  | +   ->    10  20 | 7 0 | +
                             20  30 | 7 1 | +

A key is known from the first window of its first event on, and for ever. Nothing new runs for it: the keys
are cut at the grid as progress reaches its windows, and joined with what windows with events give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from caesura.errors import PlanError
from caesura.expr import col, lit, start
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.windows import Frame, Grid
from caesura.plan import here

if TYPE_CHECKING:
    from caesura.api.stream import Stream

WINDOW = "_window"
COUNTS = ("count", "count_distinct", "approx_count_distinct")
"""Aggregates that are 0 of nothing; all others are null."""


def with_empty(
    windows: Stream,
    keys: Stream,
    by: tuple[str, ...],
    frame: Frame,
    outputs: Mapping[str, Any],
    *,
    known: bool,
) -> Stream:
    """The windows, and a row for each that a key has no events in."""
    if not isinstance(frame, Grid):
        raise PlanError(
            f"{frame.kind} windows lie where events are, so none is empty.",
            remedy="Leave empty out, or take tumbling or hopping windows.",
        ).at(frame.kind, here())
    absent = [name for name in by if name not in keys.schema.names]
    if absent:
        raise PlanError(
            f"the stream of keys has no column '{absent[0]}'.",
            remedy=f"Give a stream that has {', '.join(by)}.",
        ).at(frame.kind, here())
    one = {} if by else {WINDOW: lit(0)}
    seen = keys.select(*by, **one)
    if known:  # from the start of the first window that an event is in
        seen = seen.tumbling_lifetimes(frame.hop, offset=frame.offset).shift(-frame.size).forever()
    alive = seen.distinct().shift(-frame.offset).chop(frame.hop).shift(frame.offset)
    grid = alive.set_duration(frame.size).select(*by, **{WINDOW: start()})
    met = grid.join(windows.with_columns({WINDOW: start()}), on=[*by, WINDOW], how="full")
    filled = {name: _filled(name, output) for name, output in outputs.items()}
    return met.select(*by, **filled)


def _filled(name: str, output: Any) -> Any:
    counts = isinstance(output, Aggregate) and output.kind in COUNTS
    return col(name).coalesce(0) if counts else col(name)
