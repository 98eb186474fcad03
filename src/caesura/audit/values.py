"""Expressions on one row, in plain Python: nulls, wrapping integers and Spark's division.

>>> from caesura.expr import col
>>> value(col("a") / 2 + 1, {"a": 3}, 0, 1), value(col("a") > 1, {"a": None}, 0, 1)
(2.5, None)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from caesura.errors import StreamError
from caesura.expr.nodes import Alias, Apply, Boundary, Case, Column, Constant, Expr, Member
from caesura.punctuation import INFINITY


class NotAuditedError(StreamError):
    """Something that the audit cannot recompute; it is said, never passed over."""


def value(expr: Expr, row: Mapping[str, Any], le: int, re: int) -> Any:
    """The value of an expression on a row with a lifetime."""
    match expr:
        case Column(name):
            return row[name]
        case Constant(what, _):
            return what
        case Alias(arg, _):
            return value(arg, row, le, re)
        case Boundary(side):
            return le if side == "start" else (None if re == INFINITY else re)
        case Case(branches, default):
            for test, then in branches:
                if value(test, row, le, re) is True:
                    return value(then, row, le, re)
            return value(default, row, le, re)
        case Member(arg, values):
            return _member(value(arg, row, le, re), [v.value for v in values])
        case Apply(name, args, _):
            return applied(name, [value(a, row, le, re) for a in args], str(expr))
    raise _unknown(str(expr))


def _member(got: Any, among: list[Any]) -> bool | None:
    if got is None:
        return None
    if any(v is not None and v == got for v in among):
        return True
    return None if None in among else False


def applied(name: str, args: list[Any], shown: str) -> Any:
    """A function of the language on values."""
    match name:
        case "and":
            return False if False in args else (None if None in args else True)
        case "or":
            return True if True in args else (None if None in args else False)
        case "is_null":
            return args[0] is None
        case "is_not_null":
            return args[0] is not None
        case "coalesce":
            return next((a for a in args if a is not None), None)
        case "equal_null_safe":
            return args[0] == args[1]
    if name not in PLAIN:
        raise _unknown(shown)
    return None if None in args else PLAIN[name](*args)


def _wrapped(result: Any) -> Any:
    if isinstance(result, int) and not isinstance(result, bool):
        return (result + 2**63) % 2**64 - 2**63
    return result


def _arithmetic(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: _wrapped(op(a, b))


def _remainder(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    return math.fmod(a, b) if isinstance(a, float) or isinstance(b, float) else a - b * int(a / b)


PLAIN: dict[str, Callable[..., Any]] = {
    "add": _arithmetic(operator.add),
    "subtract": _arithmetic(operator.sub),
    "multiply": _arithmetic(operator.mul),
    "divide": lambda a, b: None if b == 0 else float(a) / float(b),
    "remainder": _remainder,
    "negate": lambda a: _wrapped(-a),
    "abs": lambda a: _wrapped(abs(a)),
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "between": lambda a, low, high: low <= a <= high,
    "not": operator.not_,
    "lower": str.lower,
    "upper": str.upper,
    "concat": lambda *parts: "".join(parts),
}


def ticks_of(moment: Any) -> int:
    """A time as the engine counts it."""
    if isinstance(moment, datetime):
        zone = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (zone - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return int(moment)


def _unknown(shown: str) -> NotAuditedError:
    return NotAuditedError(
        f"the audit cannot compute '{shown}' by itself.",
        remedy="Audit the views that do without it, or compare those by hand.",
    )
