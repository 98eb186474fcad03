"""Functions over the elements of lists: `transform`, `filter`, `exists`, `forall` and `aggregate`.

What is said of one element is an expression like any other, over the row's columns and the element. It is
computed once for all elements of a page, which lie one behind the other; a fold goes through the lists
place by place, all rows at once.

>>> from caesura.expr.evaluation import evaluate
>>> from caesura.expr.nodes import col
>>> batch = pa.record_batch({"a": [[1, 2], [], None, [5]], "by": [10, 10, 10, 100]})
>>> evaluate(each("transform", col("a"), lambda x: x * col("by")), batch).to_pylist()
[[10, 20], [], None, [500]]
>>> evaluate(fold(col("a"), 0, lambda acc, x: acc + x), batch).to_pylist()
[3, 0, None, 5]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import ExprError
from caesura.events.nested import any_element, elements, listed, offsets_of, owners, validity
from caesura.expr.arrays import keep_where
from caesura.expr.nodes import Column, Expr, as_column, as_expr
from caesura.expr.types import common_type, describe, kind

Verb = Literal["transform", "filter", "exists", "forall"]
I64 = npt.NDArray[np.int64]
Reasons = dict[int, str]
_depth: ContextVar[int] = ContextVar("depth", default=0)


@dataclass(frozen=True, eq=False, repr=False)
class Element(Column):
    """What a function over elements is given: an element, its place, or what was folded so far."""

    @property
    def shown(self) -> str:
        """The name that the user gave it."""
        return self.name.partition("\0")[0]


@dataclass(frozen=True, eq=False, repr=False)
class Each(Expr):
    """Something said of each element of a list."""

    verb: Verb
    arg: Expr
    body: Expr
    bound: tuple[str, ...]
    """The element, and its place if that is asked for."""


@dataclass(frozen=True, eq=False, repr=False)
class ListFold(Expr):
    """What becomes of a value by one element of a list after the other."""

    arg: Expr
    start: Expr
    merge: Expr
    finish: Expr
    bound: tuple[str, ...]
    """What was folded so far, and the element."""


class ElementRows(NamedTuple):
    """What expressions are computed on: a batch and its rows' lifetimes."""

    batch: pa.RecordBatch
    le: I64 | None
    re: I64 | None

    def beside(self, columns: dict[str, pa.Array], rows: I64, needed: set[str]) -> ElementRows:
        """Some rows, with more columns, and of their own those that are needed."""
        wanted = pa.array(rows)
        own = [n for n in self.batch.schema.names if n in needed and n not in columns]
        parts = [*(self.batch.column(n).take(wanted) for n in own), *columns.values()]
        le, re = (None if t is None else t[rows] for t in (self.le, self.re))
        return ElementRows(pa.RecordBatch.from_arrays(parts, names=[*own, *columns]), le, re)


Evaluator = Callable[[Expr, ElementRows], tuple[pa.Array, Reasons]]
"""An expression on rows, and by row why it has no value there."""
TypeOf = Callable[[Expr, pa.Schema], pa.DataType]


# Writing them.


def each(verb: Verb, arg: object, function: Callable[..., Any]) -> Expr:
    """An expression of each element; the function takes the element, and its place if it takes two."""
    with _named(verb, function, (1,) if verb in ("exists", "forall") else (1, 2)) as bound:
        return Each(verb, as_column(arg), _body(verb, function, bound), tuple(e.name for e in bound))


def fold(
    arg: object, start: object, merge: Callable[..., Any], finish: Callable[..., Any] | None = None
) -> Expr:
    """The list folded into one value from ``start`` on, by ``merge(so far, element)``."""
    with _named("aggregate", merge, (2,)) as bound:
        merged = _body("aggregate", merge, bound)
        done = bound[0] if finish is None else _body("aggregate", finish, bound[:1])
        return ListFold(as_column(arg), as_expr(start), merged, done, tuple(e.name for e in bound))


@contextmanager
def _named(verb: str, function: Callable[..., Any], counts: tuple[int, ...]) -> Iterator[list[Element]]:
    """The elements that a function is given, by the names of its parameters."""
    names = list(inspect.signature(function).parameters) if callable(function) else []
    if len(names) not in counts:
        wanted = "lambda acc, x: acc + x" if counts == (2,) else "lambda x: x + 1"
        got = f"one of {len(names)}" if callable(function) else repr(function)
        raise ExprError(
            f"{verb} takes a function of {' or '.join(map(str, counts))} parameters, got {got}.",
            remedy=f"Write one like {wanted}.",
        )
    depth = _depth.get() + 1
    token = _depth.set(depth)
    try:
        yield [Element(f"{name}\0{depth}") for name in names]
    finally:
        _depth.reset(token)


def _body(verb: str, function: Callable[..., Any], given: list[Element]) -> Expr:
    made = function(*given)
    if isinstance(made, Expr) or not callable(made):
        return as_expr(made)
    raise ExprError(f"the function of {verb} gives {made!r}.", remedy="Give an expression of the element.")


# Types.


def lambda_type(expr: Each | ListFold, schema: pa.Schema, type_of: TypeOf) -> pa.DataType:
    """The type of the expression over rows of this schema."""
    if isinstance(expr, ListFold):
        return type_of(expr.finish, inner_schema(expr, schema, type_of))
    made = type_of(expr.body, inner_schema(expr, schema, type_of))
    if expr.verb == "transform":
        return pa.list_(pa.string() if pa.types.is_null(made) else made)
    if kind(made) not in ("boolean", "null"):
        raise ExprError(
            f"in '{expr}': wanted a condition on the element, got {describe(made)}.",
            remedy="Compare it with something, as in lambda x: x > 0.",
        )
    return type_of(expr.arg, schema) if expr.verb == "filter" else pa.bool_()


def inner_schema(expr: Each | ListFold, schema: pa.Schema, type_of: TypeOf) -> pa.Schema:
    """The columns that what is said of an element may read."""
    whole = type_of(expr.arg, schema)
    if kind(whole) != "list":
        name = expr.verb if isinstance(expr, Each) else "aggregate"
        raise ExprError(
            f"in '{expr}': {name} wanted a list, got {expr.arg} ({describe(whole)}).",
            remedy="Take map_keys, map_values or map_entries of a map; array(...) makes a list.",
        )
    own = [field for field in schema if field.name not in expr.bound]
    if isinstance(expr, Each):
        given = zip(expr.bound, (whole.value_type, pa.int32()), strict=False)
        return pa.schema([*own, *given])
    held = _held(expr, own, whole.value_type, type_of(expr.start, schema), type_of)
    return pa.schema([*own, (expr.bound[0], held), (expr.bound[1], whole.value_type)])


def _held(expr: ListFold, own: list[Any], t: pa.DataType, first: pa.DataType, type_of: TypeOf) -> pa.DataType:
    """The type of what is folded: wide enough for the start and for what merging gives."""
    made = type_of(expr.merge, pa.schema([*own, (expr.bound[0], first), (expr.bound[1], t)]))
    shared = common_type(first, made)
    if shared is None:
        raise ExprError(
            f"in '{expr}': it starts with {describe(first)}, and merging gives {describe(made)}.",
            remedy="Cast the start, as in lit(0).cast('double').",
        )
    again = type_of(expr.merge, pa.schema([*own, (expr.bound[0], shared), (expr.bound[1], t)]))
    if again == shared:
        return shared
    wider = common_type(shared, again)
    return shared if wider is None else wider


# Computing them.


def computed(
    expr: Each | ListFold,
    rows: ElementRows,
    t: pa.DataType,
    inner: pa.Schema,
    on: Evaluator,
    cast: Callable[..., Any],
) -> tuple[pa.Array, Reasons]:
    """The expression on rows; ``t`` is its type, ``inner`` what the function's body may read."""
    column, reasons = on(expr.arg, rows)
    if isinstance(expr, ListFold):
        return _folded(expr, rows, column, reasons, inner, on, cast)
    offsets, values = elements(column)
    owner = owners(offsets)
    given = {expr.bound[0]: values}
    if len(expr.bound) == 2:
        places = np.arange(len(values)) - offsets[owner]
        given[expr.bound[1]] = pa.array(places.astype(np.int32))
    made, bad = on(expr.body, rows.beside(given, owner, columns_of(expr.body)))
    for at, why in bad.items():
        reasons.setdefault(int(owner[at]), why)
    return _gathered(expr, column, offsets, values, made, t), reasons


def _gathered(
    expr: Each, column: pa.Array, offsets: I64, values: pa.Array, made: pa.Array, t: pa.DataType
) -> pa.Array:
    """What was computed of each element, by row."""
    if expr.verb == "transform":
        return listed(t, offsets, made, validity(column))
    true = np.array(pc.fill_null(made, False), np.bool_)
    if expr.verb == "filter":
        sizes = np.bincount(owners(offsets)[true], minlength=len(column)).astype(np.int64)
        return listed(t, offsets_of(sizes), values.filter(pa.array(true)), validity(column))
    unknown = any_element(offsets, np.array(pc.is_null(made), np.bool_))
    if expr.verb == "exists":
        holds = any_element(offsets, true)
        unknown &= ~holds
    else:
        fails = any_element(offsets, np.array(pc.invert(pc.fill_null(made, True)), np.bool_))
        holds, unknown = ~fails, unknown & ~fails
    return keep_where(column.is_valid(), pa.array(holds, mask=unknown))


def _folded(
    expr: ListFold,
    rows: ElementRows,
    column: pa.Array,
    reasons: Reasons,
    inner: pa.Schema,
    on: Evaluator,
    cast: Callable[..., Any],
) -> tuple[pa.Array, Reasons]:
    """Place by place: what was folded so far, of all rows whose list is so long."""
    offsets, values = elements(column)
    sizes = np.diff(offsets)
    held_type = inner.field(expr.bound[0]).type
    first, bad = on(expr.start, rows)
    held = cast(first, held_type)
    reasons |= bad
    needed = columns_of(expr.merge)
    for place in range(int(sizes.max(initial=0))):
        some = np.flatnonzero(sizes > place)
        some = some[~np.isin(some, list(reasons))] if reasons else some
        given = {
            expr.bound[0]: held.take(pa.array(some)),
            expr.bound[1]: values.take(pa.array(offsets[some] + place)),
        }
        made, bad = on(expr.merge, rows.beside(given, some, needed))
        reasons |= {int(some[at]): why for at, why in bad.items()}
        order = np.arange(len(column))
        order[some] = len(column) + np.arange(len(some))
        held = pa.concat_arrays([held, cast(made, held_type)]).take(pa.array(order))
    every = np.arange(len(column))
    done, bad = on(expr.finish, rows.beside({expr.bound[0]: held}, every, columns_of(expr.finish)))
    reasons |= bad
    return keep_where(column.is_valid(), done), {
        at: why for at, why in reasons.items() if column[at].is_valid
    }


def columns_of(expr: Expr) -> set[str]:
    """The columns that an expression reads, elements of lists around it included."""
    from caesura.expr.rewrite import children

    if isinstance(expr, Column):
        return {expr.name}
    own = set().union(*(columns_of(c) for c in children(expr)))
    return own - set(expr.bound) if isinstance(expr, Each | ListFold) else own


def parts(expr: Each | ListFold) -> tuple[Expr, ...]:
    """The expressions that it is made of."""
    return (
        (expr.arg, expr.body) if isinstance(expr, Each) else (expr.arg, expr.start, expr.merge, expr.finish)
    )


def with_parts(expr: Each | ListFold, new: list[Expr]) -> Expr:
    """The same over other expressions."""
    if isinstance(expr, Each):
        return replace(expr, arg=new[0], body=new[1])
    return replace(expr, arg=new[0], start=new[1], merge=new[2], finish=new[3])
