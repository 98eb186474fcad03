"""Groups, windows, and patterns over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from caesura.api.grouped import Grouped, Windowing
from caesura.api.keys import keyed
from caesura.api.planned import Planned
from caesura.errors import CaesuraError
from caesura.expr import Expr
from caesura.misuse import strict
from caesura.ops.windows import Bucket, Quantise
from caesura.plan import Duration, Node, here, ticks
from caesura.plan.feedback import LE

if TYPE_CHECKING:
    from caesura import qre
    from caesura.api.stream import Stream
    from caesura.fixpoint.automaton import Automaton


class WindowSteps(Planned, Windowing):
    """Groups, windows, and patterns over time."""

    @property
    def _node(self) -> Node:
        return self.node

    def group_by(self, /, *keys: str | Expr, **computed: str | Expr) -> Grouped:
        """Groups the steps behind it by columns or by what is computed from them.

        ``group_by("id")``, ``group_by(rest=col("age") % 10)``, ``group_by(col("a").lower().alias("b"))``.
        """
        return Grouped(*keyed(self.node, keys, computed))

    groupBy = groupby = group_by  # noqa: N815 - as PySpark and pandas call it

    def bucket(
        self, attr: str, size: Duration, *, slide: Duration | None = None, origin: int = 0, name: str = ""
    ) -> Stream:
        """One row per window of an ordered column, with the window's number in ``wid``.

        ``bucket("LE", "1m")`` takes windows of the stream's own time, by the starts of events.
        """
        return self._then(_bucketed(self.node, attr, size, slide, origin, name))

    def tumbling_lifetimes(self, size: Duration, *, offset: Duration = 0) -> Stream:
        """Trill's tumbling windows: each event from the end of its window on, as long as a window."""
        return self._then(_quantised(self.node, size, size, offset))

    def hopping_lifetimes(self, size: Duration, *, every: Duration, offset: Duration = 0) -> Stream:
        """Trill's hopping windows: each event from the end of its hop on, as long as a window."""
        return self._then(_quantised(self.node, size, every, offset))

    @strict
    def limit(self, n: int) -> Stream:
        """The first n rows in order of time, of those alive."""
        return self.top(n)

    def match(
        self,
        query: qre.Query | Automaton,
        *,
        order_by: Sequence[str] = (),
        ticks_every: Duration | None = None,
        lives: Literal["point", "until_next"] = "point",
        name: str = "",
    ) -> Stream:
        """The values of a quantitative regular expression over the events in the order of time.

        See `caesura.qre` for the language. Or the matches of an automaton with registers, made by
        ``cz.automaton``.
        """
        from caesura import qre
        from caesura.fixpoint.automaton import Automaton, match

        if isinstance(query, Automaton):
            return self._then(match(self.node, query, order_by=tuple(order_by), name=name))

        every = None if ticks_every is None else self._ticks(ticks_every, "tick period", name or "qre")
        options: dict[str, Any] = {"order_by": order_by, "ticks_every": every, "lives": lives, "name": name}
        return self._then(qre.over(self.node, query, **options))


def _bucketed(
    source: Node, attr: str, size: Duration, slide: Duration | None, origin: int, name: str
) -> Bucket:
    """The window numbers of a column."""
    known = attr in source.schema.names
    time = source.time if attr == LE else source.schema.field(attr).type if known else pa.int64()
    try:
        width = ticks(size, time, "bucket size")
        step = width if slide is None else ticks(slide, time, "slide")
    except CaesuraError as error:
        raise error.at(name or "bucket", here()) from None
    return Bucket(inputs=(source,), attr=attr, size=width, slide=step, origin=origin, name=name)


def _quantised(source: Node, size: Duration, every: Duration, offset: Duration) -> Quantise:
    """Lifetimes that lie on a grid."""
    try:
        width, hop, start = (
            ticks(d, source.time, w)
            for d, w in ((size, "window size"), (every, "hop"), (offset, "window offset"))
        )
    except CaesuraError as error:
        raise error.at("lifetimes", here()) from None
    return Quantise(inputs=(source,), size=width, period=hop, offset=start)
