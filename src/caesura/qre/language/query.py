"""The nodes of a query, each a streaming function from words of items to values.

A node knows its rate (the words on which it is defined) and its place in the user's code. Build
nodes with the functions of `caesura.qre`; they check what they build as soon as the items are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from caesura.errors import PlanError
from caesura.expr import Expr
from caesura.plan import here
from caesura.qre.language.arguments import an_instance, queried
from caesura.qre.language.operations import Operation
from caesura.qre.language.regex import EMPTY, Letter, Regex, Star, any_of, plus, seq

if TYPE_CHECKING:
    from caesura.qre.language.folds import Fold
    from caesura.qre.language.items import Items


@dataclass(frozen=True, eq=False, kw_only=True)
class Query:
    """A streaming function."""

    items: Items | None = field(default=None, repr=False)
    place: str = field(default_factory=here, repr=False)

    def children(self) -> tuple[Query, ...]:
        """The parts of the query, in order.

        Returns
        -------
        tuple
            Queries; none for an atom.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> v = qre.atom(op=col("v"), items=items)
        >>> len(qre.split(v, v, op=col("_0")).children())
        2
        """
        return ()

    def with_children(self, parts: tuple[Query, ...]) -> Query:
        """The same query over other parts.

        Parameters
        ----------
        parts
            As many queries as it has parts.

        Returns
        -------
        Query
            A query of the same kind.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> v = qre.atom(op=col("v"), items=items)
        >>> parts = (v,)
        >>> str(qre.iter(v, qre.sum()).with_children(parts))
        'iter(atom(TRUE, v), sum)'
        """
        return self

    @cached_property
    def rate(self) -> Regex:
        """The words on which the query is defined."""
        raise NotImplementedError

    @property
    def partitioned_by(self) -> tuple[tuple[str, Expr], ...]:
        """The parts of the key of a partition; none for other queries."""
        return ()

    @property
    def per_key(self) -> Query:
        """The body of a partition; other queries themselves."""
        return self

    @property
    def only(self) -> Expr | None:
        """The items that a partition sees, if not all; other queries see all."""
        return None

    @property
    def step(self) -> str:
        """The function that users call for this node, as diagnostics name it."""
        name = type(self).__name__
        return {"MapCollect": "map_collect", "SlidingWindow": "wnd", "Or": "or_"}.get(name, name.lower())

    @property
    def key(self) -> str:
        """Equal for queries that are known to compute the same, for plans that share steps."""
        return repr(key_of(self))

    def __rshift__(self, other: Query) -> Query:
        queried(">>", other)
        made = Pipe(first=self, second=other, items=self.items)
        if self.items is not None:
            from caesura.qre.checking.checking import check

            check(made)
        return made

    def on(self, items: Items) -> Query:
        """The query over items of a schema, checked.

        Parameters
        ----------
        items
            What `qre.items` or `qre.tagged` give.

        Returns
        -------
        Query
            The same query, which knows what it reads.

        Raises
        ------
        PlanError
            Where it is not well typed, or could read a stream in two ways.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> asked = qre.iter(qre.atom(op=col("v")), qre.sum()).on(items)
        >>> qre.evaluate(asked, pa.record_batch({"v": [1, 2, 3]}))
        [1, 3, 6]
        """
        from caesura.qre.checking.checking import check
        from caesura.qre.language.items import Items

        an_instance("on", items, Items, "the items of a stream", "Give qre.items(schema).")
        bound = _bound(self, items)
        check(bound)
        return bound

    def __str__(self) -> str:
        from caesura.qre.language.printing import shown

        return shown(self)


def _bound(query: Query, items: Items) -> Query:
    if isinstance(query, Pipe):
        return replace(query, first=_bound(query.first, items), items=items)
    made: dict[Query, Query] = {}
    for node in reversed(list(walk(query))):
        parts = tuple(made[p] for p in node.children())
        made[node] = replace(node.with_children(parts), items=items)
    return made[query]


@dataclass(frozen=True, eq=False, kw_only=True)
class Atom(Query):
    """One item that satisfies a predicate; ``op`` None gives the item itself."""

    predicate: Expr
    op: Operation | None = None

    @cached_property
    def rate(self) -> Regex:
        return Letter(self.predicate)


@dataclass(frozen=True, eq=False, kw_only=True)
class Value(Query):
    """A value for the empty word."""

    op: Operation

    @cached_property
    def rate(self) -> Regex:
        return EMPTY


@dataclass(frozen=True, eq=False, kw_only=True)
class _OfOne(Query):
    """A node over one other."""

    body: Query

    def children(self) -> tuple[Query, ...]:
        return (self.body,)

    def with_children(self, parts: tuple[Query, ...]) -> Query:
        return replace(self, body=parts[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class _OfParts(Query):
    """A node over several others."""

    parts: tuple[Query, ...]

    def children(self) -> tuple[Query, ...]:
        return self.parts

    def with_children(self, parts: tuple[Query, ...]) -> Query:
        return replace(self, parts=parts)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Several(_OfParts):
    """A node with named parts."""

    names: tuple[str, ...]
    op: Operation


@dataclass(frozen=True, eq=False, kw_only=True)
class Split(_Several):
    """The parts on consecutive pieces of the word."""

    @cached_property
    def rate(self) -> Regex:
        nodes = spine(self)
        return seq(nodes[0].parts[0].rate, *(p.rate for node in nodes for p in node.parts[1:]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Combine(_Several):
    """The parts on the same word, their values combined; with one part, an application."""

    @cached_property
    def rate(self) -> Regex:
        return self.parts[0].rate


@dataclass(frozen=True, eq=False, kw_only=True)
class Iter(_OfOne):
    """The body on consecutive pieces, their values folded from the left."""

    init: Operation
    op: Operation
    fold: Fold | None = None

    @cached_property
    def rate(self) -> Regex:
        return Star(self.body.rate)


@dataclass(frozen=True, eq=False, kw_only=True)
class Or(_OfParts):
    """Whichever part is defined."""

    @cached_property
    def rate(self) -> Regex:
        return any_of(*(p.rate for p in self.parts))


@dataclass(frozen=True, eq=False, kw_only=True)
class MapCollect(_OfOne):
    """The body once per key; synchronisation items go to every key."""

    sync: Expr
    by: tuple[tuple[str, Expr], ...]
    over: Regex
    given: bool = False
    """Whether the rate is the user's own."""

    @cached_property
    def rate(self) -> Regex:
        return self.over


@dataclass(frozen=True, eq=False, kw_only=True)
class SlidingWindow(Query):
    """The body on consecutive pieces, the last ``size`` values folded; ``first`` may read the first piece."""

    body: Query
    size: int
    fold: Fold
    first: Query | None = None

    def children(self) -> tuple[Query, ...]:
        return (self.body,) if self.first is None else (self.body, self.first)

    def with_children(self, parts: tuple[Query, ...]) -> Query:
        return replace(self, body=parts[0], first=parts[1] if len(parts) > 1 else None)

    @cached_property
    def rate(self) -> Regex:
        return plus(self.body.rate) if self.first is None else seq(self.first.rate, Star(self.body.rate))


@dataclass(frozen=True, eq=False, kw_only=True)
class Pipe(Query):
    """The values of the first query as the items of the second. Only at the top."""

    first: Query
    second: Query

    def children(self) -> tuple[Query, ...]:
        return (self.first, self.second)

    def with_children(self, parts: tuple[Query, ...]) -> Query:
        return replace(self, first=parts[0], second=parts[1])

    @cached_property
    def rate(self) -> Regex:
        raise _only_at_the_top(">>")


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition(_OfOne):
    """The body once per key, answering when the key's own word matches. Only at the top."""

    by: tuple[tuple[str, Expr], ...]
    only: Expr | None = None
    """Items for which it is not true are not seen."""
    again: bool = True
    """Whether a key that can never match again begins anew, or stays closed."""

    @property
    def partitioned_by(self) -> tuple[tuple[str, Expr], ...]:
        return self.by

    @property
    def per_key(self) -> Query:
        return self.body

    @cached_property
    def rate(self) -> Regex:
        raise _only_at_the_top("partition")


def _only_at_the_top(what: str) -> PlanError:
    return PlanError(
        f"'{what}' stands inside another query, where only regular patterns can stand.",
        remedy=f"Use '{what}' only at the top of a query; inside one, map_collect partitions by key.",
    )


def walk(query: Query) -> Iterator[Query]:
    """A query and everything inside it, each before its parts."""
    todo = [query]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed(node.children()))


def spine(query: Split) -> list[Split]:
    """The splits that begin with one another, from the innermost on: `iter_n` nests as many as it says."""
    nodes = [query]
    while isinstance(first := nodes[-1].parts[0], Split):
        nodes.append(first)
    return nodes[::-1]


DEEPEST = 150
"""So many nodes inside one another plain Python evaluates; kernels take any depth of splits."""


def refuse_deep(query: Query, what: str) -> None:
    """Refuses what would nest more calls than Python has."""
    level, todo = {query: 1}, [query]
    for node in todo:
        for part in node.children():
            if level.get(part, 0) > level[node]:
                continue
            if level[node] == DEEPEST:
                raise PlanError(
                    f"{what} evaluates queries with up to {DEEPEST} nodes inside one another; this has more.",
                    remedy="Use expressions, which compile, not Python functions; or repeat fewer times.",
                )
            level[part] = level[node] + 1
            todo.append(part)


def key_of(query: Query) -> Any:
    """Equal for queries that are known to compute the same; places do not count."""
    match query:
        case Atom():
            return ("atom", query.predicate.key, None if query.op is None else query.op.key)
        case Value():
            return ("value", query.op.key)
        case Iter():
            if query.fold is not None and query.fold.structure is not None:
                return ("iter", key_of(query.body), query.fold.key)
            return ("iter", key_of(query.body), query.init.key, query.op.key)
        case Split(parts=(Split(), *_)):
            inner, *around = spine(query)
            own = tuple((n.names, n.op.key, tuple(key_of(p) for p in n.parts[1:])) for n in around)
            return ("splits", key_of(inner), own)
        case _Several():
            kind = type(query).__name__
            return (kind, query.names, query.op.key, tuple(key_of(p) for p in query.parts))
        case MapCollect():
            by = tuple((n, e.key) for n, e in query.by)
            return ("map_collect", query.sync.key, by, key_of(query.body), query.over)
        case SlidingWindow():
            first = None if query.first is None else key_of(query.first)
            return ("wnd", key_of(query.body), query.size, query.fold.key, first)
        case Partition():
            only = None if query.only is None else query.only.key
            return (
                "partition",
                key_of(query.body),
                tuple((n, e.key) for n, e in query.by),
                only,
                query.again,
            )
    return (type(query).__name__, tuple(key_of(p) for p in query.children()))
