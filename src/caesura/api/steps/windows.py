"""Groups, windows, and patterns over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from caesura.api.grouped import Grouped, Windowing
from caesura.api.keys import keyed
from caesura.api.planned import Planned
from caesura.errors import CaesuraError, PlanError
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
        """Groups the steps behind it by columns, or by what is computed from them.

        Parameters
        ----------
        *keys
            Names of columns, or expressions with an alias: ``"id"``, ``col("a").lower().alias("b")``.
            Without any, all rows are of one group.
        **computed
            Keys that are computed, by name: ``rest=col("age") % 10``.

        Returns
        -------
        Grouped
            The groups, waiting for windows, ``alive``, ``over``, ``top``, ``totals``, ``match_rows`` or
            ``apply``.

        Notes
        -----
        Promises, State, Feedback: those of the step that is taken per group; a key that is computed is a
        column of a `select` before it. Spark: that step runs in buckets by the keys, behind an exchange
        where its input lies by other columns.

        See Also
        --------
        Stream.tumbling : windows laid end to end.
        Stream.alive : a view of what is alive.
        Stream.over : every row with those before it.
        Stream.top : the first rows by a column.
        Stream.totals : one row over everything.
        Stream.match_rows : rows that match a pattern.
        api.Grouped.apply : a plan for every group.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> rows = [{"ts": 1, "id": 7}, {"ts": 2, "id": 9}, {"ts": 3, "id": 8}]
        >>> clicks = cz.from_rows(rows, time="ts")
        >>> print(clicks.group_by(odd=col("id") % 2).tumbling(10).agg(n=cz.count()).run())
         LE  RE | odd n |
          0  10 | 0   1 | +
          0  10 | 1   2 | +
        """
        return Grouped(*keyed(self.node, keys, computed))

    groupBy = groupby = group_by  # noqa: N815 - as PySpark and pandas call it

    def bucket(
        self,
        attr: str,
        size: Duration,
        *,
        slide: Duration | None = None,
        origin: Duration = 0,
        name: str = "",
    ) -> Stream:
        """One row per window of an ordered column, with the window's number in ``wid``.

        Parameters
        ----------
        attr
            The column: whole numbers or times; ``"LE"`` for the stream's own time, by the starts of events.
        size
            How wide a window is.
        slide
            How far apart windows start, by default as wide as they are.
        origin
            Where the numbering begins: a number, or of times how long after 1970.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The rows with ``wid`` behind their columns, once for each window that they are in.

        Notes
        -----
        Promises: what its input promises; progress on the column closes window numbers, so that
        ``group_by("wid")`` behind it is closed with them. State: none. Feedback: stopped at its output, and
        passed on with numbers turned into values. Spark: in the stage of its input, behind the gate of its
        source.

        See Also
        --------
        Stream.tumbling : windows laid end to end.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 3, "mph": 62}, {"ts": 12, "mph": 9}], time="ts")
        >>> print(speeds.bucket("LE", 10).run())
         LE  RE | mph wid |
          3  4  | 62  0   | +
         12  13 | 9   1   | +
        """
        return self._then(_bucketed(self.node, attr, size, slide, origin, name))

    def tumbling_lifetimes(self, size: Duration, *, offset: Duration = 0) -> Stream:
        """Trill's tumbling windows: each event from the end of its window on, as long as a window.

        Parameters
        ----------
        size
            How long a window is.
        offset
            Where one of them starts; by default at zero.

        Returns
        -------
        Stream
            The same rows with lifetimes on the grid, so that what is alive at an instant is one window's
            content.

        Notes
        -----
        Promises: those of its input, with time rounded to the grid. State: none. Feedback: stopped at its
        output, and passed on. Spark: in the stage of its input, behind the gate of its source.

        See Also
        --------
        Stream.chop : lifetimes cut at multiples of a period.
        Stream.hopping_lifetimes : lifetimes on a grid of hops.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 3, "id": 7}, {"ts": 12, "id": 9}], time="ts")
        >>> print(clicks.tumbling_lifetimes(10).run())
         LE  RE | id |
         10  20 | 7  | +
         20  30 | 9  | +
        """
        return self._then(_quantised(self.node, size, size, offset))

    def hopping_lifetimes(self, size: Duration, *, every: Duration, offset: Duration = 0) -> Stream:
        """Trill's hopping windows: each event from the end of its hop on, as long as a window.

        Parameters
        ----------
        size
            How long a window is.
        every
            How far apart windows start.
        offset
            Where one of them starts; by default at zero.

        Returns
        -------
        Stream
            The same rows with lifetimes on the grid; ``alive().agg(...)`` behind it is a result per hop.

        Notes
        -----
        Promises, State, Feedback, Spark: as `tumbling_lifetimes`.

        See Also
        --------
        Stream.start_at : starts rounded up.
        Stream.tumbling_lifetimes : lifetimes on a grid of windows.
        Stream.hopping : windows that overlap.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 3, "id": 7}, {"ts": 8, "id": 9}], time="ts")
        >>> print(clicks.hopping_lifetimes(10, every=5).run())
         LE  RE | id |
          5  15 | 7  | +
         10  20 | 9  | +
        """
        return self._then(_quantised(self.node, size, every, offset))

    @strict
    def limit(self, n: int) -> Stream:
        """The first n rows in order of time, of those alive.

        Parameters
        ----------
        n
            How many rows.

        Returns
        -------
        Stream
            At every instant the n rows that began first.

        Notes
        -----
        Promises, State, Feedback, Spark: as `top` without groups, which it calls.

        See Also
        --------
        Stream.top : the first rows by a column.
        api.Grouped.rank : all rows with their ranks.
        api.Windowed.top : the first rows of each window.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").set_duration(5)
        >>> print(visits.limit(1).run(output="final"))
         LE  RE | id |
          1  6  | 7  | +
          6  9  | 9  | +
        """
        return self.top(n)

    def match(
        self,
        query: qre.Query | Automaton,
        *,
        order_by: Sequence[str] = (),
        ticks_every: Duration | None = None,
        lives: Literal["point", "until_next"] = "point",
        carry: Sequence[str] = (),
        name: str = "",
    ) -> Stream:
        """The values of a pattern over the events in the order of time.

        Parameters
        ----------
        query
            A quantitative regular expression, see `caesura.qre`; or an automaton with registers, made by
            `cz.automaton`.
        order_by
            Columns that order events of one time.
        ticks_every
            A tick is put into the stream after each such time, for patterns that read ticks.
        lives
            How long a value lives: a ``"point"`` at the event that gave it, or ``"until_next"``.
        carry
            Of an automaton: columns of the last item that leave with a match.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            A row for each value, or for each match of the automaton.

        Notes
        -----
        Promises: on time, what its input promises; on keys of a partition that is closed. State: events
        that wait for their turn in the order of time; of an expression, its registers, per key of a
        partition that is in the middle of its pattern; of an automaton, the runs that are open, until
        ``within`` frees them. Feedback: on the keys of a partition, where answers are points and there are
        no ticks, results are given up whole and the input is told; else it is stopped at the output. Spark:
        in buckets by the partition's keys; without any, in one.

        See Also
        --------
        Stream.match_rows : rows that match a pattern.
        api.Grouped.match : an automaton over each group alone.
        automaton : an automaton with registers.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col, qre
        >>> clicks = cz.from_rows([{"ts": 1, "v": 5}, {"ts": 2, "v": 6}, {"ts": 4, "v": 1}], time="ts")
        >>> items = qre.items(clicks.schema)
        >>> great = qre.iter(qre.atom(col("v") > 3, col("v"), items=items), qre.sum())
        >>> fall = qre.split(great, qre.match(col("v") <= 3, items=items), op={"total": col("_0")})
        >>> print(clicks.match(fall).run())
         LE  RE | total |
          4  5  | 11    | +
        """
        from caesura import qre
        from caesura.fixpoint.automaton import Automaton, match

        if isinstance(query, Automaton):
            if ticks_every is not None or lives != "point":
                raise PlanError(
                    "ticks_every= and lives= are for quantitative expressions: an automaton says itself how "
                    "long a match takes.",
                    remedy="Leave them out; or write a pattern of caesura.qre.",
                ).at(name or "match", here())
            return self._then(
                match(self.node, query, order_by=tuple(order_by), carried=tuple(carry), name=name)
            )
        if carry:
            raise PlanError(
                "carry= is for automata: a quantitative expression says itself what leaves.",
                remedy="Put the columns into its value, for example op={'v': col('v')}.",
            ).at(name or "qre", here())

        options: dict[str, Any] = {
            "order_by": order_by,
            "ticks_every": ticks_every,
            "lives": lives,
            "name": name,
        }
        return self._then(qre.over(self.node, query, **options))


def _bucketed(
    source: Node, attr: str, size: Duration, slide: Duration | None, origin: Duration, name: str
) -> Bucket:
    """The window numbers of a column."""
    known = attr in source.schema.names
    time = source.time if attr == LE else source.schema.field(attr).type if known else pa.int64()
    try:
        width = ticks(size, time, "bucket size")
        step = width if slide is None else ticks(slide, time, "slide")
        plain = isinstance(origin, int) and pa.types.is_integer(time)
        begin = origin if plain else ticks(origin, time, "origin")
    except CaesuraError as error:
        raise error.at(name or "bucket", here()) from None
    return Bucket(inputs=(source,), attr=attr, size=width, slide=step, origin=begin, name=name)  # type: ignore[arg-type]


def _quantised(source: Node, size: Duration, every: Duration, offset: Duration) -> Quantise:
    """Lifetimes that lie on a grid."""
    try:
        width, hop, start = (
            ticks(d, source.time, w)
            for d, w in ((size, "window size"), (every, "hop"), (offset, "window offset"))
        )
    except CaesuraError as error:
        raise error.at("lifetimes", here()) from None
    return Quantise(inputs=(source,), size=width, period=hop, offset=start, exact=True)
