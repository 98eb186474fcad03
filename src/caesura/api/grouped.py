"""Groups and windows, waiting for what is to be computed over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caesura.api.alive import AliveRows
from caesura.api.columns import Given, Total, outputs
from caesura.api.computed import reckoned
from caesura.api.over import OverRows
from caesura.api.tops import By, Descending, chosen, topped
from caesura.api.windowed import Windowed
from caesura.errors import CaesuraError, PlanError
from caesura.misuse import checked_methods, strict
from caesura.ops.aggregate import Totals
from caesura.ops.windows import Count, Grid, Session, Snapshot
from caesura.plan import Duration, Node, here, ticks

if TYPE_CHECKING:
    from caesura.api.stream import Stream

__all__ = ["Grouped", "Windowed"]


@checked_methods
class Windowing:
    """What is cut into windows: a whole stream, or every group of one."""

    _keys: tuple[str, ...] = ()

    @property
    def _node(self) -> Node:
        raise NotImplementedError

    def tumbling(self, size: Duration, *, offset: Duration = 0, thrifty: bool = False) -> Windowed:
        """Windows of one size, laid end to end from ``offset``.

        ``thrifty`` windows of `top_k` and `max` tell the steps above which values no longer count.
        """
        width = self._length("tumbling", size, "window size")
        start = self._length("tumbling", offset, "window offset")
        return Windowed(self._node, self._keys, Grid(width, width, start), thrifty=thrifty)

    def hopping(self, size: Duration, *, every: Duration, offset: Duration = 0) -> Windowed:
        """Windows of one size, one starting ``every`` so often; they may overlap or leave gaps."""
        width = self._length("hopping", size, "window size")
        hop = self._length("hopping", every, "hop")
        start = self._length("hopping", offset, "window offset")
        return Windowed(self._node, self._keys, Grid(width, hop, start))

    def snapshot(self) -> Windowed:
        """The longest stretches on which no event (of the group) starts or ends."""
        return Windowed(self._node, self._keys, Snapshot())

    @strict
    def count_by_start(self, n: int) -> Windowed:
        """From every distinct start over n of them; events belong by their starts."""
        return Windowed(self._node, self._keys, Count(n, "start"))

    @strict
    def count_by_end(self, n: int) -> Windowed:
        """From every distinct end over n of them; events belong by their ends."""
        return Windowed(self._node, self._keys, Count(n, "end"))

    def session(self, gap: Duration, *, longest: Duration | None = None) -> Windowed:
        """Events with less than ``gap`` of silence between them, cut ``longest`` from their start."""
        in_ticks = None if longest is None else self._length("session", longest, "longest session")
        return Windowed(
            self._node, self._keys, Session(self._length("session", gap, "session gap"), in_ticks)
        )

    def _length(self, step: str, duration: Duration, what: str) -> int:
        try:
            return ticks(duration, self._node.time, what)
        except CaesuraError as error:
            raise error.at(step, here()) from None

    def alive(self) -> AliveRows:
        """What is alive, at every instant: ``alive().agg(...)`` is a view that is kept up to date."""
        return AliveRows(self._node, self._keys)

    def over(self, *, rows: int | None = None, range: Duration | None = None) -> OverRows:
        """Every row with what is computed over those before it, in order of time.

        ``rows=10`` are the row itself and the nine before it; ``range="10m"`` are all rows (of the group)
        that start from ten minutes before it up to its own start. `cz.lag` and `cz.lead` need neither.
        """
        if isinstance(rows, bool) or not isinstance(rows, int | None):
            raise PlanError(
                f"rows= is a whole number; got {rows!r}.",
                remedy='Write over(rows=10), or over(range="10m") for a time.',
            ).at("over", here())
        span = None if range is None else self._length("over", range, "range")
        return OverRows(self._node, self._keys, rows, span)

    @strict
    def top(
        self,
        n: int,
        *,
        by: By = (),
        descending: Descending = True,
        row_number: str | None = None,
        rank: str | None = None,
        dense_rank: str | None = None,
    ) -> Stream:
        """The first n rows (of each group) by ``by``, of those alive; greatest first unless told otherwise.

        Rows stay whole. One leaves when a better one comes, and is back when that one goes. Of equals the one
        that began first stands before. ``row_number``, ``rank`` and ``dense_rank`` name columns for ranks.

        >>> import caesura as cz
        >>> rows = [{"t": t, "who": w, "bid": b} for t, w, b in ((1, "a", 3), (2, "b", 5), (4, "c", 4))]
        >>> bids = cz.from_rows(rows, time="t").set_duration(4)
        >>> print(bids.group_by().top(1, by="bid").run())
         LE  RE | who bid |
          1  2  | a   3   | +
          2  6  | b   5   | +
          6  8  | c   4   | +
        """
        from caesura.api.stream import Stream

        names = {"row_number": row_number, "rank": rank, "dense_rank": dense_rank}
        return Stream(topped(self._node, self._keys, chosen(n, by, descending, **names)))

    def totals(
        self,
        /,
        *columns: Given,
        name: str | Total = "",
        **named: Total,
    ) -> Stream:
        """One row (per group) over all rows, on the hull of their lifetimes; columns as in `agg`."""
        from caesura.api.stream import Stream

        made, rest = outputs(columns, named, "totals", {"name": name})
        plan = reckoned(made, self._keys, "totals")
        aggregates: Any = tuple(plan.aggregates.items())
        own = {"group": self._keys, "aggregates": aggregates, "name": rest.get("name", "")}
        return plan.finished(Stream(Totals(inputs=(self._node,), **own)))


@checked_methods
class Grouped(Windowing):
    """A stream whose next steps work per group."""

    def __init__(self, node: Node, keys: tuple[str, ...]) -> None:
        self._source = node
        self._keys = keys

    @property
    def _node(self) -> Node:
        return self._source

    @strict
    def rank(
        self,
        *,
        by: By,
        descending: Descending = True,
        row_number: str | None = None,
        rank: str | None = None,
        dense_rank: str | None = None,
    ) -> Stream:
        """All rows of each group with their ranks among those alive, in columns that are named here."""
        from caesura.api.stream import Stream

        names = {"row_number": row_number, "rank": rank, "dense_rank": dense_rank}
        if not any(names.values()):
            raise PlanError(
                "no rank is asked for.", remedy='Name a column for it: rank(by="v", row_number="place").'
            ).at("rank", here())
        return Stream(topped(self._node, self._keys, chosen(None, by, descending, **names)))
