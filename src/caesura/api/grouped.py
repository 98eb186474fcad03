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
    from caesura.fixpoint.automaton import Automaton
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
        """Windows of one size, laid end to end.

        An event belongs to every window that its lifetime touches.

        Parameters
        ----------
        size
            How long a window is: ``"1m"``, ``10`` ticks.
        offset
            Where one of them starts; by default at zero.
        thrifty
            Whether windows of `cz.top_k` or `cz.max` alone tell the steps above which values no longer
            count.

        Returns
        -------
        Windowed
            The windows, waiting for ``agg``, ``apply``, ``top`` or ``limit``.

        Notes
        -----
        Promises: on time, the start of the earliest window that is still open; on the group's columns, what
        its input promises. State: a partial result for each open window and group; it goes when the window
        can no longer change. Feedback: on the group's columns and on time, windows are given up whole, with
        their state, and the input is told; on values of results it is stopped at the output. Spark: in
        buckets by the group's columns; without any, added up in every bucket and put together in one, where
        the aggregates allow that.

        See Also
        --------
        Stream.chop : lifetimes cut at multiples of a period.
        Stream.hopping : windows that overlap.
        Stream.session : windows that end after a silence.
        Stream.snapshot : windows between changes.
        Stream.count_by_start : windows of so many starts.
        Stream.bucket : the number of a window, as a column.
        api.Windowed.agg : one row per group and window.
        api.Windowed.top : the first rows of each window.
        api.Windowed.apply : an operator of your own over windows.
        Stream.totals : one row over everything.
        Stream.group_by : groups for windows, tops and patterns.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "mph": 62}, {"ts": 8, "mph": 48}, {"ts": 12, "mph": 9}]
        >>> speeds = cz.from_rows(rows, time="ts")
        >>> print(speeds.tumbling(10).agg(n=cz.count(), top=cz.max("mph")).run())
         LE  RE | n top |
          0  10 | 2 62  | +
         10  20 | 1 9   | +
        """
        width = self._length("tumbling", size, "window size")
        start = self._length("tumbling", offset, "window offset")
        return Windowed(self._node, self._keys, Grid(width, width, start), thrifty=thrifty)

    def hopping(self, size: Duration, *, every: Duration, offset: Duration = 0) -> Windowed:
        """Windows of one size, one starting every so often; they may overlap or leave gaps.

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
        Windowed
            The windows, waiting for ``agg``, ``apply``, ``top`` or ``limit``.

        Notes
        -----
        Promises, Feedback, Spark: as `tumbling`. State: a partial result for each open window and group;
        for final output of points, one for each stretch that windows share, so that a row is added once
        however many windows it is in.

        See Also
        --------
        Stream.tumbling : windows laid end to end.
        Stream.session : windows that end after a silence.
        Stream.snapshot : windows between changes.
        Stream.hopping_lifetimes : lifetimes on a grid of hops.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 3, "id": 7}, {"ts": 8, "id": 9}], time="ts")
        >>> print(clicks.hopping(10, every=5).agg(n=cz.count()).run())
         LE  RE | n |
         -5  5  | 1 | +
          0  10 | 2 | +
          5  15 | 1 | +
        """
        width = self._length("hopping", size, "window size")
        hop = self._length("hopping", every, "hop")
        start = self._length("hopping", offset, "window offset")
        return Windowed(self._node, self._keys, Grid(width, hop, start))

    def snapshot(self) -> Windowed:
        """Windows between changes: the longest stretches on which no event of the group starts or ends.

        Returns
        -------
        Windowed
            The windows, waiting for ``agg``, ``apply``, ``top`` or ``limit``.

        Notes
        -----
        Promises: on time and on the group's columns, what its input promises. State: the events that are
        alive, and the results of windows that may still change. Feedback: on the group's columns windows
        are given up whole, with their state, and the input is told. Spark: in buckets by the group's
        columns; without any, in one.

        See Also
        --------
        Stream.tumbling : windows laid end to end.
        Stream.hopping : windows that overlap.
        Stream.session : windows that end after a silence.
        Stream.alive : a view of what is alive.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").set_duration(5)
        >>> print(visits.snapshot().agg(n=cz.count()).run(output="final"))
         LE  RE | n |
          1  4  | 1 | +
          4  6  | 2 | +
          6  9  | 1 | +
        """
        return Windowed(self._node, self._keys, Snapshot())

    @strict
    def count_by_start(self, n: int) -> Windowed:
        """Windows of so many starts: from every distinct start over n of them.

        An event belongs to a window if its start lies in it.

        Parameters
        ----------
        n
            How many distinct starts a window has, at least 1.

        Returns
        -------
        Windowed
            The windows, waiting for ``agg``, ``apply``, ``top`` or ``limit``.

        Notes
        -----
        Promises: on time, the start of the earliest window that is not full; on the group's columns, what
        its input promises. State: the events of windows that are not full; the last of every group goes
        only with a promise on the group's columns, so `check` asks for one, or for few groups. Feedback: on
        the group's columns windows are given up whole, with their state, and the input is told. Spark: in
        buckets by the group's columns; without any, in one.

        See Also
        --------
        Stream.count_by_end : windows of so many ends.
        Stream.tumbling : windows laid end to end.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "mph": 62}, {"ts": 8, "mph": 48}, {"ts": 12, "mph": 9}]
        >>> speeds = cz.from_rows(rows, time="ts")
        >>> print(speeds.count_by_start(2).agg(n=cz.count(), total=cz.sum("mph")).run(output="final"))
         LE  RE | n total |
          3  9  | 2 110   | +
          8  13 | 2 57    | +
        """
        return Windowed(self._node, self._keys, Count(n, "start"))

    @strict
    def count_by_end(self, n: int) -> Windowed:
        """Windows of so many ends: from every distinct end over n of them.

        An event belongs to a window if its end lies in it.

        Parameters
        ----------
        n
            How many distinct ends a window has, at least 1.

        Returns
        -------
        Windowed
            The windows, waiting for ``agg``, ``apply``, ``top`` or ``limit``.

        Notes
        -----
        Promises, State, Feedback, Spark: as `count_by_start`, with ends in the place of starts.

        See Also
        --------
        Stream.count_by_start : windows of so many starts.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 1, "till": 9, "id": 7}, {"ts": 2, "till": 4, "id": 9}]
        >>> visits = cz.from_rows(rows, time="ts", end="till")
        >>> print(visits.count_by_end(2).agg(n=cz.count()).run(output="final"))
         LE  RE | n |
          4  10 | 2 | +
        """
        return Windowed(self._node, self._keys, Count(n, "end"))

    def session(self, gap: Duration, *, longest: Duration | None = None) -> Windowed:
        """Sessions: events with less than a gap of silence between them.

        Parameters
        ----------
        gap
            A silence as long as this ends a session.
        longest
            A session is cut so long from its start; without it, it goes on for as long as events come.

        Returns
        -------
        Windowed
            The sessions, waiting for ``agg``, ``apply``, ``top`` or ``limit``.

        Notes
        -----
        Promises: on time, the start of the earliest session that may still change; on the group's columns,
        what its input promises. State: the events of open sessions. Without ``longest`` one session may be
        open for ever, and `check` says so. Feedback: on the group's columns sessions are given up whole,
        with their state, and the input is told. Spark: in buckets by the group's columns; without any, in
        one.

        See Also
        --------
        Stream.tumbling : windows laid end to end.
        Stream.hopping : windows that overlap.
        Stream.snapshot : windows between changes.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 3, "id": 7}, {"ts": 5, "id": 7}, {"ts": 30, "id": 7}], time="ts")
        >>> print(clicks.group_by("id").session(10, longest=60).agg(n=cz.count()).run(output="final"))
         LE  RE | id n |
          3  6  | 7  2 | +
         30  31 | 7  1 | +
        """
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
        """What is alive, at every instant: ``alive().agg(...)`` is a view that is kept up to date.

        Returns
        -------
        AliveRows
            The rows (of each group) that are alive, waiting for ``agg`` or ``apply``.

        Notes
        -----
        Promises, State, Feedback, Spark: those of its ``agg``.

        See Also
        --------
        Stream.snapshot : windows between changes.
        api.AliveRows.agg : one row per group, kept up to date.
        api.AliveRows.apply : an operator of your own over what is alive.
        Stream.latest : the current row of every key.
        Stream.group_by : groups for windows, tops and patterns.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").forever()
        >>> print(visits.alive().agg(n=cz.count()).run(output="final"))
         LE  RE  | n |
          1  4   | 1 | +
          4  inf | 2 | +
        """
        return AliveRows(self._node, self._keys)

    def over(self, *, rows: int | None = None, range: Duration | None = None) -> OverRows:
        """Every row with what is computed over those before it, in order of time.

        Parameters
        ----------
        rows
            How many rows count, with the row itself: ``10`` are it and the nine before it, ``cz.INFINITY``
            it and all before it.
        range
            Or for how long: ``"10m"`` are all rows (of the group) that start from ten minutes before it up
            to its own start. `cz.lag` and `cz.lead` need neither.

        Returns
        -------
        OverRows
            The rows, waiting for ``agg``.

        Notes
        -----
        Promises, State, Feedback, Spark: those of its ``agg``.

        See Also
        --------
        api.OverRows.agg : every row with columns of its frame.
        api.OverRows.with_columns : the same, under another name.
        lag : a value of an earlier row.
        Stream.group_by : groups for windows, tops and patterns.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "mph": 62}, {"ts": 8, "mph": 48}, {"ts": 12, "mph": 9}]
        >>> speeds = cz.from_rows(rows, time="ts")
        >>> print(speeds.over(range=5).agg(mean=cz.avg("mph")).run())
         LE  RE | mph mean |
          3  4  | 62  62.0 | +
          8  9  | 48  55.0 | +
         12  13 | 9   28.5 | +
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

        It is SQL's MATCH_RECOGNIZE; the page on SQL says how matches are chosen and when they are final.

        Parameters
        ----------
        pattern
            Variables in a regular expression: ``"TOP DOWN+ UP+"``.
        define
            The conditions of variables; one without a condition matches any row. ``col("UP.price")`` is
            that of the last row of UP, `cz.matched` has other rows, aggregates are of all rows so far.
        measures
            What is shown of a match, by column.
        rows
            ``"one"`` row for a match, or ``"all"`` its rows; ``"all without empty"``, ``"all with
            unmatched"``.
        skip
            Where the next match may begin: ``"past last row"``, ``"to next row"``, ``"to first A"``, ``"to
            last A"``.
        within
            How long a match may take.
        order
            Columns that order rows of one time.
        subsets
            Names for several variables together: ``{"MOVE": ["DOWN", "UP"]}``.

        Returns
        -------
        Stream
            A row per match, at its last row; or its rows, with the measures.

        Notes
        -----
        Promises: on time and on the group's columns, what its input promises, held back by matches that are
        open. State: the rows of open matches; without ``within``, a match may be open for ever, and `check`
        says so. Feedback: on the group's columns matches are given up whole, with their state, and the
        input is told. Spark: in buckets by the group's columns; without any, in one.

        See Also
        --------
        Stream.match : patterns with values, and automata.
        Stream.group_by : groups for windows, tops and patterns.
        api.matched.prev : a value of an earlier row.
        api.matched.first : the first row.
        api.matched.classifier : the variable of a row.

        Examples
        --------
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
        """The first n rows (of each group), of those alive.

        Rows stay whole. One leaves when a better one comes, and is back when that one goes. Of equals the
        one that began first stands before.

        Parameters
        ----------
        n
            How many rows.
        by
            The columns that order them; without any, the order of time.
        descending
            Whether the greatest stand first; one answer, or one for each column.
        row_number
            A column for the place of a row, from 1 on; none unless it is named.
        rank
            A column for the rank, where equals share one and leave a gap.
        dense_rank
            A column for the rank, where equals share one and leave no gap.

        Returns
        -------
        Stream
            The rows that stand first, each for as long as it does.

        Notes
        -----
        Promises: on time and on the group's columns, what its input promises. State: the rows to their
        ends; where none is taken back, only those among the first. Feedback: on the group's columns rows
        are given up with their state, and the input is told; without groups it is stopped at the output.
        Spark: in buckets by the group's columns; without any, in one.

        See Also
        --------
        Stream.dropDuplicates : PySpark's name.
        Stream.limit : the first rows in order of time.
        api.Grouped.rank : all rows with their ranks.
        api.Windowed.top : the first rows of each window.
        Stream.group_by : groups for windows, tops and patterns.

        Examples
        --------
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
        skewed: bool | Total = False,
        name: str | Total = "",
        **named: Total,
    ) -> Stream:
        """One row (per group) over all rows, on the hull of their lifetimes.

        Parameters
        ----------
        *columns
            Aggregates, or mappings of them, as in ``agg``.
        skewed
            Whether some keys have so many rows that they shall be spread over all buckets, as in ``agg``.
        name
            What the step is called; an aggregate of one of these names is a column.
        **named
            Aggregates by the name of their column: ``n=cz.count()``.

        Returns
        -------
        Stream
            A row per group, from the first start to the last end.

        Notes
        -----
        Promises: on the group's columns, what its input promises; an open group holds time back at its
        first start. State: a result per group, which goes only with a promise on the group's columns:
        `check` says so. Feedback: on the group's columns results are given up with their state, and the
        input is told. Spark: in buckets by the group's columns; without any, in one.

        See Also
        --------
        Stream.tumbling : windows laid end to end.
        Stream.group_by : groups for windows, tops and patterns.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 3, "id": 7, "mph": 62}, {"ts": 8, "id": 7, "mph": 48}], time="ts")
        >>> print(speeds.group_by("id").totals(n=cz.count(), top=cz.max("mph")).run())
         LE  RE | id n top |
          3  9  | 7  2 62  | +
        """
        from caesura.api.stream import Stream

        made, rest = outputs(columns, named, "totals", {"name": name, "skewed": skewed})
        plan = reckoned(made, self._keys, "totals")
        aggregates: Any = tuple(plan.aggregates.items())
        own = {"group": self._keys, "aggregates": aggregates, **rest}
        return plan.finished(Stream(Totals(inputs=(self._node,), **own)))


@checked_methods
class Grouped(Windowing):
    """A stream whose next steps work per group; made by `Stream.group_by`.

    It has every window, ``alive``, ``over``, ``match_rows``, ``top`` and ``totals`` that a stream has, per
    group.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = [{"ts": 1, "id": 7}, {"ts": 2, "id": 9}, {"ts": 3, "id": 7}]
    >>> print(cz.from_rows(rows, time="ts").group_by("id").tumbling(10).agg(n=cz.count()).run())
     LE  RE | id n |
      0  10 | 7  2 | +
      0  10 | 9  1 | +
    """

    def __init__(self, node: Node, keys: tuple[str, ...]) -> None:
        self._source = node
        self._keys = keys

    @property
    def _node(self) -> Node:
        return self._source

    def apply(self, function: Callable[[Stream], Stream]) -> Stream:
        """What a function of streams makes of every group alone: group and apply.

        Parameters
        ----------
        function
            It gets a stream, and gives one made of it; every step of it works per group.

        Returns
        -------
        Stream
            The rows of all groups, with the keys in front.

        Notes
        -----
        Promises, State, Feedback, Spark: those of the steps of the function, each grouped by the keys too.

        See Also
        --------
        caesura.Stream.group_by : groups for windows, tops and patterns.

        Examples
        --------
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
    def match(
        self, automaton: Automaton, *, order_by: Sequence[str] = (), carry: Sequence[str] = (), name: str = ""
    ) -> Stream:
        """The matches of an automaton over the events of each group alone.

        Parameters
        ----------
        automaton
            An automaton with registers, made by `cz.automaton`. Of a quantitative expression, take
            ``stream.match(qre.partition(..., by="id"))``.
        order_by
            Columns that order events of one time.
        carry
            Columns of the last item that leave with a match.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            A row for each match: the keys, ``begin``, ``length``, ``state``, the registers, what is carried.

        Notes
        -----
        Promises: on time, what its input promises. State: events that wait for their turn in the order of
        time, and the runs that are open, until ``within`` frees them. Feedback: stopped at the output. Spark:
        in buckets by the keys.

        See Also
        --------
        caesura.Stream.match : a pattern over the whole stream.
        caesura.automaton : an automaton with registers.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> given = ((1, "a", 5), (2, "b", 7), (3, "a", 6), (4, "b", 2))
        >>> rows = [{"t": t, "k": k, "v": v} for t, k, v in given]
        >>> rise = cz.automaton(
        ...     [cz.arc("S", "low", low=col("v")), cz.arc("low", "high", col("v") > col("low"))],
        ...     {"low": 0},
        ...     within=10,
        ...     accept="high",
        ... )
        >>> print(cz.from_rows(rows, time="t").group_by("k").match(rise, carry=["v"]).run())
         LE  RE | k begin length state low v |
          3  11 | a 1     2      high  5   6 | +
        """
        from caesura.api.stream import Stream
        from caesura.fixpoint import automaton as automata

        if not isinstance(automaton, automata.Automaton):
            raise PlanError(
                f"match of groups takes an automaton, and got {type(automaton).__name__}.",
                remedy='Write cz.automaton([...]); or stream.match(qre.partition(query, by="id")).',
            ).at(name or "match", here())
        options: Any = {"order_by": tuple(order_by), "carried": tuple(carry), "name": name}
        return Stream(automata.match(self._node, automaton, group=self._keys, **options))

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
        """All rows of each group with their ranks among those alive.

        Parameters
        ----------
        by
            The columns that order rows.
        descending
            Whether the greatest stand first; one answer, or one for each column.
        row_number
            A column for the place of a row, from 1 on. At least one of the three is named.
        rank
            A column for the rank, where equals share one and leave a gap.
        dense_rank
            A column for the rank, where equals share one and leave no gap.

        Returns
        -------
        Stream
            All rows, each for as long as its ranks hold.

        Notes
        -----
        Promises, Feedback, Spark: as `top`. State: all rows that are alive or may still change.

        See Also
        --------
        caesura.Stream.top : the first rows by a column.
        caesura.Stream.limit : the first rows in order of time.
        caesura.api.Windowed.top : the first rows of each window.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"t": t, "who": w, "bid": b} for t, w, b in ((1, "a", 3), (2, "b", 5))]
        >>> bids = cz.from_rows(rows, time="t").set_duration(4)
        >>> print(bids.group_by().rank(by="bid", row_number="place").run(output="final"))
         LE  RE | who bid place |
          1  2  | a   3   1     | +
          2  5  | a   3   2     | +
          2  6  | b   5   1     | +
        """
        from caesura.api.stream import Stream

        names = {"row_number": row_number, "rank": rank, "dense_rank": dense_rank}
        if not any(names.values()):
            raise PlanError(
                "no rank is asked for.", remedy='Name a column for it: rank(by="v", row_number="place").'
            ).at("rank", here())
        return Stream(topped(self._node, self._keys, chosen(None, by, descending, **names)))
