"""The columns that a compiled query reads, and how terms name them.

A simple expression over numeric columns is computed inside the kernel; any other is computed for the
whole page before, and the kernel reads its column. Where it has no value on an item, a mask says so, and
that matters only if an atom reads the item.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import words
from caesura.expr import Alias, Apply, Case, Column, Constant, Expr, Member, attributes, children, type_of
from caesura.kernels.hashing import Mask
from caesura.qre.compiler import ir
from caesura.qre.compiler.columns import PageColumns, may_fail, nulls_in
from caesura.qre.compiler.ir import TRUE, Term
from caesura.qre.compiler.lowering import CHECKED, NotCompiled, ScalarTerm, Value, kind_of, term_of
from caesura.qre.compiler.texts import Texts
from caesura.qre.language.items import Items
from caesura.qre.language.operations import ExprOp, Operation, RecordOp
from caesura.qre.language.scalar import wide
from caesura.qre.language.types import Scalar, widened
from caesura.qre.language.whole_numbers import VOID

_NARROW_SAFE = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not"}
_TOTAL = _NARROW_SAFE | {"add", "subtract", "multiply", "negate", "abs"}
Array = np.ndarray[Any, Any]
UNREAD: Array = np.zeros(0, np.bool_)


class Inputs:
    """Numbers for what a query reads; one place per value, null flag or mask."""

    def __init__(self, items: Items) -> None:
        self.items = items
        self.texts = Texts()
        self.specs: list[tuple[str, Expr]] = []
        """('value' | 'there' | 'mask' | 'text' | 'void', expression) per column."""
        self._known: dict[Hashable, int] = {}

    def _number(self, what: str, expr: Expr) -> int:
        key = (what, expr.key)
        if key not in self._known:
            self._known[key] = len(self.specs)
            self.specs.append((what, expr))
        return self._known[key]

    def value(self, op: Operation | None) -> Value:
        """An atom's value as terms over columns."""
        match op:
            case None:
                return {f.name: self.word(Column(f.name)) for f in self.items.schema}
            case ExprOp(expr=expr):
                return self.word(expr)
            case RecordOp(fields=fields):
                return {name: self.value(inner) for name, inner in fields}
        raise NotCompiled(f"the operation '{op}'")

    def word(self, expr: Expr) -> ScalarTerm:
        """An expression over an item as a word."""
        inline = self._inline(expr)
        if inline is not None:
            return inline
        t = widened(self._type(expr))
        kind = kind_of(Scalar(t))
        text = pa.types.is_string(t)
        at = self._number("text" if text else "value", expr)
        there = TRUE if never_null(expr, self.items) else ir.item(self._number("there", expr), "i")
        return ScalarTerm(ir.item(at, kind), there, text, over=self._over(expr, ir.item(at, kind)))

    def _over(self, expr: Expr, value: Term) -> Term:
        """How many 2**64 go with an expression's column; VOID for items on which it has no value."""
        if isinstance(expr, Column):
            return ir.lt(value, ir.const(0)) if _unsigned(self._type(expr)) else ir.ZERO
        if not may_fail(expr, self.items):
            return ir.ZERO
        return ir.select(ir.item(self._number("void", expr), "i"), ir.const(VOID), ir.ZERO)

    def _type(self, expr: Expr) -> pa.DataType:
        return type_of(expr, self.items.schema, time=self.items.time)

    def truth(self, predicate: Expr) -> Term:
        """When a predicate is true of the item."""
        inline = self._inline(predicate)
        if inline is not None and not inline.risky:
            return ir.and_(inline.there, inline.term)
        return ir.item(self._number("mask", predicate), "i")

    def _inline(self, expr: Expr) -> ScalarTerm | None:
        names = attributes(expr)
        fields = [self.items.schema.field(n) for n in names if n in self.items.schema.names]
        if isinstance(expr, Column) or not all(_plain(f.type) for f in fields):
            return None
        if not _wide(expr, {f.name for f in fields if widened(f.type) != f.type}):
            return None
        try:
            got = term_of(wide(expr), {f.name: self.word(Column(f.name)) for f in fields}, CHECKED)
        except (NotCompiled, KeyError):
            return None
        return got if isinstance(got, ScalarTerm) else None

    def arrays(self, page: PageColumns, read: Sequence[bool] = ()) -> list[Array]:
        """The columns of one page, in order, each in its own width; those that are not read are empty."""
        wanted = read or [True] * len(self.specs)
        pairs = zip(self.specs, wanted, strict=True)
        return [self._array(what, expr, page) if want else UNREAD for (what, expr), want in pairs]

    def _array(self, what: str, expr: Expr, page: PageColumns) -> Array:
        if what == "mask":
            return page.mask(expr)
        if what == "void":
            return page.void(expr)
        column = page.column(expr)
        if what == "there":
            if column.null_count == 0:
                return np.ones(len(column), np.bool_)
            flags: Mask = column.is_valid().to_numpy(zero_copy_only=False)
            return flags | page.void(expr)
        if column.null_count > page.failures(expr) and never_null(expr, self.items):
            raise nulls_in(expr)
        if what == "text":
            return self.texts.encode(column)
        if pa.types.is_boolean(column.type):
            return words(column).view(np.bool_)
        return words(column).view(np.int64) if _unsigned(column.type) else words(column)


def _plain(t: pa.DataType) -> bool:
    whole = pa.types.is_integer(t) and not _unsigned(t)
    return bool(whole or pa.types.is_floating(t) or pa.types.is_boolean(t))


def _unsigned(t: pa.DataType) -> bool:
    """Whether values may be beyond what a word of a kernel holds."""
    return bool(pa.types.is_uint64(t))


def _wide(expr: Expr, narrow: set[str]) -> bool:
    """Whether narrow columns are compared only: arithmetic on them would wrap at their width."""
    match expr:
        case Column(name=name):
            return name not in narrow
        case Constant():
            return True
        case Apply(name=name) if name in _NARROW_SAFE:
            return all(isinstance(c, Column) or _wide(c, narrow) for c in children(expr))
        case Member():
            return all(isinstance(c, Column) or _wide(c, narrow) for c in children(expr))
        case Apply() | Case() | Alias():
            return all(_wide(c, narrow) for c in children(expr))
    return False


def never_null(expr: Expr, items: Items) -> bool:
    """Whether an expression over an item can be seen to have a value always."""
    match expr:
        case Constant(value=value):
            return value is not None
        case Column(name=name):
            return name in items.schema.names and not items.schema.field(name).nullable
        case Alias(arg=arg):
            return never_null(arg, items)
        case Case(branches=branches, default=default):
            return all(never_null(v, items) for _, v in branches) and never_null(default, items)
        case Apply(name="is_null" | "is_not_null"):
            return True
        case Apply(name="coalesce", args=args):
            return any(never_null(a, items) for a in args)
        case Apply(name=name, args=args) if name in _TOTAL:
            return all(never_null(a, items) for a in args)
    return False
