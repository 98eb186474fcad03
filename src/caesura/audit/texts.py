"""Functions on texts and dates on plain values, as Spark SQL has them, for those who recompute.

>>> TEXTS["lpad"]("ab", 5, "<>"), TEXTS["date_format"](date(2024, 2, 1), "EEE dd.MM.yy")
('<><ab', 'Thu 01.02.24')
"""

from __future__ import annotations

import calendar
import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any


class UnsureError(ValueError):
    """A value on which Python and the engine's libraries need not agree."""


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _fill(lacking: int, pad: str) -> str:
    return (pad * lacking)[: max(lacking, 0)]


def _locate(text: str, part: str, pos: int) -> int:
    if pos < 1:
        return 0
    return 1 if not part else text.find(part, pos - 1) + 1


def _initcap(text: str) -> str:
    if any(len(c.lower()) != 1 or len(c.upper()) != 1 for c in text):
        raise UnsureError(text)
    return " ".join(word[:1].upper() + word[1:].lower() for word in text.split(" "))


def _translate(text: str, matching: str, replacement: str) -> str:
    first = {c: i for i, c in reversed(list(enumerate(matching)))}
    return "".join(replacement[first[c] : first[c] + 1] if c in first else c for c in text)


def _sha2(value: Any, bits: int) -> str:
    return hashlib.new(f"sha{bits or 256}", _bytes(value)).hexdigest()


def _json(text: str, path: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        raise UnsureError(text) from None
    for name, index, quoted in re.findall(r"\.([^.\[]+)|\[([0-9]+)\]|\['([^']*)'\]", path):
        try:
            value = value[int(index)] if index and isinstance(value, list) else value[name or quoted]
        except (LookupError, TypeError):
            return None
    if isinstance(value, float | dict | list) or (value is None and path == "$"):
        raise UnsureError(text)
    return value if isinstance(value, str) or value is None else json.dumps(value)


def _stamp(moment: Any) -> datetime:
    return moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)


def _day(moment: Any) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


WRITTEN: dict[str, Callable[[datetime, int], str]] = {
    "y": lambda t, n: f"{t.year % 100:02d}" if n == 2 else f"{t.year:0{n}d}",
    "M": lambda t, n: f"{t.month:0{n}d}" if n < 3 else t.strftime("%b" if n == 3 else "%B"),
    "d": lambda t, n: f"{t.day:0{n}d}",
    "D": lambda t, n: f"{t.timetuple().tm_yday:0{n}d}",
    "Q": lambda t, n: f"{'Q' if n == 3 else ''}{(t.month + 2) // 3:0{n if n < 3 else 1}d}",
    "E": lambda t, n: t.strftime("%A" if n == 4 else "%a"),
    "a": lambda t, n: "PM" if t.hour >= 12 else "AM",
    "H": lambda t, n: f"{t.hour:0{n}d}",
    "k": lambda t, n: f"{t.hour or 24:0{n}d}",
    "K": lambda t, n: f"{t.hour % 12:0{n}d}",
    "h": lambda t, n: f"{t.hour % 12 or 12:0{n}d}",
    "m": lambda t, n: f"{t.minute:0{n}d}",
    "s": lambda t, n: f"{t.second:0{n}d}",
    "S": lambda t, n: f"{t.microsecond:06d}000"[:n],
}


def _date_format(moment: Any, pattern: str) -> str:
    stamp, parts = _stamp(moment), []
    for run in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+", pattern):
        letter = {"L": "M", "q": "Q"}.get(run[2] or "", run[2])
        text = "'" if run[0] == "''" else (run[1] or run[0]).replace("''", "'")
        parts.append(WRITTEN[letter](stamp, len(run[0])) if letter else text)
    return "".join(parts)


def _unix_timestamp(moment: Any) -> int:
    stamp = _stamp(moment)
    known = stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)
    return math.trunc(
        Decimal((known - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)) / 10**6
    )


def _add_months(moment: Any, months: int) -> date:
    day = _day(moment)
    years, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(years, month + 1, min(day.day, calendar.monthrange(years, month + 1)[1]))


def _bround(a: Any, digits: int) -> Any:
    if isinstance(a, float) and not math.isfinite(a):
        return a
    if isinstance(a, float) and digits > 0:
        raise UnsureError(a)
    step = Decimal(1).scaleb(-digits)
    made = Decimal(a).quantize(step, context=Context(prec=400, rounding=ROUND_HALF_EVEN))
    return made if isinstance(a, Decimal) else type(a)(made)


TEXTS: dict[str, Callable[..., Any]] = {
    "trim": lambda a, some=" ": a.strip(some) if some else a,
    "ltrim": lambda a, some=" ": a.lstrip(some) if some else a,
    "rtrim": lambda a, some=" ": a.rstrip(some) if some else a,
    "lpad": lambda a, size, pad: (_fill(size - len(a), pad) + a)[: max(size, 0)],
    "rpad": lambda a, size, pad: (a + _fill(size - len(a), pad))[: max(size, 0)],
    "locate": _locate,
    "initcap": _initcap,
    "translate": _translate,
    "repeat": lambda a, count: a * max(count, 0),
    "reverse": lambda a: a[::-1],
    "right": lambda a, count: a[-count:] if count > 0 else "",
    "octet_length": lambda a: len(_bytes(a)),
    "ascii": lambda a: ord(a[0]) if a else 0,
    "md5": lambda a: hashlib.md5(_bytes(a), usedforsecurity=False).hexdigest(),
    "sha1": lambda a: hashlib.sha1(_bytes(a), usedforsecurity=False).hexdigest(),
    "sha2": _sha2,
    "crc32": lambda a: zlib.crc32(_bytes(a)),
    "get_json_object": _json,
    "date_format": _date_format,
    "unix_timestamp": _unix_timestamp,
    "quarter": lambda a: (a.month + 2) // 3,
    "day_of_year": lambda a: a.timetuple().tm_yday,
    "week_of_year": lambda a: a.isocalendar()[1],
    "weekday": lambda a: a.weekday(),
    "date_add": lambda a, days: _day(a) + timedelta(days=days),
    "date_sub": lambda a, days: _day(a) - timedelta(days=days),
    "date_diff": lambda a, b: (_day(a) - _day(b)).days,
    "add_months": _add_months,
    "last_day": lambda a: date(a.year, a.month, calendar.monthrange(a.year, a.month)[1]),
    "bround": _bround,
}
"""By the names that expressions have for them; a null among the arguments never comes here."""
