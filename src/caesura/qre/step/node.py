"""`qre.over` runs a query over a stream: the events in order of time, answers as events.

     LE RE | kind v |                                      LE RE | value |
      1  2 | M    4 | +      over(s, split(iter(M), E))      3  4 | 4.5   | +
      2  3 | M    5 | +
      3  4 | E    - | +

Law: what a query sees is the history's events at their LE, ordered by time, ties by `order_by` and then
by payload, never by arrival; an answer is a point at the LE of the item that completes it, or lives
until the next answer. A full retraction takes the item out of the word; a change of its end alone
changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from caesura.errors import CaesuraError, PlanError
from caesura.expr import Column, Expr
from caesura.plan import (
    OUTPUT_ONLY,
    Duration,
    FeedbackRule,
    Holding,
    Node,
    Operator,
    Properties,
    Translation,
    here,
    shown,
    ticks,
)
from caesura.plan.lifetimes import Whole
from caesura.punctuation import Image, Pattern, SchemaMapping
from caesura.qre.checking.inference import value_type
from caesura.qre.engine.choice import Kernel, machine_for
from caesura.qre.engine.map_rates import anew_at_every_tick, core
from caesura.qre.engine.outputs import output_schema
from caesura.qre.language.arguments import KERNELS, an_instance, one_of, queried, wrong
from caesura.qre.language.items import TICK, Items
from caesura.qre.language.items import items as plain_items
from caesura.qre.language.query import Partition, Pipe, Query
from caesura.qre.language.regex import Empty
from caesura.qre.step.contract import holdings, partitioned

Lives = Literal["point", "until_next"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Over(Node):
    """A query over the whole stream."""

    query: Query
    order_by: tuple[str, ...] = ()
    every: int | None = None
    lives: Lives = "point"
    kernel: Kernel = "auto"

    kind = "qre"
    partitioning = "one"
    waits = True
    loop_remedy = "Match over what comes out of the loop, or write the pattern with cz.automaton."

    @property
    def rounds_starts(self) -> bool:
        return self.every is not None

    def output_schema(self) -> pa.Schema:
        for name in self.order_by:
            self.column(name)
        return output_schema(self.query)

    def derive(self, *inputs: Properties) -> Properties:
        if self.lives == "point":
            return Properties(insert_only=True, points=True, max_duration=1)
        return Properties()

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        if pattern.time_bound is None or pattern.without_time().attributes:
            return None
        return pattern

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Keys of a partition are given up whole; else any item may belong to any match, and it stops here.

        Ticks begin with the first item of all keys, so a query with ticks needs all of them.
        """
        named = partitioned(self.query)
        if not named or not self.query.partitioned_by or self.lives != "point" or self.every:
            return OUTPUT_ONLY
        images = {name: Image(column) for column, name in named.items()}
        known = self.inputs[0].properties
        mapping = Translation(SchemaMapping(images, time=None), Whole(), known)
        return (FeedbackRule((mapping,), "groups", purges=True),)

    def holds(self) -> tuple[Holding, ...]:
        return holdings(self.query, self.every, self.lives)

    def closes_keys(self, pattern: Pattern) -> bool:
        """Whether a promise speaks of whole keys of a partition, for all time."""
        names = set(pattern.attributes)
        return bool(names) and names <= set(partitioned(self.query))

    def by_keys(self, pattern: Pattern) -> Pattern:
        """A pattern of the output's keys, by the columns that they come from."""
        columns = {name: column for column, name in partitioned(self.query).items()}
        return Pattern.of({columns[name]: values for name, values in pattern.items()})

    def of_keys(self, pattern: Pattern) -> Pattern:
        """A promise on keys, by the names that they have in the output."""
        named = partitioned(self.query)
        return Pattern.of({named[column]: values for column, values in pattern.items()})

    def combined(self) -> Node | None:
        """A part of every map in every bucket, by key; or the first of a pipe, by its keys."""
        from caesura.qre.step.maps import spread
        from caesura.qre.step.pipes import in_buckets

        return in_buckets(self) if isinstance(self.query, Pipe) else spread(self)

    def operator(self) -> Operator:
        from caesura.qre.step.operator import QueryOperator

        return QueryOperator(self)

    def describe(self) -> str:
        parts = [str(self.query)]
        if self.every is not None:
            parts.append(f"ticks every {shown(self.every, self.time)}")
        if self.order_by:
            parts.append(f"ties by {', '.join(self.order_by)}")
        how = machine_for(self.query, self.kernel).explain().replace("\n", " ")
        return "; ".join([*parts, how])


@dataclass(frozen=True, eq=False, kw_only=True)
class OverEachKey(Over):
    """A query whose keys can each be worked on in a place of their own.

    So are the keys of a partition by columns, and those of a map that comes at every tick and begins anew:
    every place has the ticks that it needs, and a map's entries need not meet.
    """

    kind = "qre"
    partitioning = "key"

    def keys(self, port: int) -> tuple[str, ...]:
        return apart_by(self.query) or ()

    def output_keys(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        return named_by(self.query, keys)

    def combined(self) -> Node | None:
        return None


def named_by(query: Query, keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names that columns of the key have in the output: others there may be called as they are."""
    found = core(query)
    by = query.by if isinstance(query, Partition) else () if found is None else found[0].by
    names = {e.name: name for name, e in by if isinstance(e, Column)}
    return tuple(names[key] for key in keys) if names.keys() >= set(keys) else None


def apart_by(query: Query) -> tuple[str, ...] | None:
    """The columns by which a query may be cut into queries of their own; None for no such columns."""
    by = query.partitioned_by
    found = core(query)
    if found is not None and anew_at_every_tick(*found):
        by = found[0].by
    return columns_of(by)


def columns_of(by: tuple[tuple[str, Expr], ...]) -> tuple[str, ...] | None:
    """A key's columns; None if there are none, or if a part of it is computed."""
    names = [e.name for _, e in by if isinstance(e, Column)]
    return tuple(names) if names and len(names) == len(by) else None


def over(
    source: Node,
    query: Query,
    *,
    order_by: str | tuple[str, ...] | list[str] = (),
    ticks_every: Duration | None = None,
    lives: Lives = "point",
    kernel: Kernel = "auto",
    name: str = "",
) -> Over:
    """The answers of a query over a stream, as a plan's step.

    Parameters
    ----------
    source
        The stream, or a plan's step.
    query
        What is computed.
    order_by
        Columns that settle the order of rows that start together.
    ticks_every
        Weaves an item, for which ``col("tick")`` is true, at the end of every period.
    lives
        ``"point"``: an answer lives for a tick; ``"until_next"``: until the next answer.
    kernel
        ``"auto"`` compiles where that is possible; see `evaluate`.
    name
        What the step is called in drawings, messages and metrics.

    Returns
    -------
    Over
        A plan's step; users write `Stream.match`.

    Notes
    -----
    State: that of the query, a key, and the rows that wait until no earlier one can come.

    See Also
    --------
    Stream.match : the same, as a step of a stream.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col, qre
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": 7}], time="t")
    >>> print(rows.match(qre.iter(qre.atom(op=col("v")), qre.sum())).run())
     LE  RE | value |
      1  2  | 5     | +
      2  3  | 12    | +
    >>> type(qre.over(rows, qre.map(col("v")))).__name__
    'Over'
    """
    inner: Any = getattr(source, "node", source)
    try:
        return _made(inner, query, order_by, ticks_every, lives, kernel, name)
    except CaesuraError as error:
        raise error.at(name or "qre", here()) from None


def _made(
    inner: Node,
    query: Query,
    order_by: str | tuple[str, ...] | list[str],
    ticks_every: Duration | None,
    lives: Lives,
    kernel: Kernel,
    name: str,
) -> Over:
    queried("over", query)
    one_of("over", kernel, KERNELS, "kernel")
    one_of("over", lives, ("point", "until_next"), "way to live")
    an_instance("over", inner, Node, "a stream", "Give a stream or a plan's step.")
    names = (order_by,) if isinstance(order_by, str) else order_by
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
        raise wrong("over", order_by, "the columns that settle ties", "Give their names: order_by='id'.")
    names = tuple(names)
    every = None if ticks_every is None else ticks(ticks_every, inner.time, "period of the ticks")
    if every is not None and every <= 0:
        raise PlanError(f"ticks every {every} never come.", remedy="Give a positive period, like '1s'.")
    bound = _bound(query, inner, every is not None)
    alone = lives == "point" or bool(bound.partitioned_by)  # a map's entries live until the next map
    make = OverEachKey if alone and apart_by(bound) else Over
    return make(
        inputs=(inner,), query=bound, order_by=names, every=every, lives=lives, kernel=kernel, name=name
    )


def _bound(query: Query, source: Node, tick: bool) -> Query:
    given = query.items
    schema = source.schema
    if tick and TICK in schema.names:
        raise PlanError(
            f"the stream has a column '{TICK}' already.",
            remedy="Rename it before the pattern, or leave ticks_every= out.",
        )
    wanted = (given or plain_items(schema, time=source.time)).with_ticks() if tick else given
    if given is None or (tick and not given.ticks):
        query = query.on(wanted or plain_items(schema, time=source.time))
    assert query.items is not None
    _refuse_other_columns(query.items, schema, tick)
    if query.partitioned_by and tick:
        raise PlanError(
            "a partition has no use for ticks: a tick belongs to no key.",
            remedy="Use map_collect, whose synchronisation items go to every key.",
        )
    body = query.first if isinstance(query, Pipe) else query
    body = body.per_key
    if not isinstance(body, Pipe) and isinstance(body.rate, Empty):
        raise PlanError(
            "the query matches the empty stream only, so it never answers.",
            remedy="Let it read at least one item.",
        )
    value_type(query)
    return query


def _refuse_other_columns(items: Items, schema: pa.Schema, tick: bool) -> None:
    for field in items.schema:
        if field.name == TICK and tick:
            continue
        if field.name not in schema.names or schema.field(field.name).type != field.type:
            got = schema.field(field.name).type if field.name in schema.names else "no such column"
            raise PlanError(
                f"the query's items have '{field.name}' of type {field.type}; the stream has {got}.",
                remedy="Build the query with qre.items(stream.schema), or select those columns first.",
            )
