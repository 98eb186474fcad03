"""The columns that a query reads of a page: predicates as masks, atoms' values, keys.

Everything about a single item is worked out for the whole page at once, by the columnar evaluator;
kernels and the twin only see the results.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import DataError, StreamError
from caesura.expr import (
    Apply,
    Boundary,
    Call,
    Cast,
    Constant,
    Expr,
    attributes,
    children,
    compile_expr,
    compile_predicate,
    predicate_mask,
    type_of,
)
from caesura.expr.careful import careful
from caesura.expr.faults import RowError, shown
from caesura.kernels.hashing import I64, Mask
from caesura.qre.checking.checking import letters_of, trusts_cases
from caesura.qre.checking.minterms import Alphabet
from caesura.qre.kernels.letters import Refinement
from caesura.qre.language.items import Items
from caesura.qre.language.operations import ExprOp, Operation, RecordOp
from caesura.qre.language.query import Atom, Pipe, Query
from caesura.qre.language.whole_numbers import REMEDY, Void


class PageColumns:
    """One page as a query reads it; each predicate and value is computed when first asked for."""

    def __init__(self, reader: ColumnReader, batch: pa.RecordBatch, le: I64 | None, re: I64 | None) -> None:
        self.reader = reader
        self.batch = batch
        self.le, self.re = le, re
        self._masks: dict[Hashable, Mask] = {}
        self._columns: dict[Hashable, pa.Array] = {}
        self._lists: dict[Hashable, list[Any]] = {}
        self._failed: dict[Hashable, RowError] = {}
        """By expression, the items on which it has no value."""

    def mask(self, predicate: Expr) -> Mask:
        """Where a predicate is true."""
        key = predicate.key
        if key not in self._masks:
            self._refuse_nulls(predicate)
            run, timed = self.reader.predicate(predicate)
            try:
                self._masks[key] = run(self.batch, self.le, self._ends(timed))
            except RowError as error:
                self._failed[key] = error
                made = careful(predicate, self.batch, self.le, self.re, time=self.reader.items.time)[0]
                self._masks[key] = predicate_mask(made)
        return self._masks[key]

    def _refuse_nulls(self, predicate: Expr) -> None:
        """Predicates are compared for columns as they are declared."""
        for field in self.reader.items.schema:
            if field.nullable or field.name not in attributes(predicate):
                continue
            if self.batch.column(field.name).null_count:
                raise nulls_in(field.name)

    def column(self, expr: Expr) -> pa.Array:
        """An expression's column."""
        key = expr.key
        if key not in self._columns:
            run, timed = self.reader.expression(expr)
            try:
                self._columns[key] = run(self.batch, self.le, self._ends(timed))
            except RowError as error:
                self._failed[key] = error
                made = careful(expr, self.batch, self.le, self.re, time=self.reader.items.time)[0]
                self._columns[key] = made
        return self._columns[key]

    def void(self, expr: Expr) -> Mask:
        """The items on which an expression has no value."""
        self.column(expr)
        out = np.zeros(self.batch.num_rows, np.bool_)
        if self.failures(expr):
            out[self._failed[expr.key].rows] = True
        return out

    @property
    def failed(self) -> RowError | None:
        """Items of this page on which some expression has no value."""
        return next(iter(self._failed.values()), None)

    def failures(self, expr: Expr) -> int:
        """On how many items an expression has no value."""
        return len(self._failed[expr.key].rows) if expr.key in self._failed else 0

    def refuse(self, exprs: Iterable[Expr], seen: Mask | None) -> None:
        """Stops at the first item, of those that are seen, on which what must be known has no value."""
        errors = [self._failed[e.key] for e in exprs if e.key in self._failed]
        found = [
            (row, i) for i, e in enumerate(errors) for row in e.rows.tolist() if seen is None or seen[row]
        ]
        if found:
            row, which = min(found)
            raise unanswered(errors[which], row, self.batch)

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
        return self._listed(("column", expr.key), lambda: self._read(expr))

    def _read(self, expr: Expr) -> list[Any]:
        out: list[Any] = self.column(expr).to_pylist()
        error = self._failed.get(expr.key)
        if error is not None:
            for row in error.rows.tolist():
                out[row] = Void(error.reasons[0])
        return out

    def items(self) -> list[dict[str, Any]]:
        """The items as dicts."""
        return self._listed("items", self.batch.to_pylist)

    def keys(self, by: tuple[tuple[str, Expr], ...]) -> list[Any]:
        """Per item its key; a tuple when there are several columns; None for a null key."""

        def made() -> list[Any]:
            parts = [[None if isinstance(v, Void) else v for v in self.values(e)] for _, e in by]
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


class ColumnReader:
    """Expressions over one kind of items, compiled once."""

    def __init__(self, items: Items) -> None:
        self.items = items
        self._trusted: tuple[Alphabet, Refinement, Expr | None] | None = None
        self._asked: tuple[tuple[Expr, ...], Expr | None] = (), None
        """The predicates that may have no answer on an item, and which items are seen at all."""
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
        made = PageColumns(self, batch, le, re)
        self._refuse_unanswered(made)
        if self._trusted is not None:
            self._refuse_undeclared(made, *self._trusted)
        return made

    def ask(self, predicates: tuple[Expr, ...], only: Expr | None) -> None:
        """Has pages looked at: every predicate has an answer on every item that is seen."""
        given = predicates if only is None else (only, *predicates)
        self._asked = tuple(p for p in given if may_fail(p, self.items)), only

    def _refuse_unanswered(self, page: PageColumns) -> None:
        predicates, only = self._asked
        for predicate in predicates:
            page.mask(predicate)
        if only is not None:
            page.refuse([only], None)
        page.refuse(predicates, None if only is None else page.mask(only))

    def trust(self, letters: Alphabet, only: Expr | None) -> None:
        """Has pages looked at: the query is well typed for items that are letters only."""
        tree = Refinement([m.truth for m in letters.minterms], len(letters.exprs))
        self._trusted = letters, tree, only

    def _refuse_undeclared(
        self, page: PageColumns, letters: Alphabet, tree: Refinement, only: Expr | None
    ) -> None:
        own = tree.letters([page.mask(e) for e in letters.exprs], page.batch.num_rows)
        foreign = own == len(letters.minterms)
        bad = np.flatnonzero(foreign if only is None else foreign & page.mask(only))
        if len(bad):
            raise undeclared(page.batch.slice(int(bad[0]), 1))


def reader_of(query: Query) -> ColumnReader:
    """What reads the pages of a whole query."""
    assert query.items is not None
    reader = ColumnReader(query.items)
    if isinstance(query, Pipe):
        return reader
    only = query.only
    letters = letters_of(query.per_key)
    reader.ask(tuple(letters.exprs), only)
    if trusts_cases(query):
        reader.trust(letters, only)
    return reader


_SAFE = {
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "between", "and", "or", "not"),
    *("is_null", "is_not_null", "coalesce", "if_null", "least", "greatest"),
}


def may_fail(expr: Expr, items: Items) -> bool:
    """Whether an expression may have no value on an item: a sum beyond its type, a function's failure."""
    parts = children(expr)
    if isinstance(expr, (Cast, Call)) or (isinstance(expr, Apply) and expr.name not in _SAFE):
        return True
    kinds = {type_of(c, items.schema, time=items.time) for c in parts if not isinstance(c, Constant)}
    return len(kinds) > 1 or any(may_fail(c, items) for c in parts)


def asks_for_times(expr: Expr) -> bool:
    """Whether an expression reads an item's start or end."""
    return isinstance(expr, Boundary) or any(asks_for_times(c) for c in children(expr))


def nulls_in(column: Any) -> DataError:
    """What to say of nulls that the schema rules out."""
    return DataError(
        f"the column '{column}' has nulls, but its schema says that it has none.",
        remedy="Declare the field nullable, or leave such rows out.",
    )


def undeclared(item: pa.RecordBatch) -> StreamError:
    """What to say of an item that no case declares, where the query is ambiguous with it."""
    return StreamError(
        f"no case declares an item like {item.to_pylist()[0]}, "
        "and the query is well typed for declared ones only.",
        remedy="Declare its case in qre.tagged(...), or leave such items out with where(...).",
    )


def unanswered(error: RowError, row: int, batch: pa.RecordBatch) -> StreamError:
    """What to say of an item on which what decides has no value."""
    why = error.reasons[error.rows.tolist().index(row)]
    return StreamError(
        f"{why}; the pattern asks it of every item, and the item is ({shown(batch, row)}).", remedy=REMEDY
    )


def null_key(row: int, page: PageColumns, by: tuple[tuple[str, Expr], ...] = ()) -> StreamError:
    """What to say of a keyed item without key."""
    page.refuse([expr for _, expr in by], np.arange(page.batch.num_rows) == row)
    item = page.batch.slice(row, 1).to_pylist()[0]
    return StreamError(
        f"a keyed item has a null key: {item}.",
        remedy="Leave items without key out with where(...is_not_null()).",
    )
