"""What a query keeps, and what frees it: items that wait, keys in the middle of a pattern, maps, folds.

     partition(f, by="id")        a key's registers, until its pattern ends or is left, or `id` is promised
     map_collect by ticks, anew   a key's registers, until the next tick
     a map inside a partition     its keys' registers, as long as the partition keeps the key that it is of
     any other map_collect        a key's registers, for ever
     an exact quantile            every value; `quantile(..., epsilon=...)` keeps a fixed number

Everything else is a fixed number of registers, and the texts that they hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from caesura.expr import Column, Expr
from caesura.plan import Holding, Need
from caesura.qre.checking.inference import value_type
from caesura.qre.engine.choice import machine_for
from caesura.qre.engine.map_rates import anew_at_every_tick
from caesura.qre.language.query import Iter, MapCollect, Partition, Pipe, Query, walk
from caesura.qre.language.sketches import EventCount, Quantile
from caesura.qre.language.types import MapOf, Opaque, Record, RelOf, ValueType

By = tuple[tuple[str, Expr], ...]


def holdings(query: Query, every: int | None, lives: str) -> tuple[Holding, ...]:
    """The state of a query over a stream, with ticks every so often."""
    waiting = Holding("items that wait for their turn", 0, (Need(0, ()),), until="start")
    held = [waiting, *_held(query, every, first=True)]
    if lives == "until_next" and query.partitioned_by:
        held.append(_per_key("last answers of keys", query.partitioned_by))
    return tuple(held)


def partitioned(query: Query) -> dict[str, str]:
    """The columns by which a query is partitioned, with their names in its output."""
    while isinstance(query, Pipe):
        query = query.first
    return {e.name: name for name, e in query.partitioned_by if isinstance(e, Column)}


def _held(query: Query, every: int | None, *, first: bool) -> Iterator[Holding]:
    if isinstance(query, Pipe):
        yield from _held(query.first, every, first=first)
        yield from _held(query.second, None, first=False)
        return
    if isinstance(query, Partition) and not _always_rests(query):
        yield _per_key("keys in the middle of their pattern", query.by if first else ())
    for part in walk(query):
        if isinstance(part, MapCollect) and query.partitioned_by:
            of = tuple(e.name for _, e in query.partitioned_by if isinstance(e, Column)) if first else ()
            yield Holding("keys of the map of a key", 0, (Need(0, of),), until="forever")
        elif isinstance(part, MapCollect):
            yield _mapped(part, every, first)
        elif isinstance(part, Iter) and _collects(part):
            yield _for_ever("values of a fold", _why(part))


def _per_key(what: str, by: By) -> Holding:
    """State per key: gone for good when a promise covers the key."""
    columns = tuple(e.name for _, e in by if isinstance(e, Column))
    bounded_columns = columns if by and len(columns) == len(by) else None
    return Holding(what, 0, (Need(0, columns),), until="forever", one_per=bounded_columns)


def _mapped(node: MapCollect, every: int | None, first: bool) -> Holding:
    """A map's keys: a later map may name each of them, unless every tick begins anew."""
    if every is not None and anew_at_every_tick(node, True):
        return Holding("keys of the map", 0, (Need(0, ()),), until="start", size=every)
    bounded_columns = tuple(e.name for _, e in node.by if isinstance(e, Column))
    why = "a later map may name any of them; a map that begins anew at every tick frees them there"
    return _for_ever(
        "keys of the map", why, bounded_columns if first and len(bounded_columns) == len(node.by) else None
    )


def _for_ever(what: str, why: str, bounded_columns: tuple[str, ...] | None = None) -> Holding:
    return Holding(what, 0, (Need(0, ()),), until="forever", one_per=bounded_columns, why=why)


def _why(node: Iter) -> str:
    if node.fold is not None and isinstance(node.fold.structure, Quantile):
        return "an exact quantile keeps every value; with epsilon= it keeps a fixed number"
    name = f"'{node.fold or node.op}'"
    return f"the type of {name} does not say that its value stays small; annotate its function's result"


def _always_rests(query: Partition) -> bool:
    """Whether every item of a key ends its pattern, or leaves it."""
    return machine_for(query).always_rests(again=query.again)


def _collects(node: Iter) -> bool:
    """Whether a fold's value may grow: a relation, a map, or what a Python function does not tell."""
    known = None if node.fold is None else node.fold.structure
    if isinstance(known, Quantile):
        return known.epsilon is None
    return not isinstance(known, EventCount) and _open_ended(value_type(node))


def _open_ended(t: ValueType) -> bool:
    match t:
        case Record(fields=fields):
            return any(_open_ended(inner) for _, inner in fields)
        case RelOf() | MapOf() | Opaque():
            return True
    return False
