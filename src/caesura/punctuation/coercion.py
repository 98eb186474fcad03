"""Reading a pattern's constants as values of a column's type, exactly or not at all.

>>> import pyarrow as pa
>>> from caesura.punctuation.values import lt
>>> str(fit(lt(20), pa.float64())), str(fit(lt("2024-05-01"), pa.date32()))
('< 20.0', '< 2024-05-01')
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from caesura.errors import PatternError
from caesura.punctuation.cuts import Cut
from caesura.punctuation.values import Values

_NUMBERS = {("int", "float"), ("int", "decimal"), ("float", "int"), ("decimal", "int")}
_DATES = {("str", "date"), ("str", "datetime"), ("str", "instant"), ("date", "datetime"), ("date", "instant")}


def column_kind(type_: pa.DataType) -> str | None:
    """The kind of constants a column compares with; None when it compares with none."""
    types = pa.types
    if types.is_dictionary(type_):
        return column_kind(type_.value_type)
    if types.is_timestamp(type_):
        return "datetime" if type_.tz is None else "instant"
    tests = (
        (types.is_boolean, "bool"),
        (types.is_integer, "int"),
        (types.is_floating, "float"),
        (types.is_decimal, "decimal"),
        (types.is_string, "str"),
        (types.is_large_string, "str"),
        (types.is_string_view, "str"),
        (types.is_binary, "bytes"),
        (types.is_large_binary, "bytes"),
        (types.is_binary_view, "bytes"),
        (types.is_fixed_size_binary, "bytes"),
        (types.is_date, "date"),
    )
    return next((kind for test, kind in tests if test(type_)), None)


def fit(values: Values, type_: pa.DataType, name: str = "") -> Values:
    """The set as constants of the column's type; PatternError when they do not fit."""
    wanted = column_kind(type_)
    if not values.cuts or wanted == values.kind:
        return values
    if wanted is not None and (values.kind, wanted) in _NUMBERS:
        return values.as_kind(wanted)
    if wanted is not None and (values.kind, wanted) in _DATES | {("datetime", "instant")}:
        return _dated(values, wanted, type_)
    attribute = f"'{name}'" if name else "the column"
    raise PatternError(
        f"{attribute} is {type_}, but the pattern compares it with {values.kind} constants: {values}.",
        remedy=_remedy(wanted),
    )


def _remedy(wanted: str | None) -> str:
    if wanted is None:
        return "Constrain a column of numbers, strings, binary, dates or timestamps instead."
    words = {
        "datetime": "datetimes without a time zone, or ISO strings",
        "instant": "datetimes, or ISO strings",
        "date": "dates, or ISO strings",
        "decimal": "Decimals, such as Decimal('0.1')",
    }
    return f"Write {words.get(wanted, f'{wanted} constants')}."


def _dated(values: Values, wanted: str, type_: pa.DataType) -> Values:
    moved: list[Cut] = [(_moment(at, wanted, type_), side) for at, side in values.cuts]
    if any(a >= b for a, b in pairwise(moved)):
        raise PatternError(
            f"the dates of '{values}' are in another order as text.",
            remedy="Write them in one ISO form, or as dates.",
        )
    return Values(values.low, tuple(moved), values.null, wanted)


def _moment(at: Any, wanted: str, type_: pa.DataType) -> date:
    if isinstance(at, str):
        at = _parsed(at, wanted)
    if wanted == "date":
        return at  # type: ignore[no-any-return]
    moment = at if isinstance(at, datetime) else datetime(at.year, at.month, at.day)
    if wanted == "datetime":
        if moment.tzinfo is None:
            return moment
        raise PatternError(
            f"{moment.isoformat()} has a time zone, and the column has none.",
            remedy="Write it without one.",
        )
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=_zone(type_.tz))
    return zoned.astimezone(UTC)


def _parsed(text: str, wanted: str) -> date:
    try:
        return date.fromisoformat(text) if wanted == "date" else datetime.fromisoformat(text)
    except ValueError as error:
        form = "2024-05-01" if wanted == "date" else "2024-05-01T12:30:00"
        raise PatternError(f"'{text}' is no ISO {wanted}.", remedy=f"Write it like '{form}'.") from error


def _zone(name: str) -> Any:
    try:
        return datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo or ZoneInfo(name)
    except ValueError:
        pass
    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError as error:
        raise PatternError(
            f"no time zone '{name}' is known here.", remedy="Write constants with their offset."
        ) from error
