"""The type of a query's value, from its parts' types."""

from __future__ import annotations

from dataclasses import replace

from caesura.errors import CaesuraError, PlanError
from caesura.expr import Expr, type_of
from caesura.qre.language import query as q
from caesura.qre.language.error_bounds import bound_of, nonnegative
from caesura.qre.language.items import Items
from caesura.qre.language.operations import ExprOp, Operation, RecordOp
from caesura.qre.language.types import UNIT, MapOf, Record, Scalar, ValueType, joined, of_arrow, widened


def value_type(query: q.Query) -> ValueType:
    """The type of a query over known items; refuses operations that do not fit their arguments."""
    known: ValueType | None = query.__dict__.get("_value_type")
    if known is None:
        for inner in reversed(_untyped(query)):
            value_type(inner)
        try:
            known = _infer(query)
        except CaesuraError as error:
            raise error.at(query.step, query.place) from None
        object.__setattr__(query, "_value_type", known)
    return known


def _untyped(query: q.Query) -> list[q.Query]:
    """The splits that a split begins with, as `iter_n` nests them, as far as their types are not known."""
    nodes: list[q.Query] = []
    while isinstance(query, q.Split) and isinstance(query.parts[0], q.Split):
        query = query.parts[0]
        if "_value_type" in query.__dict__:
            break
        nodes.append(query)
    return nodes


def _infer(query: q.Query) -> ValueType:
    match query:
        case q.Atom(op=None):
            return _items(query).record
        case q.Atom(op=op):
            assert op is not None
            return atom_type(op, _items(query))
        case q.Value(op=op):
            return op.type({})
        case q.Split() | q.Combine():
            return query.op.type(part_types(query))
        case q.Iter(body=body, init=init, op=op):
            return accumulator(init, op, value_type(body))
        case q.Or(parts=parts):
            got = value_type(parts[0])
            for other in parts[1:]:
                got = joined(got, value_type(other), "or_")
            return got
        case q.MapCollect(body=body, by=by):
            return MapOf(key_type(query, by), value_type(body))
        case q.SlidingWindow(fold=fold):
            return accumulator(fold.init, fold.step, piece_type(query))
        case q.Partition(body=body):
            return value_type(body)
        case q.Pipe(second=second):
            return value_type(second)
    raise AssertionError(query)


def piece_type(query: q.SlidingWindow) -> ValueType:
    """The type of what a window folds; its first piece may be read by another query."""
    own = value_type(query.body)
    return own if query.first is None else joined(own, value_type(query.first), "wnd")


def part_types(query: q.Split | q.Combine) -> dict[str, ValueType]:
    """The names that a node's operation may read."""
    return {name: value_type(p) for name, p in zip(query.names, query.parts, strict=True)}


def key_type(query: q.Query, by: tuple[tuple[str, Expr], ...]) -> ValueType:
    """The type of a key: a scalar, or a record of several."""
    items = _items(query)
    types = [(name, Scalar(widened(type_of(e, items.schema, time=items.time)))) for name, e in by]
    return types[0][1] if len(types) == 1 else Record(tuple(types))


def atom_type(op: Operation, items: Items) -> ValueType:
    """The type of an operation on an item; its expressions read the item's own columns."""
    match op:
        case ExprOp(expr=expr):
            known = dict(items.record.fields)
            bound = bound_of(expr, known)
            got = of_arrow(type_of(expr, items.schema, time=items.time))
            if bound is None and isinstance(got, Scalar) and nonnegative(expr, known):
                return replace(got, nonnegative=True)
            return got if bound is None else bound
        case RecordOp(fields=fields):
            return Record(tuple((name, atom_type(inner, items)) for name, inner in fields))
    return op.type({"item": items.record})


def accumulator(init: Operation, op: Operation, x: ValueType) -> ValueType:
    """The type of a fold's value: the least that holds the start and every step."""
    got = init.type({})
    for _ in range(12):
        after = joined(got, op.type({"acc": got, "x": x}), "a fold's step")
        if repr(after) == repr(got):  # equal, and so is what is known of signs
            return got
        got = after
    raise PlanError(
        f"the error bound of '{op}' grows with every value that is folded in.",
        remedy="Fold approximate values with +, least, greatest, averages and quantiles only.",
    )


def _items(query: q.Query) -> Items:
    if query.items is None:
        raise PlanError(
            "the items of this query are not known yet.",
            remedy="Give atom(..., items=qre.items(schema)), or call query.on(qre.items(schema)).",
        )
    return query.items


__all__ = ["UNIT", "accumulator", "atom_type", "key_type", "part_types", "value_type"]
