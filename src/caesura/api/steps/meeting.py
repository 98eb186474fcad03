"""Steps where rows meet others: unions, joins, differences, and each payload once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from caesura.api.pairing import On, Pairing
from caesura.api.planned import Planned, column_name
from caesura.errors import CaesuraError, PlanError
from caesura.expr import Column, Expr, col, lit
from caesura.ops.held import in_one_time, is_static
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.plan import Duration, Node, here

if TYPE_CHECKING:
    from caesura.api.stream import Stream
    from caesura.ops.asof import Direction
    from caesura.ops.join import How
    from caesura.ops.latest import Ops

ONLY_TYPES = {
    "Direction": "caesura.ops.asof",
    "How": "caesura.ops.join",
    "Ops": "caesura.ops.latest",
}
"""Where the types of arguments are that a wrong call needs: a step is imported when it is used."""

Names = str | Sequence[str] | dict[str, str]


class MeetingSteps(Planned):
    """Steps where rows meet others: unions, joins, differences, and each payload once."""

    def union(self, *others: Stream, name: str = "") -> Stream:
        """All events of this stream and others with the same columns.

        Equal events stay apart: a union is of bags.

        Parameters
        ----------
        *others
            Streams with the same columns of the same types.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The events of all of them.

        Notes
        -----
        Promises: what all of its inputs promise; on time, that of the slowest. State: none. Feedback:
        stopped at its output, and passed on to every input. Spark: in the stage of its inputs, behind the
        gates of its sources; it needs no exchange.

        See Also
        --------
        Stream.unionByName : columns that meet by name.
        Stream.pace : rows that are not too far behind.

        Examples
        --------
        >>> import caesura as cz
        >>> north = cz.from_rows([{"ts": 1, "mph": 62}], time="ts")
        >>> south = cz.from_rows([{"ts": 4, "mph": 9}], time="ts")
        >>> print(north.union(south).run())
         LE  RE | mph |
          1  2  | 62  | +
          4  5  | 9   | +
        """
        return self._then(Union(inputs=in_one_time(self.node, *(o.node for o in others)), name=name))

    def join(
        self,
        other: Stream,
        on: On,
        *,
        how: How = "inner",
        where: Expr | str | None = None,
        suffixes: tuple[str, str] | None = None,
        prefix: str = "",
        within: tuple[Duration, Duration] | None = None,
        thrifty: bool = False,
        impatient: bool = False,
        delays: bool = False,
        name: str = "",
    ) -> Stream:
        """Pairs of events with equal keys that live at the same time.

        A pair lives where both do. Equal keys are one column, under its left name; a null key meets
        nothing.

        Parameters
        ----------
        other
            The right side: a stream, or a `cz.table`, whose rows hold over all time.
        on
            The keys: a column name, several, ``{"left": "right"}``, or a predicate with at least one
            equality of the two sides: ``cz.left("id") == cz.right("person").lower()``, ``people["id"] ==
            sales["person"]``, or plain columns where only one side has them.
        how
            ``"inner"``; ``"left"``, ``"right"`` or ``"full"`` for rows that meet nothing, with nulls, too;
            ``"semi"`` or ``"anti"`` for left rows that meet something, or nothing.
        where
            A further predicate over both sides' columns, looked at for each pair of equal keys.
        suffixes
            What is put behind the names of columns that both sides have: ``("", "_right")``.
        prefix
            Or what is put before the right ones.
        within
            Joins by starts instead of lifetimes: with ``("-5m", "1h")``, events of ``other`` that start
            from five minutes before to an hour after. A pair is a point at the later start; a left, semi or
            anti join gives points at the left event's start.
        thrifty
            An inner join that tells one side where the other is settled and empty, so that such rows are
            not made.
        impatient
            An inner join that asks one side first for what the other has.
        delays
            An inner join that passes on what one side alone promises, once it holds no row that is spoken
            of: `check` says where that helps.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The left columns, then those of the right that are no keys; of a semi or anti join the left
            ones.

        Notes
        -----
        Promises: on time, what the slower side promises; on keys, what both do. State: the rows of both
        sides, until they end and nothing earlier can come; a join with a `cz.table` keeps none, unless it
        is a right or full one. Feedback: on one side's columns it is stopped at that side's input and
        passed on to it, on keys to both; of outer, semi and anti joins the preserved side is told, and
        whole keys once nothing of theirs is held. Spark: in buckets by the keys, behind an exchange where
        an input lies by other columns; a join with a table runs where its input does.

        See Also
        --------
        Stream.join_asof : the nearest row before or after, by key.
        Stream.clip : ends at the start of the next row.
        table : rows that hold over all time.
        Stream.where : which rows are kept.
        Stream.difference : rows that another stream has not.
        fixpoint : what follows by any number of steps.

        Examples
        --------
        >>> import caesura as cz
        >>> people = cz.from_rows([{"ts": 1, "id": 7, "name": "Ada"}], time="ts").set_duration(10)
        >>> sales = cz.from_rows([{"ts": 4, "id": 7, "price": 5}, {"ts": 20, "id": 7, "price": 6}], time="ts")
        >>> print(sales.join(people, on="id").run(output="final"))
         LE  RE | id price name |
          4  5  | 7  5     Ada  | +
        >>> print(sales.join(people, on="id", how="left").run(output="final"))
         LE  RE | id price name |
          4  5  | 7  5     Ada  | +
         20  21 | 7  6     null | +
        """
        from caesura.ops.interval import at_later_start
        from caesura.ops.join import Join
        from caesura.ops.look_up import looked_up

        pairing = Pairing(self.node, other.node)
        pairing.add(on)
        pairing.refuse_keyless()
        names = pairing.renamed(suffixes, prefix)
        inputs = pairing.inputs(names)
        if within is not None:
            inputs = self._within(*inputs, within, how)
        node = Join(
            inputs=inputs,
            on=pairing.keys(names),
            how=how,
            residual=pairing.residual(where, names),
            thrifty=thrifty,
            impatient=impatient,
            delays=delays,
            name=name,
        )
        made = self._then(looked_up(node) if within is None else at_later_start(node))
        return made.drop(*pairing.computed["left"]) if pairing.computed["left"] else made

    unionAll = union  # noqa: N815 - as PySpark calls it

    def unionByName(self, other: Stream, allowMissingColumns: bool = False) -> Stream:
        """A union whose columns meet by name: PySpark's.

        Parameters
        ----------
        other
            The other stream, its columns in any order.
        allowMissingColumns
            Whether a column that one side lacks is null there; by default that is refused.

        Returns
        -------
        Stream
            The events of both, with the columns of the first, then those that only the other has.

        Notes
        -----
        Promises, State, Feedback, Spark: as `select` on each side and `union` behind it.

        See Also
        --------
        Stream.union : all rows of several streams.

        Examples
        --------
        >>> import caesura as cz
        >>> north = cz.from_rows([{"ts": 1, "id": 7, "mph": 62}], time="ts")
        >>> south = cz.from_rows([{"ts": 4, "mph": 9}], time="ts")
        >>> print(north.unionByName(south, allowMissingColumns=True).run())
         LE  RE | id   mph |
          1  2  | 7    62  | +
          4  5  | null 9   | +
        """
        return self.union(other.select(*self.columns)) if not allowMissingColumns else _padded(self, other)

    def _within(
        self, left: Node, right: Node, within: tuple[Duration, Duration], how: How
    ) -> tuple[Node, Node]:
        """Both sides with lifetimes that overlap where starts lie within the interval."""
        from caesura.ops.interval import interval_sides

        try:
            if is_static(left) or is_static(right):
                raise PlanError(
                    "a table's rows hold over all time: there is no start for within=.",
                    remedy="Leave within= out, or read the rows as a stream: cz.from_rows(rows, time=...).",
                )
            if isinstance(within, str) or len(within) != 2:
                raise PlanError(
                    f"within= is a pair of durations; got {within!r}.",
                    remedy='Write within=("-5m", "1h"): how much earlier and later the other may start.',
                )
            low, high = (self._ticks(each, "bound of within", "join") for each in within)
            return interval_sides(left, right, low, high, how)
        except CaesuraError as error:
            raise error.at("join", here()) from None

    def join_asof(
        self,
        other: Stream,
        on: On = (),
        *,
        direction: Direction = "backward",
        tolerance: Duration | None = None,
        allow_exact_matches: bool = True,
        how: Literal["left", "inner"] = "left",
        suffixes: tuple[str, str] | None = None,
        prefix: str = "",
        name: str = "",
    ) -> Stream:
        """Each event with the one event of another stream, with equal keys, that starts nearest before it.

        Of events that start together the last in order of values is taken; looking forward, the first.

        Parameters
        ----------
        other
            The stream that is looked into.
        on
            The keys, as in `join`; without any, all events are of one key.
        direction
            ``"backward"`` for the nearest start before, ``"forward"`` after, ``"nearest"`` on either side.
        tolerance
            How far away a start may be at most.
        allow_exact_matches
            Whether an event that starts at the same time counts.
        how
            ``"left"``: where nothing matches there are nulls. ``"inner"``: no row.
        suffixes
            What is put behind the names of columns that both sides have, as in `join`.
        prefix
            Or what is put before the right ones.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The left events with their lifetimes, and the columns of the match.

        Notes
        -----
        Promises: on time, what the slower side promises; on keys, what both do. State: left rows until
        their match is final; right rows as far back as the ``tolerance``, or without one the last of every
        key, which goes only with a promise on the key. Feedback: on left columns and keys it is stopped at
        its inputs, and passed on to the left. Spark: in buckets by the keys, behind an exchange where an
        input lies by other columns.

        See Also
        --------
        Stream.join : pairs of rows with equal keys.
        Stream.clip : ends at the start of the next row.

        Examples
        --------
        >>> import caesura as cz
        >>> trades = cz.from_rows([{"t": 3, "id": 7, "n": 1}, {"t": 9, "id": 7, "n": 2}], time="t")
        >>> quotes = cz.from_rows([{"t": 2, "id": 7, "bid": 5.0}, {"t": 8, "id": 7, "bid": 6.0}], time="t")
        >>> print(trades.join_asof(quotes, on="id").run(output="final"))
         LE  RE | id n bid |
          3  4  | 7  1 5.0 | +
          9  10 | 7  2 6.0 | +
        """
        from caesura.ops.asof import AsOf

        near = None if tolerance is None else self._ticks(tolerance, "tolerance", "join_asof")
        pairing = Pairing(self.node, other.node, "join_asof")
        pairing.add(on)
        if pairing.residuals:
            raise pairing.refused(
                f"an as-of join takes equal keys alone; got '{pairing.residuals[0]}'.",
                "Filter one side first with where(...), or the result.",
            )
        names = pairing.renamed(suffixes, prefix)
        node = AsOf(
            inputs=pairing.inputs(names),
            on=pairing.keys(names),
            how=how,
            direction=direction,
            tolerance=near,
            exact=allow_exact_matches,
            name=name,
        )
        made = self._then(node)
        return made.drop(*pairing.computed["left"]) if pairing.computed["left"] else made

    def difference(self, other: Stream, *, mode: Literal["bag", "set"] = "bag", name: str = "") -> Stream:
        """Events of this stream, wherever the other has none with the same payload.

        Parameters
        ----------
        other
            A stream with the same columns.
        mode
            ``"bag"``: at each instant copies cancel one by one. ``"set"``: one copy is left where the other
            has none.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The rows that are left, on maximal intervals.

        Notes
        -----
        Promises: what both sides promise; on time, that of the slower one. State: the rows of both sides
        until they end. Feedback: results are given up whole, with their state, and both inputs are told.
        Spark: in buckets by the whole row.

        See Also
        --------
        Stream.join : pairs of rows with equal keys.
        Stream.distinct : each payload once.

        Examples
        --------
        >>> import caesura as cz
        >>> open_ = cz.from_rows([{"ts": 1, "shop": 7}], time="ts").set_duration(9)
        >>> breaks = cz.from_rows([{"ts": 4, "shop": 7}], time="ts").set_duration(2)
        >>> print(open_.difference(breaks).run(output="final"))
         LE  RE | shop |
          1  4  | 7    | +
          6  10 | 7    | +
        """
        return self._then(Layers(inputs=in_one_time(self.node, other.node), count=mode, name=name))

    def distinct(self, *, name: str = "") -> Stream:
        """Each payload once wherever it is alive, on maximal intervals.

        Parameters
        ----------
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            A row for each stretch of time in which there is at least one such event.

        Notes
        -----
        Promises: what its input promises. State: the rows until they end. Feedback: results are given up
        whole, with their state, and its input is told. Spark: in buckets by the whole row.

        See Also
        --------
        Stream.difference : rows that another stream has not.
        Stream.dropDuplicates : PySpark's name.
        fixpoint : what follows by any number of steps.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 7}], time="ts").set_duration(5)
        >>> print(visits.distinct().run(output="final"))
         LE  RE | id |
          1  9  | 7  | +
        """
        return self._then(Layers(inputs=(self.node,), count="distinct", name=name))

    def dropDuplicates(self, subset: Sequence[str] | None = None) -> Stream:
        """Each payload once: PySpark's name of `distinct`.

        Parameters
        ----------
        subset
            Refused: of some columns it is not known which row would stay. Say it with
            ``group_by(...).top(1, by=...)``.

        Returns
        -------
        Stream
            What `distinct` gives.

        Notes
        -----
        Promises, State, Feedback, Spark: as `distinct`, which it calls.

        See Also
        --------
        Stream.distinct : each payload once.
        Stream.top : the first rows by a column.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 7}], time="ts").set_duration(5)
        >>> print(visits.dropDuplicates().run(output="final"))
         LE  RE | id |
          1  9  | 7  | +
        """
        if subset is not None:
            raise PlanError(
                f"dropDuplicates({list(subset)!r}) does not say which row of several stays.",
                remedy=f"Say it: .group_by({', '.join(map(repr, subset))}).top(1, by='v').",
                step="dropDuplicates",
                place=here(),
            )
        return self.distinct()

    drop_duplicates = dropDuplicates

    def latest(
        self, key: str | Column | Sequence[str], *, order: str | Sequence[str] = (), name: str = ""
    ) -> Stream:
        """The current row of every key: each event lives until the next one of its key replaces it.

        Ends that events have do not matter.

        Parameters
        ----------
        key
            The column that tells keys apart, or several.
        order
            Columns that decide between events of a key that start together, for example a log's offset; the
            last counts, and then the last in canonical order, by values.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            At each instant at most one row of a key: a sink can hold it as a table, by `upserts`.

        Notes
        -----
        Promises: on time and on the key, what its input promises. State: the current row of every key, and
        those that are not final yet; a key goes only with a promise on it, so `check` asks for one or for
        few keys. Feedback: on the key it gives up rows with their state, and its input is told. Spark: in
        buckets by the key.

        See Also
        --------
        Stream.upserts : the key of a table that holds the stream.
        Stream.forever : lifetimes without an end.
        Stream.changelog : the current row, from inserts, updates and deletes.
        Stream.clip : ends at the start of the next row.
        Stream.alive : a view of what is alive.

        Examples
        --------
        >>> import caesura as cz
        >>> moves = [{"ts": 1, "car": 7, "at": "a"}, {"ts": 5, "car": 7, "at": "b"}]
        >>> print(cz.from_rows(moves, time="ts").latest("car").run())
         LE  RE  | car at |
          1  5   | 7   a  | +
          5  inf | 7   b  | +
        """
        return self._latest(key, order, None, name, "latest")

    def changelog(
        self,
        key: str | Column | Sequence[str],
        *,
        op: str = "op",
        insert: Sequence[str] = ("c", "r", "I"),
        update: Sequence[str] = ("u", "U"),
        delete: Sequence[str] = ("d", "D"),
        order: str | Sequence[str] = (),
        name: str = "",
    ) -> Stream:
        """The current row of every key, from rows that say insert, update or delete in a column.

        As `latest`; a delete ends the row and gives none. An insert of a key that is there, and an update
        of one that is not, are taken as they come. A row with another word in the column stops the query.

        Parameters
        ----------
        key
            The column that tells keys apart, or several.
        op
            The column that says what a row is; it leaves the rows.
        insert
            Its words for an insert.
        update
            Its words for an update.
        delete
            Its words for a delete.
        order
            Columns that decide between changes of a key at one time, as in `latest`.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            At each instant at most one row of a key.

        Notes
        -----
        Promises, State, Feedback, Spark: as `latest`.

        See Also
        --------
        Stream.latest : the current row of every key.
        Stream.clip : ends at the start of the next row.
        from_cdf : the change feed of a Delta table.
        read.debezium : the changes that Debezium tells.

        Examples
        --------
        >>> import caesura as cz
        >>> log = [{"ts": 1, "op": "c", "id": 7, "v": 1}, {"ts": 5, "op": "d", "id": 7, "v": 1}]
        >>> print(cz.from_rows(log, time="ts").changelog("id").run())
         LE  RE | id v |
          1  5  | 7  1 | +
        """
        from caesura.ops.latest import Ops

        ops = Ops(op, (*_several(insert), *_several(update)), _several(delete))
        return self._latest(key, order, ops, name, "changelog")

    def _latest(self, key: object, order: object, ops: Ops | None, name: str, step: str) -> Stream:
        from caesura.ops.latest import Latest

        group = tuple(column_name(each, "key=", step) for each in _several(key))
        by = tuple(column_name(each, "order=", step) for each in _several(order))
        endless = Lifetime(inputs=(self.node,), rule="forever")
        return self._then(Latest(inputs=(endless,), group=group, order=by, ops=ops, name=name))

    def clip(self, by: Stream, on: Names = (), *, name: str = "") -> Stream:
        """Ends each event where the next event of another stream with the same key begins.

        An event ends at the least start that lies after its own, if that comes before its end. A null key
        clips nothing and is not clipped.

        Parameters
        ----------
        by
            The stream whose starts clip; a stream may clip itself.
        on
            The keys: a column name, several, or ``{"left": "right"}``; without any, every start clips.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The events of this stream, some of them shorter.

        Notes
        -----
        Promises: on time, what the slower side promises; on keys, what both do. State: this side's rows
        until they are clipped or end, and the starts of the other that may still clip. Feedback: on columns
        of this side it is stopped at its inputs, and this side is told. Spark: in buckets by the keys;
        without keys, in one.

        See Also
        --------
        Stream.join : pairs of rows with equal keys.
        Stream.join_asof : the nearest row before or after, by key.
        Stream.latest : the current row of every key.
        Stream.changelog : the current row, from inserts, updates and deletes.

        Examples
        --------
        >>> import caesura as cz
        >>> sessions = cz.from_rows([{"ts": 1, "id": 7}], time="ts").forever()
        >>> logouts = cz.from_rows([{"ts": 6, "id": 7}], time="ts")
        >>> print(sessions.clip(logouts, on="id").run(output="final"))
         LE  RE | id |
          1  6  | 7  | +
        """
        from caesura.ops.clip import Clip

        inputs = in_one_time(self.node, by.node)
        return self._then(Clip(inputs=inputs, on=_pairs(on, "clip"), how="semi", name=name))


def _several(given: object) -> tuple[Any, ...]:
    """One or several, as several."""
    return (given,) if isinstance(given, str | Expr) or not isinstance(given, Iterable) else tuple(given)


def _pairs(on: Names, step: str) -> tuple[tuple[str, str], ...]:
    if isinstance(on, Expr) and not isinstance(on, Column):
        raise PlanError(
            f"on= names columns; got the expression '{on}'.",
            remedy="Compute it first: with_columns(key=...), and on='key'.",
            step=step,
            place=here(),
        )
    if isinstance(on, str | Column):
        on = [column_name(on, "on=", step)]
    pairs = on.items() if isinstance(on, dict) else [(name, name) for name in on]
    return tuple((column_name(a, "on=", step), column_name(b, "on=", step)) for a, b in pairs)


def _padded(one: Planned, other: Planned) -> Stream:
    """A union over all columns of either side, null where one has none."""
    fields = {f.name: f.type for f in (*other.schema, *one.schema)}
    names = list(dict.fromkeys([*one.columns, *other.columns]))

    def whole(side: Planned) -> Node:
        pairs = ((n, col(n) if n in side.columns else lit(None, fields[n])) for n in names)
        return Select(inputs=(side.node,), columns=tuple(pairs))

    return one._then(Union(inputs=(whole(one), whole(other))))
