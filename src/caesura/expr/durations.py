"""Lengths of time written as people write them, counted in microseconds: the one place that reads them.

Short units, words, and the intervals of SQL and Spark mean the same. A capital M alone may be a minute or a
month, and months have no fixed length: both are refused.

>>> micros("1h 30m") == micros("1 hour 30 minutes") == micros(dt.timedelta(minutes=90)) == 5_400_000_000
True
>>> micros("INTERVAL '1' DAY") == micros("interval 24 hours") == micros("INTERVAL '0 24' DAY TO HOUR")
True
"""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from functools import cache

from caesura.errors import ExprError

Duration = str | dt.timedelta

MICROS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_LONG = {
    "us": "µs μs usec microsecond",
    "ms": "msec millisecond",
    "s": "sec second",
    "m": "minute",
    "h": "hr hour",
    "d": "day",
    "w": "week",
}
"""Further words for units; each may have an s behind it."""
_WORDS = MICROS | {
    word: MICROS[unit] for unit, words in _LONG.items() for one in words.split() for word in (one, f"{one}s")
}
_WORDS |= {"mins": MICROS["m"]}
_UNFIXED = re.compile(r"(mo|mon|month|q|quarter|y|yr|year)s?")
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([^\W\d_]+)\s*")
_SPAN = re.compile(r"([\d\s:.]+)\b([a-z]+)\s+to\s+([a-z]+)")
_STEPS = ("day", "hour", "minute", "second")


def micros(duration: Duration) -> int:
    """A duration in microseconds.

    >>> micros("250ms"), micros("-2s")
    (250000, -2000000)
    """
    if isinstance(duration, dt.timedelta):
        return duration // dt.timedelta(microseconds=1)
    if not isinstance(duration, str):
        raise _refused(duration)
    return _read(duration)


@cache
def _read(duration: str) -> int:
    body = duration.strip()
    if body[:8].lower() == "interval":
        body = body[8:].replace("'", " ").strip()
    sign, body = (-1, body[1:].strip()) if body.startswith("-") else (1, body)
    span = _SPAN.fullmatch(body.lower())
    total = _between(duration, *span.groups()) if span else _sum(duration, body)
    if total.denominator != 1:
        raise _refused(duration)
    return sign * int(total)


def _sum(duration: str, body: str) -> Fraction:
    """Numbers with units, one after another."""
    parts = _PART.findall(body)
    if not parts or _PART.sub("", body):
        raise _refused(duration)
    for _, unit in parts:
        _check_unit(duration, unit)
    return sum((Fraction(count) * _WORDS[unit.lower()] for count, unit in parts), Fraction(0))


def _between(duration: str, written: str, first: str, last: str) -> Fraction:
    """What SQL writes as one text with several parts: ``1 02:30:00`` DAY TO SECOND."""
    for unit in (first, last):
        _check_unit(duration, unit)
    names, numbers = [unit.removesuffix("s") for unit in (first, last)], re.split(r"[\s:]+", written.strip())
    steps = _STEPS[_STEPS.index(names[0]) : _STEPS.index(names[1]) + 1] if set(names) <= set(_STEPS) else ()
    if len(steps) < 2 or len(steps) != len(numbers) or not all(map(_is_number, numbers)):
        raise _refused(duration)
    return sum((Fraction(n) * _WORDS[unit] for n, unit in zip(numbers, steps, strict=True)), Fraction(0))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) is not None


def _check_unit(duration: str, unit: str) -> None:
    if unit == "M":
        raise ExprError(
            f"{duration!r} may be minutes or months.",
            remedy="Write '1m' or '1 minute' for minutes; months have no fixed length: write days.",
        )
    if _UNFIXED.fullmatch(unit.lower()):
        raise ExprError(
            f"{duration!r} has no fixed length.",
            remedy="Months and years differ in length: write days, as in '30d'.",
        )
    if unit.lower() not in _WORDS:
        raise _refused(duration)


def _refused(duration: object) -> ExprError:
    return ExprError(
        f"{duration!r} is no length of time.",
        remedy=f"Write a number and a unit ({', '.join(MICROS)}, or the words), as in '1h 30m'; or a "
        "timedelta.",
    )
