"""Steps where rows meet others: unions, joins, differences, and each payload once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from caesura.api.pairing import On, Pairing
from caesura.api.planned import Planned, column_name
from caesura.errors import CaesuraError, PlanError
from caesura.expr import Column, Expr, col, lit
from caesura.ops.asof import AsOf, Direction
from caesura.ops.clip import Clip
from caesura.ops.held import in_one_time, is_static
from caesura.ops.interval import at_later_start, interval_sides
from caesura.ops.join import How, Join
from caesura.ops.latest import Latest, Ops
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.look_up import looked_up
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.plan import Duration, Node, here

if TYPE_CHECKING:
    from caesura.api.stream import Stream

Names = str | Sequence[str] | dict[str, str]


class MeetingSteps(Planned):
    """Steps where rows meet others: unions, joins, differences, and each payload once."""

    def union(self, *others: Stream, name: str = "") -> Stream:
        """All events of this stream and others with the same columns."""
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
        """Pairs of events with equal keys that live at the same time; lifetimes intersect.

        ``on`` is a column name, several, ``{"left": "right"}``, or a predicate with at least one equality of
        the two sides: ``cz.left("id") == cz.right("person").lower()``, ``people["id"] == sales["person"]``,
        or plain columns where only one side has them. Equal keys are one column, under its left name.
        ``where`` is a further predicate over both sides' columns, looked at for each pair of equal keys.
        Columns that both sides have are told apart by ``suffixes=("", "_right")`` or ``prefix="right_"``.
        ``how``: inner, left, right, full, semi, anti. A join with a `cz.table` on the right keeps nothing,
        unless it is a right or full one. A ``thrifty`` inner join says to one side where the other is settled
        and empty; an ``impatient`` one asks first for what would meet. One that ``delays`` passes on what one
        side alone promises, once it holds no row that is spoken of: ``check`` says where that helps.

        ``within=("-5m", "1h")`` joins by starts instead of lifetimes: events of ``other`` that start from
        five minutes before to an hour after. A pair is a point at the later start; a left, semi or anti join
        gives points at the left event's start.
        """
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
        """PySpark's: columns meet by name; those that one side lacks are null there, if that is allowed."""
        return self.union(other.select(*self.columns)) if not allowMissingColumns else _padded(self, other)

    def _within(
        self, left: Node, right: Node, within: tuple[Duration, Duration], how: How
    ) -> tuple[Node, Node]:
        """Both sides with lifetimes that overlap where starts lie within the interval."""
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
        """Each event with the one event of ``other`` with equal keys whose start is nearest before its own.

        Or nearest after (``direction="forward"``), or on either side (``"nearest"``), at most ``tolerance``
        away. Rows keep their lifetimes; where nothing matches, there are nulls, or no row if ``how="inner"``.
        Of events that start together the last in order of values is taken; looking forward, the first.
        ``on``, ``suffixes`` and ``prefix`` are those of `join`.

        >>> import caesura as cz
        >>> trades = cz.from_rows([{"t": 3, "id": 7, "n": 1}, {"t": 9, "id": 7, "n": 2}], time="t")
        >>> quotes = cz.from_rows([{"t": 2, "id": 7, "bid": 5.0}, {"t": 8, "id": 7, "bid": 6.0}], time="t")
        >>> print(trades.join_asof(quotes, on="id").run(output="final"))
         LE  RE | id n bid |
          3  4  | 7  1 5.0 | +
          9  10 | 7  2 6.0 | +
        """
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
        """Events of this stream that the other has not: as bags (copies cancel) or as sets."""
        return self._then(Layers(inputs=in_one_time(self.node, other.node), count=mode, name=name))

    def distinct(self, *, name: str = "") -> Stream:
        """Each payload once wherever it is alive, on maximal intervals."""
        return self._then(Layers(inputs=(self.node,), count="distinct", name=name))

    def dropDuplicates(self, subset: Sequence[str] | None = None) -> Stream:
        """PySpark's: `distinct`; of some columns it is not known which row would stay."""
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

        Ends that events have do not matter. Of events of a key that start together the last by ``order``
        counts, for example a log's offset, and then the last in canonical order, by their values.

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
        """The current row of every key, from rows that say insert, update, delete in a column.

        As `latest`; a delete ends the row and gives none. The column itself leaves the rows. An insert of a
        key that is there, and an update of one that is not, are taken as they come.

        >>> import caesura as cz
        >>> log = [{"ts": 1, "op": "c", "id": 7, "v": 1}, {"ts": 5, "op": "d", "id": 7, "v": 1}]
        >>> print(cz.from_rows(log, time="ts").changelog("id").run())
         LE  RE | id v |
          1  5  | 7  1 | +
        """
        ops = Ops(op, (*_several(insert), *_several(update)), _several(delete))
        return self._latest(key, order, ops, name, "changelog")

    def _latest(self, key: object, order: object, ops: Ops | None, name: str, step: str) -> Stream:
        group = tuple(column_name(each, "key=", step) for each in _several(key))
        by = tuple(column_name(each, "order=", step) for each in _several(order))
        endless = Lifetime(inputs=(self.node,), rule="forever")
        return self._then(Latest(inputs=(endless,), group=group, order=by, ops=ops, name=name))

    def clip(self, by: Stream, on: Names = (), *, name: str = "") -> Stream:
        """Ends each event where the next event of ``by`` with the same key begins."""
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
