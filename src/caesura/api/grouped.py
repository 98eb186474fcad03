"""Groups and windows, waiting for what is to be computed over them."""

from __future__ import annotations

from collections.abc import Callable
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
    from collections.abc import Mapping, Sequence

    from caesura.api.matching import Written
    from caesura.api.stream import Stream
    from caesura.ops.match import Skip
    from caesura.ops.match.node import Shown
    from caesura.ops.match.pattern import RowPattern

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

        ``rows=10`` are the row itself and the nine before it, ``rows=cz.INFINITY`` it and all before it;
        ``range="10m"`` are all rows (of the group) that start from ten minutes before it up to its own start.
        `cz.lag` and `cz.lead` need neither.
        """
        if isinstance(rows, bool) or not isinstance(rows, int | None):
            raise PlanError(
                f"rows= is a whole number; got {rows!r}.",
                remedy='Write over(rows=10), or over(range="10m") for a time.',
            ).at("over", here())
        span = None if range is None else self._length("over", range, "range")
        return OverRows(self._node, self._keys, rows, span)

    def match_rows(
        self,
        pattern: str | RowPattern,
        *,
        define: Written | None = None,
        measures: Written | None = None,
        rows: Shown = "one",
        skip: str | Skip = "past last row",
        within: Duration | None = None,
        order: str | Sequence[str] = (),
        subsets: Mapping[str, Sequence[str]] | None = None,
    ) -> Stream:
        """Rows (of each group) that match a pattern, one behind the other in order of time.

        ``define`` has the conditions of the pattern's variables, ``measures`` what is shown of a match:
        ``col("UP.price")`` is that of the last row of UP, `cz.matched` has other rows, aggregates are of all
        rows so far. ``rows="all"`` shows all rows of a match. It is SQL's MATCH_RECOGNIZE; `docs/sql.md` says
        how matches are chosen, when they are final, and what it costs.

        >>> import caesura as cz
        >>> from caesura import col, matched
        >>> prices = cz.from_rows([{"t": t, "v": v} for t, v in enumerate([5, 3, 2, 6, 7, 1])], time="t")
        >>> dips = prices.match_rows(
        ...     "TOP DOWN+ UP+",
        ...     define={"DOWN": col("v") < matched.prev("v"), "UP": col("v") > matched.prev("v")},
        ...     measures={"top": col("TOP.v"), "bottom": col("DOWN.v"), "n": cz.count()},
        ... )
        >>> print(dips.run())
         LE  RE | top bottom n |
          4  5  | 5   2      5 | +
        """
        from caesura.api.matching import matching
        from caesura.api.stream import Stream

        length = None if within is None else self._length("match_rows", within, "within")
        try:
            return Stream(
                matching(
                    self._node,
                    self._keys,
                    pattern,
                    define=define or {},
                    measures=measures or {},
                    rows=rows,
                    skip=skip,
                    within=length,
                    order=order,
                    subsets=subsets or {},
                )
            )
        except CaesuraError as error:
            raise error.at("match_rows", here()) from None

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

    def apply(self, function: Callable[[Stream], Stream]) -> Stream:
        """What a function of streams makes of every group alone, with the keys in front: group and apply.

        >>> import caesura as cz
        >>> rows = [{"t": t, "k": k} for t, k in ((1, "a"), (2, "b"), (5, "a"))]
        >>> grouped = cz.from_rows(rows, time="t").group_by("k")
        >>> print(grouped.apply(lambda group: group.tumbling(10).agg(n=cz.count())).run())
         LE  RE | k n |
          0  10 | a 2 | +
          0  10 | b 1 | +
        """
        from caesura.api.per_group import applied

        return applied(self._node, self._keys, function)

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
