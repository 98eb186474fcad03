"""The functions of the expression language on plain values, as Spark SQL has them.

>>> FUNCTIONS["remainder"](-7, 3), FUNCTIONS["divide"](1, 0), LOGIC["greatest"](None, 2, 5)
(-1, None, 5)
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from caesura.audit.texts import TEXTS, UnsureError
from caesura.testing.oracles.rows import place

WIDE = Context(prec=150, rounding=ROUND_HALF_UP)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def order(a: Any, b: Any) -> int:
    """Below, equal or above; NaN equals NaN and is above every number."""
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        if a != a or b != b:
            return int(a != a) - int(b != b)
    if isinstance(a, list | dict):
        a, b = place(a), place(b)
    return int(a > b) - int(a < b)


def same_value(a: Any, b: Any) -> bool:
    """Whether two values that are there are equal."""
    return order(a, b) == 0


def fitted(value: Any, type: pa.DataType | None) -> Any:
    """A value of a type, decimals rounded half up; a number beyond its range is no value."""
    if value is None or type is None:
        return value
    if pt.is_integer(type):
        half = 2 ** (type.bit_width - 1)
        return there(int(value) if -half <= int(value) < half else None)
    if pt.is_float32(type):
        return _single(float(value))
    if pt.is_floating(type):
        return float(value)
    return there(_rounded(Decimal(value), type)) if pt.is_decimal(type) else value


class NoValueError(ValueError):
    """An operation on values that are there has none: its row is refused."""


def there(value: Any) -> Any:
    """A value that must be there."""
    if value is None:
        raise NoValueError
    return value


def _single(value: float) -> float:
    if math.isfinite(value) and abs(value) > 3.4028235677973366e38:
        return math.copysign(math.inf, value)
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _rounded(value: Decimal, type: pa.DataType) -> Decimal | None:
    try:
        made = value.quantize(Decimal(1).scaleb(-type.scale), context=WIDE)
    except InvalidOperation:
        return None
    return made if len(made.as_tuple().digits) <= type.precision else None


def _decimals(a: Any, b: Any) -> bool:
    return isinstance(a, Decimal) or isinstance(b, Decimal)


def _arithmetic(plain: Callable[[Any, Any], Any], exact: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def run(a: Any, b: Any) -> Any:
        if _decimals(a, b) and not (isinstance(a, float) or isinstance(b, float)):
            return exact(Decimal(a), Decimal(b))
        if isinstance(a, float) or isinstance(b, float):
            a, b = float(a), float(b)
        return plain(a, b)

    return run


def _divide(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if _decimals(a, b) and not (isinstance(a, float) or isinstance(b, float)):
        return WIDE.divide(Decimal(a), Decimal(b))
    return float(a) / float(b)


def _remainder(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(a, b) if not math.isinf(a) else math.nan
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _power(a: float, b: float) -> float:
    try:
        made = math.pow(a, b)
    except OverflowError:
        made = math.copysign(math.inf, -1.0 if a < 0 and b % 2 == 1 else 1.0)
    except ValueError:
        made = math.inf if a == 0 else math.nan
    return made


def _exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def _round(a: Any, digits: int) -> Any:
    if isinstance(a, Decimal):
        return a.quantize(Decimal(1).scaleb(-digits), context=WIDE)
    if isinstance(a, int):
        return a if digits >= 0 else int(Decimal(a).quantize(Decimal(1).scaleb(-digits), context=WIDE))
    if not math.isfinite(a):
        return a
    step = 10.0 ** abs(digits)
    moved = a * step if digits >= 0 else a / step
    if not math.isfinite(moved) or moved == math.floor(moved):
        return a
    whole = math.copysign(math.floor(abs(moved) + 0.5) if abs(moved) % 1 != 0.5 else math.ceil(abs(moved)), a)
    return whole / step if digits >= 0 else whole * step


def _whole(to_whole: Callable[[Any], int]) -> Callable[[Any], Any]:
    def run(a: Any) -> Any:
        if isinstance(a, float) and not math.isfinite(a):
            raise NoValueError
        return to_whole(a)

    return run


def _cased(way: Callable[[str], str]) -> Callable[[str], str]:
    """Letter by letter; of a letter that would become several, nobody is sure."""

    def run(text: str) -> str:
        if any(len(way(c)) != 1 for c in text):
            raise UnsureError(text)
        return way(text)

    return run


def _substring(text: str, pos: int, length: int | None = None) -> str:
    if length is not None and length <= 0:
        return ""
    first = pos - 1 if pos > 0 else pos
    last = None if length is None else first + length
    return text[first : None if first < 0 and last is not None and last >= 0 else last]


def _like(text: str, pattern: str) -> bool:
    parts, at = [], 0
    while at < len(pattern):
        c = pattern[at]
        if c == "\\" and at + 1 < len(pattern):
            at += 1
            parts.append(re.escape(pattern[at]))
        else:
            parts.append({"%": ".*", "_": "."}.get(c, re.escape(c)))
        at += 1
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _split_part(text: str, delimiter: str, part: int) -> str:
    pieces = text.split(delimiter) if delimiter else [text]
    at = part - 1 if part > 0 else len(pieces) + part
    return pieces[at] if 0 <= at < len(pieces) else ""


def _stamp(moment: Any) -> datetime:
    return moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)


def _plus_time(moment: Any, micros: int) -> Any:
    by = timedelta(microseconds=micros)
    if not isinstance(moment, datetime) and micros % 86_400_000_000 == 0:
        return moment + by
    stamp = _stamp(moment)
    return stamp + by if stamp.tzinfo is None else (stamp.astimezone(UTC) + by).astimezone(stamp.tzinfo)


def _unix_micros(moment: Any) -> int:
    stamp = _stamp(moment)
    return ((stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def _date_trunc(moment: Any, unit: str) -> datetime:
    stamp = _stamp(moment)
    if unit == "microsecond":
        return stamp
    if unit == "millisecond":
        return stamp.replace(microsecond=stamp.microsecond // 1000 * 1000)
    if unit == "second":
        return stamp.replace(microsecond=0)
    if unit == "minute":
        return stamp.replace(second=0, microsecond=0)
    if unit == "hour":
        return stamp.replace(minute=0, second=0, microsecond=0)
    midnight = stamp.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "day":
        return midnight
    if unit == "week":
        return midnight - timedelta(days=midnight.weekday())
    month = {"month": stamp.month, "quarter": (stamp.month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return midnight.replace(day=1, month=month)


def _part(name: str) -> Callable[[Any], int]:
    return lambda moment: int(getattr(_stamp(moment), name))


def _kleene_and(*args: Any) -> bool | None:
    return False if any(a is False for a in args) else (None if None in args else True)


def _kleene_or(*args: Any) -> bool | None:
    return True if any(a is True for a in args) else (None if None in args else False)


def _compared(test: Callable[[int, int], bool]) -> Callable[[Any, Any], Any]:
    return lambda a, b: None if a is None or b is None else test(order(a, b), 0)


def _best(sign: int) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        some = [a for a in args if a is not None]
        return reduce(lambda a, b: a if sign * order(a, b) >= 0 else b, some) if some else None

    return run


def _concat_ws(*given: Any) -> str:
    """The values that are there as texts, with a separator, the last of what is given."""
    *parts, separator = given
    if not all(part is None or type(part) in (str, int) for part in parts):
        raise UnsureError(parts)
    return str(separator).join(str(part) for part in parts if part is not None)


LOGIC: dict[str, Callable[..., Any]] = {
    "and": _kleene_and,
    "or": _kleene_or,
    "is_null": lambda a: a is None,
    "is_not_null": lambda a: a is not None,
    "coalesce": lambda *args: next((a for a in args if a is not None), None),
    "nullif": lambda a, b: None if a is not None and b is not None and same_value(a, b) else a,
    "equal_null_safe": lambda a, b: (
        (a is None and b is None) or (a is not None and b is not None and same_value(a, b))
    ),
    "between": lambda a, low, high: _kleene_and(
        _compared(operator.ge)(a, low), _compared(operator.le)(a, high)
    ),
    "concat_ws": _concat_ws,
    "isnan": lambda a: a is not None and a != a,
    "greatest": _best(1),
    "least": _best(-1),
}
"""What has its own way with nulls."""


def _member(value: Any) -> bytes:
    return b"s" + value.encode() if isinstance(value, str) else b"i" + (value + 2**63).to_bytes(8, "big")


def _members(held: bytes) -> set[bytes]:
    found: set[bytes] = set()
    while held:
        size = int.from_bytes(held[:4], "little")
        found.add(held[4 : 4 + size])
        held = held[4 + size :]
    return found


def _as_set(members: set[bytes]) -> bytes:
    return b"".join(len(m).to_bytes(4, "little") + m for m in sorted(members))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": _arithmetic(operator.add, WIDE.add),
    "subtract": _arithmetic(operator.sub, WIDE.subtract),
    "multiply": _arithmetic(operator.mul, WIDE.multiply),
    "divide": _divide,
    "remainder": _remainder,
    "negate": operator.neg,
    "abs": abs,
    "sign": lambda a: math.nan if a != a else float((a > 0) - (a < 0)),
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "exp": _exp,
    "ln": lambda a: None if a <= 0 else math.log(a),
    "power": _power,
    "round": _round,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "shift_left": lambda a, b: a << b if 0 <= b < 64 else there(None),
    "equal": _compared(operator.eq),
    "not_equal": _compared(operator.ne),
    "less": _compared(operator.lt),
    "less_equal": _compared(operator.le),
    "greater": _compared(operator.gt),
    "greater_equal": _compared(operator.ge),
    "not": operator.not_,
    "lower": _cased(str.lower),
    "upper": _cased(str.upper),
    **TEXTS,
    "length": len,
    "concat": lambda *parts: _concat_ws(*parts, ""),
    "substring": _substring,
    "contains": lambda a, part: part in a,
    "contains_each": lambda a, part: part in a,
    "set_has": lambda held, one: _member(one) in _members(held),
    "set_add": lambda held, one: _as_set({*_members(held), _member(one)}),
    "startswith": str.startswith,
    "endswith": str.endswith,
    "like": _like,
    "replace": lambda a, search, new: a.replace(search, new) if search else a,
    "split_part": _split_part,
    "year": _part("year"),
    "month": _part("month"),
    "day": _part("day"),
    "hour": _part("hour"),
    "minute": _part("minute"),
    "second": _part("second"),
    "day_of_week": lambda a: _stamp(a).isoweekday() % 7 + 1,
    "date_trunc": _date_trunc,
    "unix_micros": _unix_micros,
    "timestamp_micros": lambda a: datetime(1970, 1, 1) + timedelta(microseconds=a),
    "plus_time": _plus_time,
}
"""What is null where any argument is. Not here: regular expressions, which are of another kind in Python."""


def casted(value: Any, source: pa.DataType, target: pa.DataType) -> tuple[bool, Any]:
    """(known, value): a conversion, null where it cannot be done; not known where the audit has none."""
    if value is None or source == target:
        return True, value
    if pt.is_integer(target):
        return _to_integer(value, target)
    if pt.is_floating(target) and isinstance(value, bool | int | float):
        return True, fitted(float(value), target)
    if isinstance(value, str) and (pt.is_floating(target) or pt.is_boolean(target)):
        return _from_text(value.strip().lower(), target)
    if pt.is_decimal(target) and isinstance(value, int | Decimal):
        return True, _rounded(Decimal(value), target)
    if pt.is_boolean(target) and isinstance(value, int | float | Decimal):
        return True, value != 0
    if pt.is_string(target) and isinstance(value, int):
        return True, str(value).lower()
    if pt.is_date(target) and isinstance(value, datetime):
        return True, value.date()
    if pt.is_timestamp(target) and target.tz is None and type(value) is date:
        return True, _stamp(value)
    return False, None


def _from_text(plain: str, target: pa.DataType) -> tuple[bool, Any]:
    if pt.is_boolean(target):
        words = {**dict.fromkeys(("t", "true", "y", "yes", "1"), True)}
        return True, {**words, **dict.fromkeys(("f", "false", "n", "no", "0"), False)}.get(plain)
    form = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?"
    return (True, fitted(float(plain), target)) if re.fullmatch(form, plain) else (plain.isalpha(), None)


def _to_integer(value: Any, target: pa.DataType) -> tuple[bool, Any]:
    if isinstance(value, str):
        plain = value.strip()
        value = int(plain) if re.fullmatch(r"[+-]?[0-9]+", plain) else math.nan
    if isinstance(value, datetime):
        value = _unix_micros(value) // 1_000_000
    if not isinstance(value, int | float | Decimal):
        return False, None
    if not math.isfinite(value):
        return True, None
    half = 2 ** (target.bit_width - 1)
    return True, int(value) if -half <= int(value) < half else None
