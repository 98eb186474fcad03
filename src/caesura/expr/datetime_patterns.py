"""Times written and read by patterns such as ``yyyy-MM-dd HH:mm:ss``, in the letters of Spark.

A pattern becomes a list of fields and plain texts. To write, each field of a column is looked up or padded,
and all are joined; to read, a regular expression takes the texts apart, and one cast judges the whole.

>>> fields("yyyy-MM'T'")
(('y', 4), '-', ('M', 2), 'T')
>>> stamps = pa.array([0], pa.timestamp("us"))
>>> written(stamps, fields("EEE d MMM yyyy, h:mm a")).to_pylist()
['Thu 1 Jan 1970, 12:00 AM']
>>> read(pa.array(["1/Feb/70 13:05", "x"]), fields("d/MMM/yy HH:mm")).to_pylist()
[datetime.datetime(2070, 2, 1, 13, 5), None]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import ExprError
from caesura.expr.arrays import column, numbers, try_convert

Field = tuple[str, int]
Fields = tuple[Field | str, ...]
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_STRING, _STAMP = pa.string(), pa.timestamp("us")
_WIDEST = {"y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "Q": 3, "q": 3, "E": 4, "a": 1, "S": 9}
_CLOCK = "HhKkms"
LETTERS = {**_WIDEST, **dict.fromkeys(_CLOCK, 2)}
"""How often each letter may stand in a row."""
DAY = 86_400_000_000
_UNITS = {"S": 0, "s": 1_000_000, "m": 60_000_000, **dict.fromkeys("HhKka", 3_600_000_000)}
"""How long a field that is no date stays the same, in microseconds."""
REPEATED = 16
"""Texts are written once for each unit of time where so many values share one."""
READ = "yMLdHhKkmsSa"
"""The letters of which a time can be made."""


def fields(pattern: str, *, letters: str = "".join(LETTERS)) -> Fields:
    """The pattern taken apart; refuses letters that have no meaning here."""
    found: list[Field | str] = []
    for part in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|'", pattern):
        text, letter = part[0], part[2]
        if text == "'":
            raise ExprError(f"{pattern!r} has a quote that is not closed.", remedy="Write '' for a quote.")
        if letter is None:
            found.append("'" if text == "''" else (part[1] or text).replace("''", "'"))
        elif letter not in letters or len(text) > LETTERS[letter]:
            raise ExprError(
                f"{pattern!r} has '{text}', which is no field of a time here.",
                remedy=f"There are: {' '.join(letters)}, as in 'yyyy-MM-dd HH:mm:ss.SSS'; quote texts.",
            )
        else:
            found.append((letter, len(text)))
    if any(isinstance(f, str) and set(f) & set("[]{}#") for f in found):
        raise ExprError(f"{pattern!r} has [ ], {{ }} or #, which are reserved.", remedy="Quote them: '['.")
    return tuple(found)


def written(stamps: pa.Array, pattern: Fields) -> pa.Array:
    """Times as texts; those with a zone by its clock."""
    local = stamps if stamps.type.tz is None else pc.local_timestamp(stamps)
    unit = min((_UNITS.get(f[0], DAY) for f in pattern if not isinstance(f, str)), default=0)
    found = _of_units(local, pattern, unit) if unit and local.type == _STAMP else None
    return _of_fields(local, pattern) if found is None else found


def _of_units(local: pa.Array, pattern: Fields, unit: int) -> pa.Array | None:
    """The texts of whole days, hours and so on, each written once; None where there are too many between."""
    ticks, nulls = numbers(local.view(pa.int64()))
    there = ticks if nulls is False else ticks[~nulls]
    if len(there) < REPEATED:
        return None
    low, high = int(there.min()) // unit, int(there.max()) // unit
    if REPEATED * (high - low) > len(there) or max(-low, high) * unit > 2**62:
        return None
    times = pa.array(np.arange(low, high + 1) * unit).view(_STAMP)
    if low == high and nulls is False:
        return pa.repeat(_of_fields(times, pattern)[0], len(ticks))
    return _of_fields(times, pattern).take(column(ticks // unit - low, nulls, pa.int64()))


def _of_fields(local: pa.Array, pattern: Fields) -> pa.Array:
    """Times as texts, field by field."""
    parts = [pa.scalar(f) if isinstance(f, str) else _written(local, *f) for f in pattern]
    if all(isinstance(p, pa.Scalar) for p in parts):
        whole = "".join(p.as_py() for p in parts)
        return pc.if_else(pc.is_valid(local), pa.scalar(whole), pa.scalar(None, _STRING))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")


def _written(local: pa.Array, letter: str, width: int) -> pa.Array:
    if letter == "y":
        return _year(pc.year(local), width)
    if letter == "S":
        ticks, nulls = numbers(local.cast(_STAMP).view(pa.int64()))
        digits = np.mod(ticks, 1_000_000) * 1000 // 10 ** (9 - width)
        return _padded(column(digits, nulls, pa.int64()), width)
    part, count = _PARTS[letter]
    names = _NAMES.get((letter, width)) or [f"{n:0{width}d}" for n in range(count)]
    return pa.array(names, _STRING).take(part(local))


def _year(years: pa.Array, width: int) -> pa.Array:
    if width == 2:
        return _padded(pc.cast(pa.array(np.mod(*_two(years)), mask=_missing(years)), pa.int64()), 2)
    return _padded(years, width)


def _two(years: pa.Array) -> tuple[Any, int]:
    return numbers(years)[0], 100


def _missing(array: pa.Array) -> Any:
    return array.is_null().to_numpy(zero_copy_only=False)


def _padded(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(_STRING), width, "0")


def _less_one(part: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    return lambda a: pc.subtract(part(a), 1)


def _hours(first: int, count: int) -> Callable[[pa.Array], pa.Array]:
    """The hour of a clock with so many hours, whose first is called 0 or 1."""
    names = np.array([(h - first) % count + first for h in range(24)])
    return lambda a: pa.array(names).take(pc.hour(a))


_PARTS: dict[str, tuple[Callable[[pa.Array], pa.Array], int]] = {
    "M": (pc.month, 13),
    "L": (pc.month, 13),
    "d": (pc.day, 32),
    "D": (pc.day_of_year, 367),
    "Q": (pc.quarter, 5),
    "q": (pc.quarter, 5),
    "E": (pc.day_of_week, 7),
    "a": (lambda a: pc.greater_equal(pc.hour(a), 12).cast(pa.int8()), 2),
    "H": (pc.hour, 24),
    "h": (_hours(1, 12), 13),
    "K": (_hours(0, 12), 12),
    "k": (_hours(1, 24), 25),
    "m": (pc.minute, 60),
    "s": (pc.second, 60),
}
_SHORT = ["", *(m[:3] for m in MONTHS)]
_NAMES: dict[Field, list[str]] = {
    **{(letter, 3): _SHORT for letter in "ML"},
    **{(letter, 4): ["", *MONTHS] for letter in "ML"},
    **{(letter, 3): ["", "Q1", "Q2", "Q3", "Q4"] for letter in "Qq"},
    **{("E", n): [d[:3] for d in DAYS] for n in (1, 2, 3)},
    ("E", 4): list(DAYS),
    ("a", 1): ["AM", "PM"],
}


def read(texts: pa.Array, pattern: Fields) -> pa.Array:
    """Texts as times; null where a text is none of the pattern, or no time."""
    given = {_MEANS.get(f[0], f[0]): f for f in pattern if not isinstance(f, str)}
    found = pc.extract_regex(texts, _expression(pattern))
    part = {name: _digits(pc.struct_field(found, [f"f{f[0]}"]), f) for name, f in given.items()}
    one, zero = pa.scalar("01"), pa.scalar("00")
    clock = pc.binary_join_element_wise(_hour(part, zero), part.get("m", zero), part.get("s", zero), ":")
    day = pc.binary_join_element_wise(
        part.get("y", pa.scalar("1970")), part.get("M", one), part.get("d", one), "-"
    )
    whole = pc.binary_join_element_wise(day, clock, " ")
    if "S" in part:
        whole = pc.binary_join_element_wise(whole, part["S"], ".")
    if isinstance(whole, pa.Scalar):
        whole = pa.repeat(whole, len(texts))
    matched = pc.if_else(pc.is_valid(found), whole, pa.scalar(None, _STRING))
    return try_convert(matched, _STAMP)


_MEANS = {"L": "M", "h": "H", "K": "H", "k": "H"}


def check_reading(pattern: Fields) -> None:
    """Refuses a pattern that names one part of a time twice, or half of a clock."""
    letters = [f[0] for f in pattern if not isinstance(f, str)]
    names = [_MEANS.get(letter, letter) for letter in letters]
    twice = [n for n in names if names.count(n) > 1]
    if twice:
        raise ExprError(
            f"the pattern has '{twice[0]}' twice, and texts could say two things.", remedy="Leave one out."
        )
    if ("a" in letters) != bool({"h", "K"} & set(letters)):
        raise ExprError(
            "the pattern has half of a clock of twelve hours.",
            remedy="Write 'hh:mm a', or 'HH:mm' for a clock of 24 hours.",
        )


def _expression(pattern: Fields) -> str:
    return rf"(?i)\A{''.join(_piece(f) for f in pattern)}\z"


def _piece(field: Field | str) -> str:
    if isinstance(field, str):
        return f"(?-i:{re.escape(field)})"
    letter, width = field
    if letter in "ML" and width > 2:
        names = MONTHS if width == 4 else _SHORT[1:]
        wanted = "|".join(names)
    elif letter == "a":
        wanted = "AM|PM"
    elif letter == "S":
        wanted = f"[0-9]{{1,{width}}}"
    elif letter == "y":
        wanted = "[0-9]{2}" if width == 2 else "[0-9]{4}"
    else:
        wanted = "[0-9]{2}" if width == 2 else "[0-9]{1,2}"
    return f"(?P<f{letter}>{wanted})"


def _digits(texts: pa.Array, field: Field) -> pa.Array:
    """A field as the cast wants it."""
    letter, width = field
    if letter in "ML" and width > 2:
        short = pc.utf8_lower(pc.utf8_slice_codeunits(texts, 0, 3))
        at = pc.index_in(short, value_set=pa.array([m.lower() for m in _SHORT[1:]]))
        return _padded(pc.add(at, 1), 2)
    if letter == "a":
        return texts
    if letter == "S":
        return pc.utf8_rpad(pc.utf8_slice_codeunits(texts, 0, 6), 6, "0")
    if letter == "y":
        return pc.binary_join_element_wise(pa.scalar("20"), texts, "") if width == 2 else texts
    return pc.utf8_lpad(texts, 2, "0")


def _hour(part: dict[str, Any], zero: pa.Scalar) -> Any:
    """The hour of 24: of a clock of twelve with its half; one that no clock shows stays as it is."""
    if "H" not in part:
        return zero
    if "a" not in part:
        return part["H"]
    hour, nulls = numbers(pc.cast(part["H"], pa.int64()))
    later = np.asarray(pc.fill_null(pc.equal(pc.utf8_upper(part["a"]), "PM"), False))
    moved = np.where(hour <= 12, hour % 12 + 12 * later, 99)
    return _padded(column(moved, nulls, pa.int64()), 2)
