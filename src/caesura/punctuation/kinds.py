"""The kinds of constants a pattern may name, and how cuts between them are canonical and translated.

Integers and booleans are discrete, so a cut behind 4 is the cut before 5; every other kind is dense.
NaN equals itself and is greater than every other float, as in Spark; -0.0 is 0.0.

>>> kind_of(4), kind_of("a"), kind_of(4.5)
('int', 'str', 'float')
>>> NAN == NAN, 1e300 < NAN
(True, True)
>>> settle("int", False, [(4, 0), (4, 1)])
(False, ((4, 0), (5, 0)))
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PatternError
from caesura.punctuation.cuts import Cut, Cuts


class _NaN(float):
    """The one NaN of patterns: equal to NaN, above every other float."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isnan(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return False

    def __le__(self, other: Any) -> bool:
        return bool(self == other)

    def __gt__(self, other: Any) -> bool:
        return not self == other

    def __ge__(self, other: Any) -> bool:
        return True

    def __hash__(self) -> int:
        return 314159

    def __reduce__(self) -> str:
        return "NAN"


NAN = _NaN("nan")
BOTTOM: Cut = (None, -1)  # the place below every value
TOP: Cut = (None, 2)  # the place above every value

_LEAST = {"float": -math.inf, "str": "", "bytes": b""}
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (Decimal, "decimal"),
    (str, "str"),
    (bytes, "bytes"),
    (datetime, "datetime"),
    (date, "date"),
)


def kind_of(value: Any) -> str:
    """The kind of a constant: its family of comparable values."""
    for family, kind in _TYPES:
        if isinstance(value, family):
            return "instant" if isinstance(value, datetime) and value.tzinfo is not None else kind
    raise PatternError(
        f"a pattern cannot name {value!r}, a {type(value).__name__}.",
        remedy="Name a bool, int, float, Decimal, str, bytes, date or datetime.",
    )


def constant(value: Any) -> Any:
    """A constant in its one spelling: plain Python, one NaN, no -0.0, instants in UTC."""
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, Decimal) and value.is_nan():
        raise PatternError(
            "a Decimal NaN has no place in an order.",
            remedy="Leave it out: the pattern then says nothing of rows that hold it.",
        )
    return value


def common_kind(values: Iterable[Any]) -> str:
    """The one kind of all these constants; integers join floats or Decimals."""
    kinds = sorted({kind_of(value) for value in values})
    if len(kinds) == 2 and kinds in (["float", "int"], ["decimal", "int"]):
        return kinds[0]
    if len(kinds) > 1:
        raise mixed(*kinds)
    return kinds[0] if kinds else ""


def mixed(*kinds: str) -> PatternError:
    """The diagnostic for constants that have no common order."""
    return PatternError(
        f"constants of different types do not compare: {' and '.join(kinds)}.",
        remedy="Write all constants of one attribute in that attribute's type.",
    )


def settle(kind: str, low: bool, cuts: Iterable[Cut]) -> tuple[bool, Cuts]:
    """Canonical cuts: discrete kinds have theirs before a value, equal neighbours cancel."""
    out: list[Cut] = []
    for raw in cuts:
        cut = _canonical(kind, raw)
        if cut is BOTTOM:
            low = not low
        elif cut is not TOP:
            if out and out[-1] == cut:
                out.pop()
            else:
                out.append(cut)
    return low, tuple(out)


def _canonical(kind: str, cut: Cut) -> Cut:
    value, side = cut
    if cut is BOTTOM or cut is TOP:
        return cut
    if kind == "int":
        return (value + side, 0)
    if kind == "bool":
        return (TOP if side else (True, 0)) if value else ((True, 0) if side else BOTTOM)
    if side == 0 and kind in _LEAST and value == _LEAST[kind]:
        return BOTTOM
    if kind == "float" and side == 1 and value >= math.inf:
        return TOP if value is NAN else (NAN, 0)
    return cut


def translate(kind: str, target: str, cut: Cut) -> Cut:
    """The same place among the numbers of another kind, exactly."""
    value, side = cut
    if target == "int":
        if value == math.inf or value is NAN:
            return TOP
        if value == -math.inf:
            return BOTTOM
        return (math.floor(value) + 1 if side else math.ceil(value), 0)
    if target == "decimal" and kind == "int":
        return (Decimal(value), side)
    if target == "float" and kind == "int":
        try:
            near = float(value)
        except OverflowError:
            return (math.inf, 0) if value > 0 else (-math.inf, 1)
        return (near, side if near == value else int(near < value))
    raise mixed(kind, target)


def to_json(value: Any) -> Any:
    """A constant as JSON, tagged where JSON has no such type.

    >>> to_json(Decimal("1.50")), from_json(to_json(Decimal("1.50")))
    ({'decimal': '1.50'}, Decimal('1.50'))
    """
    match value:
        case float() if not math.isfinite(value):
            return {"float": repr(float(value))}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": value.hex()}
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case tuple() | list():
            return {"tuple": [to_json(item) for item in value]}
    return value


def from_json(data: Any) -> Any:
    """The constant that `to_json` wrote."""
    if not isinstance(data, dict):
        return data
    ((tag, text),) = data.items()
    match tag:
        case "float":
            return constant(float(text))
        case "decimal":
            return Decimal(text)
        case "bytes":
            return bytes.fromhex(text)
        case "datetime":
            return constant(datetime.fromisoformat(text))
        case "date":
            return date.fromisoformat(text)
        case "tuple":
            return tuple(from_json(item) for item in text)
    raise PatternError(f"no constant is tagged {tag!r}.", remedy="Read what this version of Caesura wrote.")
