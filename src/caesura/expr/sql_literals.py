"""Numbers, bytes, intervals and types, as SQL writes them.

>>> from sqlglot import parse_one
>>> interval_micros(parse_one("INTERVAL '90 seconds'", dialect="spark"), "")
90000000
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from decimal import Decimal
from math import isinf

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError

from caesura.errors import ExprError
from caesura.expr.durations import micros
from caesura.expr.nodes import Expr, lit
from caesura.expr.sql_read import as_written, refused

LARGEST_DECIMAL = 38
"""So many digits a decimal holds."""
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def interval_months(node: exp.Expr) -> int | None:
    """The months of an interval of months or years; None where it is none."""
    unit = str(node.args.get("unit") or "").upper().removesuffix("S")
    amount = node.this.name if isinstance(node.this, exp.Literal) else ""
    plain = isinstance(node, exp.Interval) and unit in _MONTHS and re.fullmatch(r"-?[0-9]+", amount)
    return int(amount) * _MONTHS[unit] if plain else None


def moved(day: dt.date, months: int) -> dt.date | None:
    """A date so many months later; the last day of a month that is too short; None beyond them."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    last = calendar.monthrange(year, month + 1)[1]
    return day.replace(year=year, month=month + 1, day=min(day.day, last))


def is_interval(node: exp.Expr) -> bool:
    """Whether it is a length of time, or a sum of such."""
    if isinstance(node, exp.Add):
        return is_interval(node.this) and is_interval(node.expression)
    return isinstance(node, exp.Interval) or (isinstance(node, exp.Paren) and is_interval(node.this))


def interval_micros(node: exp.Expr, text: str) -> int | None:
    """The length of an interval; None where it is none."""
    match node:
        case exp.Paren():
            return interval_micros(node.this, text)
        case exp.Add():
            parts = [interval_micros(part, text) for part in (node.this, node.expression)]
            return None if None in parts else sum(p for p in parts if p is not None)
        case exp.Interval():
            return _micros(node, text)
    return None


def _micros(node: exp.Interval, text: str) -> int:
    unit = node.args.get("unit")
    amount = node.this.name if isinstance(node.this, exp.Literal) else ""
    if node.meta.get(AMBIGUOUS):
        problem = "M may be minutes or months"
        raise refused(node, text, problem, "Write INTERVAL '1' MINUTE, or INTERVAL '1' MONTH.")
    try:
        total = micros(f"{amount} {'' if unit is None else unit.sql('spark')}")
    except ExprError:
        raise refused(
            node,
            text,
            f"{as_written(node)} has no fixed length",
            "Write a number and a unit from MICROSECOND to WEEK; months are moved by add_months.",
        ) from None
    if abs(total) >= 2**63:
        problem = f"{as_written(node)} is longer than all times there are"
        raise refused(node, text, problem, "Write a shorter one.")
    return total


AMBIGUOUS = "ambiguous"
"""The mark of an interval whose unit is written as M."""


def literal(node: exp.Literal, text: str) -> Expr:
    if node.is_string:
        return lit(node.name)
    written = node.name
    if re.fullmatch(r"[0-9]+", written):
        _refuse_digits(node, text, len(written.lstrip("0")))
        value = int(written)
        return lit(value) if value < 2**63 else lit(Decimal(value))
    if not re.fullmatch(r"[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?", written) or not re.search("[0-9]", written):
        raise refused(node, text, f"{as_written(node)} is no number", "Write it in digits: 1000, 1.5, 1e6.")
    if "e" not in written.lower():
        digits = Decimal(written).as_tuple()
        _refuse_digits(node, text, max(len(digits.digits), -int(digits.exponent)))
        return lit(Decimal(written))
    if isinf(float(written)):
        problem = f"{as_written(node)} is beyond all doubles"
        raise refused(node, text, problem, "The largest double is 1.7976931348623157e308.")
    return lit(float(written))


def _refuse_digits(node: exp.Expr, text: str, digits: int) -> None:
    if digits > LARGEST_DECIMAL:
        problem = f"a number of {digits} digits: a decimal holds {LARGEST_DECIMAL}"
        raise refused(node, text, problem, "Write it as a double, 1.5e43, or as a text in quotes.")


def hexed(node: exp.HexString, text: str) -> Expr:
    try:
        return lit(bytes.fromhex(node.name if len(node.name) % 2 == 0 else "0" + node.name))
    except ValueError:
        raise refused(
            node, text, "X'...' takes hexadecimal digits", "Write two for each byte: X'1F'."
        ) from None


def type_name(node: exp.Cast, text: str) -> str:
    """A type as Spark writes it; refuses those that are another there, or less."""
    named: str = node.to.sql("spark", unsupported_level=ErrorLevel.IGNORE)
    try:
        again = exp.DataType.build(named, dialect="spark")
    except (ParseError, ValueError):
        return named  # `as_type` says what it thinks of it
    told = node.to.copy()
    if told.this in _TIMES and told.expressions and told.expressions[0].name == "6":
        told.set("expressions", None)  # TIMESTAMP(6) has microseconds, as all have
    if again != told and told not in _ALIKE:
        shown = getattr(node.to.this, "value", named)
        problem = f"the type {shown} is not known here"
        if shown == again.this.value or told.this in _TIMES:
            problem = f"the type {shown} takes no number here"
        raise refused(node, text, problem, f"{named} is the nearest there is.")
    return named


_TIMES = (
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPLTZ,
    exp.DataType.Type.TIMESTAMPNTZ,
    exp.DataType.Type.DATETIME,
)
_ALIKE = [
    exp.DataType(this=one, nested=False)
    for one in (
        exp.DataType.Type.NVARCHAR,
        exp.DataType.Type.DATETIME,
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.VARBINARY,
    )
]
"""Types that Spark has under another name."""
