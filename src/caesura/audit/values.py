"""Expressions on one row, in plain Python: nulls, NaN, numbers out of range and Spark's division.

>>> import pyarrow as pa
>>> from caesura.expr import col
>>> reader = RowValues(pa.schema([("a", pa.int64())]), pa.int64())
>>> reader.of(col("a") / 2 + 1, {"a": 3}, 0, 1), reader.of(col("a") > 1, {"a": None}, 0, 1)
(2.5, None)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from caesura.audit import functions, nested
from caesura.audit.texts import UnsureError
from caesura.errors import StreamError
from caesura.expr import lit, type_of
from caesura.expr.lambdas import Each, ListFold, inner_schema
from caesura.expr.nodes import Alias, Apply, Boundary, Call, Case, Cast, Column, Constant, Expr, Field, Member
from caesura.punctuation import INFINITY


class NotAuditedError(StreamError):
    """Something that the audit cannot recompute; it is reported, never passed over."""


class RowValues:
    """Reads expressions on the rows of a stream with these columns and this type of time."""

    def __init__(self, schema: pa.Schema, time: pa.DataType) -> None:
        self.schema, self.time = schema, time
        self._types: dict[Hashable, pa.DataType] = {}

    def type(self, expr: Expr) -> pa.DataType:
        """The type of an expression's values."""
        if expr.key not in self._types:
            self._types[expr.key] = type_of(expr, self.schema, time=self.time)
        return self._types[expr.key]

    def of(self, expr: Expr, row: Mapping[str, Any], le: int = 0, re: int = 0) -> Any:
        """The value of an expression on a row with a lifetime."""
        match expr:
            case Column(name):
                return row[name]
            case Constant():
                return expr.scalar.as_py()
            case Alias(arg, _):
                return self.of(arg, row, le, re)
            case Field(arg, name):
                whole = self.of(arg, row, le, re)
                return None if whole is None else whole[name]
            case Boundary(side):
                return self.moment(le if side == "start" else re)
            case Case(branches, default):
                chosen = next(
                    (then for test, then in branches if self.of(test, row, le, re) is True), default
                )
                return functions.fitted(self.of(chosen, row, le, re), self.type(expr))
            case Member(arg, values):
                return _member(self.of(arg, row, le, re), [v.scalar.as_py() for v in values])
            case Call():
                return self._called(expr, [self.of(a, row, le, re) for a in expr.args])
            case Cast(arg, target, attempts):
                got = self.of(arg, row, le, re)
                made = self._cast(expr, got, self.type(arg), target)
                return made if got is None or attempts else functions.there(made)
            case Apply(("contains" | "contains_each"), (arg, *others), options) if pa.types.is_list(
                self.type(arg)
            ):
                wanted = [*others, *(lit(option) for option in options)]
                return self.of(Apply("array_contains", (arg, *wanted)), row, le, re)
            case Apply("coalesce", args, _):
                some = (v for a in args if (v := self.of(a, row, le, re)) is not None)
                return functions.fitted(next(some, None), self.type(expr))
            case Each() | ListFold():
                return self._each(expr, row, le, re)
            case Apply(("item" | "element_at" | "try_element_at") as name, (arg, key), _):
                return self._part(name, self.type(arg), [self.of(a, row, le, re) for a in (arg, key)])
            case Apply(("array" | "struct" | "create_map") as name, args, options):
                given = [self.of(a, row, le, re) for a in args]
                return nested.fitted_nested(nested.made(name, given, options), self.type(expr))
            case Apply(("and" | "or") as name, args, _):
                return self._decided(name, args, row, le, re)
            case Apply(name, args, _) if name.startswith("try_"):
                return self._tried(replace(expr, name=name.removeprefix("try_")), row, le, re)
            case Apply(_, args, _):
                return self._applied(expr, [self.of(a, row, le, re) for a in args])
        raise unknown(str(expr))

    def _part(self, name: str, t: pa.DataType, args: list[Any]) -> Any:
        """An element, a value or a field."""
        if None in args:
            return None
        try:
            return (nested.item if name == "item" else nested.element_at)(args[0], args[1], t)
        except functions.NoValueError:
            if name == "try_element_at":
                return None
            raise

    def _each(self, expr: Each | ListFold, row: Mapping[str, Any], le: int, re: int) -> Any:
        """What is said of the elements of a list."""
        value = self.of(expr.arg, row, le, re)
        inner = RowValues(inner_schema(expr, self.schema, partial(type_of, time=self.time)), self.time)
        if isinstance(expr, Each):
            made = nested.each(
                expr.verb,
                value,
                lambda one, at: inner.of(
                    expr.body, {**row, **dict(zip(expr.bound, (one, at), strict=False))}, le, re
                ),
            )
            return nested.fitted_nested(made, self.type(expr))
        if value is None:
            return None
        so_far, t = expr.bound[0], inner.schema.field(expr.bound[0]).type
        held = nested.fitted_nested(self.of(expr.start, row, le, re), t)
        for one in value:
            given = {**row, so_far: held, expr.bound[1]: one}
            held = nested.fitted_nested(inner.of(expr.merge, given, le, re), t)
        return inner.of(expr.finish, {**row, so_far: held}, le, re)

    def _decided(self, name: str, args: tuple[Expr, ...], row: Mapping[str, Any], le: int, re: int) -> Any:
        """A side that decides does so even if the other has no value."""
        values, lost = [], False
        for arg in args:
            try:
                values.append(self.of(arg, row, le, re))
            except functions.NoValueError:
                lost = True
        made = functions.LOGIC[name](*values)
        return functions.there(None) if lost and made is not (name == "or") else made

    def _tried(self, expr: Apply, row: Mapping[str, Any], le: int, re: int) -> Any:
        args = [self.of(a, row, le, re) for a in expr.args]
        try:
            return self._applied(expr, args)
        except functions.NoValueError:
            return None

    def has_values(self, exprs: Iterable[Expr], row: Mapping[str, Any], le: int, re: int) -> bool:
        """Whether all of some expressions have a value on a row."""
        try:
            for expr in exprs:
                self.of(expr, row, le, re)
        except functions.NoValueError:
            return False
        return True

    def moment(self, t: int) -> Any:
        """A time as a value of the stream's type of time; null where it never comes."""
        if t == INFINITY:
            return None
        return pa.scalar(t, pa.int64()).cast(self.time).as_py() if pa.types.is_timestamp(self.time) else t

    def _called(self, call: Call, args: list[Any]) -> Any:
        """The user's own function, on one row; a vectorised one gets columns of one value."""
        takes = [*call.takes, *[None] * (len(args) - len(call.takes))]
        given = [functions.fitted(a, t) for a, t in zip(args, takes, strict=True)]
        if not call.vectorised:
            kinds = [self.type(a) for a in call.args]
            return self._result(call, [nested.with_dicts(a, t) for a, t in zip(given, kinds, strict=True)])
        types = [t or self.type(a) for a, t in zip(call.args, takes, strict=True)]
        columns = [pa.array([a], t) for a, t in zip(given, types, strict=True)]
        arrow = call.vectorised == "arrow"
        made = call.function(*(columns if arrow else [c.to_numpy(zero_copy_only=False) for c in columns]))
        return pa.array(made.to_pylist() if hasattr(made, "to_pylist") else list(made), call.type)[0].as_py()

    def _result(self, call: Call, given: list[Any]) -> Any:
        """What a function gives on one row; one that fails, or gives a value of another type, gives none."""
        try:
            made = call.function(*given)
            if pa.types.is_integer(call.type) and isinstance(made, float) and made != made // 1:
                raise functions.NoValueError
            return pa.scalar(made, call.type).as_py()
        except Exception as error:
            raise functions.NoValueError from error

    def _cast(self, expr: Expr, got: Any, source: pa.DataType, target: pa.DataType) -> Any:
        if pa.types.is_nested(source) and pa.types.is_nested(target):
            return self._cast_parts(expr, got, source, target)
        known, made = functions.casted(got, source, target)
        if not known:
            raise unknown(str(expr))
        return made

    def _cast_parts(self, expr: Expr, got: Any, source: pa.DataType, target: pa.DataType) -> Any:
        """A list or struct with its parts converted; none where one of them has no value."""
        if got is None or pa.types.is_map(source):
            if got is not None:
                raise unknown(str(expr))
            return None
        if pa.types.is_struct(source):
            types = [(a.type, b.type) for a, b in zip(source, target, strict=True)]
            parts = list(got.values())
        else:
            types, parts = [(source.value_type, target.value_type)] * len(got), got
        made = [self._cast(expr, v, *t) for v, t in zip(parts, types, strict=True)]
        if any(a is None and b is not None for a, b in zip(made, parts, strict=True)):
            return None
        return made if isinstance(got, list) else dict(zip((f.name for f in target), made, strict=True))

    def _applied(self, expr: Apply, args: list[Any]) -> Any:
        if any(isinstance(a, Decimal) for a in args) and any(isinstance(a, float) for a in args):
            raise unknown(str(expr))  # how a decimal becomes a double is not the same everywhere
        if expr.name in nested.NESTED:
            if None in args:
                return None
            return nested.fitted_nested(nested.NESTED[expr.name](args, *expr.options), self.type(expr))
        run = functions.LOGIC.get(expr.name) or functions.FUNCTIONS.get(expr.name)
        if run is None:
            raise unknown(str(expr))
        if None in args and expr.name not in functions.LOGIC:
            return None
        try:
            return functions.fitted(run(*args, *expr.options), self.type(expr))
        except UnsureError:
            raise unknown(str(expr)) from None


def _member(got: Any, among: list[Any]) -> bool | None:
    if got is None:
        return None
    if any(v is not None and functions.same_value(v, got) for v in among):
        return True
    return None if None in among else False


def unknown(shown: str) -> NotAuditedError:
    """That the audit has no way of its own to compute an expression."""
    return NotAuditedError(
        f"the audit cannot compute '{shown}' by itself.",
        remedy="Audit the views that do without it, or compare those by hand.",
    )
