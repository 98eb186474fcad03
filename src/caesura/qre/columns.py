"""The columns that a query reads of a page: predicates as masks, atoms' values, keys.

Everything about a single item is worked out for the whole page at once, by the columnar evaluator;
kernels and the twin only see the results.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pyarrow as pa

from caesura.errors import StreamError
from caesura.expr import Boundary, Expr, children, compile_expr, compile_predicate
from caesura.kernels.hashing import I64, Mask
from caesura.qre.items import Items
from caesura.qre.operations import ExprOp, Operation, RecordOp
from caesura.qre.query import Atom


class PageColumns:
    """One page as a query reads it; each predicate and value is computed when first asked for."""

    def __init__(self, reader: Reader, batch: pa.RecordBatch, le: I64 | None, re: I64 | None) -> None:
        self.reader = reader
        self.batch = batch
        self.le, self.re = le, re
        self._masks: dict[Hashable, Mask] = {}
        self._columns: dict[Hashable, pa.Array] = {}
        self._lists: dict[Hashable, list[Any]] = {}

    def mask(self, predicate: Expr) -> Mask:
        """Where a predicate is true."""
        key = predicate.key
        if key not in self._masks:
            run, timed = self.reader.predicate(predicate)
            self._masks[key] = run(self.batch, self.le, self._ends(timed))
        return self._masks[key]

    def column(self, expr: Expr) -> pa.Array:
        """An expression's column."""
        key = expr.key
        if key not in self._columns:
            run, timed = self.reader.expression(expr)
            self._columns[key] = run(self.batch, self.le, self._ends(timed))
        return self._columns[key]

    def _ends(self, asked: bool) -> I64 | None:
        """The items' ends; an item is a point unless it is said otherwise."""
        if asked and self.re is None and self.le is not None:
            self.re = self.le + 1
        return self.re

    def hits(self, predicate: Expr) -> list[bool]:
        """`mask` as a list."""
        return self._listed(("mask", predicate.key), lambda: self.mask(predicate).tolist())

    def values(self, expr: Expr) -> list[Any]:
        """`column` as a list of Python values."""
        return self._listed(("column", expr.key), lambda: self.column(expr).to_pylist())

    def items(self) -> list[dict[str, Any]]:
        """The items as dicts."""
        return self._listed("items", self.batch.to_pylist)

    def keys(self, by: tuple[tuple[str, Expr], ...]) -> list[Any]:
        """Per item its key; a tuple when there are several columns; None for a null key."""

        def made() -> list[Any]:
            parts = [self.values(e) for _, e in by]
            if len(parts) == 1:
                return parts[0]
            return [None if None in key else key for key in zip(*parts, strict=True)]

        return self._listed(("keys", tuple(e.key for _, e in by)), made)

    def value(self, atom: Atom, row: int) -> Any:
        """The value of an atom on one item."""
        return self._value(atom.op, atom, row)

    def _value(self, op: Operation | None, atom: Atom, row: int) -> Any:
        match op:
            case None:
                return self.items()[row]
            case ExprOp(expr=expr):
                return self.values(expr)[row]
            case RecordOp(fields=fields):
                return {name: self._value(inner, atom, row) for name, inner in fields}
        assert atom.items is not None
        return op.closure({"item": atom.items.record})({"item": self.items()[row]})

    def _listed(self, key: Hashable, make: Any) -> list[Any]:
        if key not in self._lists:
            self._lists[key] = make()
        return self._lists[key]


class Reader:
    """Expressions over one kind of items, compiled once."""

    def __init__(self, items: Items) -> None:
        self.items = items
        self._predicates: dict[Hashable, tuple[Any, bool]] = {}
        self._expressions: dict[Hashable, tuple[Any, bool]] = {}

    def predicate(self, expr: Expr) -> tuple[Any, bool]:
        """The compiled predicate, and whether it asks for lifetimes."""
        if expr.key not in self._predicates:
            run = compile_predicate(expr, self.items.schema, time=self.items.time)
            self._predicates[expr.key] = run, asks_for_times(expr)
        return self._predicates[expr.key]

    def expression(self, expr: Expr) -> tuple[Any, bool]:
        """The compiled expression, and whether it asks for lifetimes."""
        if expr.key not in self._expressions:
            run = compile_expr(expr, self.items.schema, time=self.items.time)
            self._expressions[expr.key] = run, asks_for_times(expr)
        return self._expressions[expr.key]

    def page(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> PageColumns:
        """A page of items."""
        return PageColumns(self, batch, le, re)


def asks_for_times(expr: Expr) -> bool:
    """Whether an expression reads an item's start or end."""
    return isinstance(expr, Boundary) or any(asks_for_times(c) for c in children(expr))


def null_key(row: int, page: PageColumns) -> StreamError:
    """What to say of a keyed item without key."""
    item = page.batch.slice(row, 1).to_pylist()[0]
    return StreamError(
        f"a keyed item has a null key: {item}.",
        remedy="Leave items without key out with where(...is_not_null()).",
    )
