"""The types of the values that a query computes: scalars, records, relations, maps, sketches' answers.

Whole numbers are 64 bits wide and fractions are doubles, whatever width the columns have, so that a
fold that starts from 0 does not wrap at 32 bits.

>>> str(Record((("n", INT), ("mean", FLOAT)))), str(MapOf(TEXT, INT))
('{n: bigint, mean: double}', 'Map(string, bigint)')
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import describe


@dataclass(frozen=True)
class Scalar:
    """One value of a column type."""

    type: pa.DataType
    nonnegative: bool = field(default=False, compare=False)
    """Whether it is known to be never negative; types that differ in this alone are equal."""

    def __str__(self) -> str:
        return describe(self.type)


@dataclass(frozen=True)
class Record:
    """Named values side by side; without any, the unit type."""

    fields: tuple[tuple[str, ValueType], ...] = ()

    def __str__(self) -> str:
        return "{" + ", ".join(f"{n}: {t}" for n, t in self.fields) + "}" if self.fields else "unit"

    def get(self, name: str) -> ValueType | None:
        """The type of a field, or None."""
        return dict(self.fields).get(name)


@dataclass(frozen=True)
class RelOf:
    """A multiset of values."""

    element: ValueType

    def __str__(self) -> str:
        return f"Rel({self.element})"


@dataclass(frozen=True)
class MapOf:
    """A partial map; also a relation of {key, value} records."""

    key: ValueType
    value: ValueType

    def __str__(self) -> str:
        return f"Map({self.key}, {self.value})"


@dataclass(frozen=True)
class Approx:
    """A double m with same-sign |m| <= |exact| <= (1 + epsilon) |m|."""

    epsilon: float
    nonnegative: bool = False

    def __str__(self) -> str:
        sign = ", >= 0" if self.nonnegative else ""
        return f"double within a factor 1 + {self.epsilon!r}{sign}"


@dataclass(frozen=True)
class Opaque:
    """What a Python function returns that does not say its type, or a fold's private state."""

    what: str = "anything"
    epsilon: float = 0.0
    """The error of the values that it is made of."""
    nonnegative: bool = False
    """Whether those are known to be never negative."""

    def __str__(self) -> str:
        return self.what


ValueType: TypeAlias = Scalar | Record | RelOf | MapOf | Approx | Opaque
UNIT = Record()
INT = Scalar(pa.int64())
FLOAT = Scalar(pa.float64())
BOOL = Scalar(pa.bool_())
TEXT = Scalar(pa.string())


def widened(t: pa.DataType) -> pa.DataType:
    """The type that a column's values have inside a query."""
    if pa.types.is_dictionary(t):
        return widened(t.value_type)
    if pa.types.is_integer(t):
        return pa.int64()
    if pa.types.is_floating(t):
        return pa.float64()
    if pa.types.is_large_string(t):
        return pa.string()
    return t


def of_arrow(t: pa.DataType) -> ValueType:
    """A column type as a value type; structs become records."""
    if pa.types.is_struct(t):
        return Record(tuple((f.name, of_arrow(f.type)) for f in t))
    small = pa.types.is_unsigned_integer(t) and t.bit_width < 64  # larger ones may wrap
    return Scalar(widened(t), bool(small))


def of_schema(schema: pa.Schema) -> Record:
    """The record type of a stream's items; a column that says its error bound is approximate."""
    return Record(tuple((f.name, bounded(f) or of_arrow(f.type)) for f in schema))


def bounded(column: pa.Field) -> Approx | None:
    """The bound that a column's metadata tells, if any."""
    epsilon = (column.metadata or {}).get(b"epsilon")
    return (
        None
        if epsilon is None
        else Approx(float(epsilon), column.metadata.get(b"bound", b"").endswith(b">= 0"))
    )


def to_arrow(t: ValueType) -> pa.DataType | None:
    """The column type that holds such values; None for maps, relations and opaque values."""
    match t:
        case Scalar():
            return t.type
        case Approx():
            return pa.float64()
        case Record(fields=fields):
            parts = [(n, to_arrow(f)) for n, f in fields]
            return None if any(p is None for _, p in parts) else pa.struct(parts)
    return None


def joined(a: ValueType, b: ValueType, where: str) -> ValueType:
    """The type of a value that may come from either side."""
    match a, b:
        case Opaque(), Opaque():
            return replace(a, epsilon=max(a.epsilon, b.epsilon), nonnegative=a.nonnegative and b.nonnegative)
        case (other, Opaque()) | (Opaque(), other):
            return other
        case Scalar(), Scalar():
            if pa.types.is_null(a.type) or pa.types.is_null(b.type):
                return b if pa.types.is_null(a.type) else a
            if a == b or {a, b} == {INT, FLOAT}:
                return Scalar(a.type if a == b else FLOAT.type, a.nonnegative and b.nonnegative)
        case Approx(), Approx() | Scalar():
            return _approximate(a, b, where)
        case Scalar(), Approx():
            return _approximate(b, a, where)
        case Record(), Record() if [n for n, _ in a.fields] == [n for n, _ in b.fields]:
            pairs = zip(a.fields, b.fields, strict=True)
            return Record(tuple((n, joined(t, u, where)) for (n, t), (_, u) in pairs))
        case MapOf(), MapOf():
            return MapOf(joined(a.key, b.key, where), joined(a.value, b.value, where))
        case RelOf(), RelOf():
            return RelOf(joined(a.element, b.element, where))
    raise _differ(a, b, where)


def _approximate(a: Approx, b: Approx | Scalar, where: str) -> Approx:
    """An approximate value, or another that may be exact."""
    if isinstance(b, Approx):
        return Approx(max(a.epsilon, b.epsilon), a.nonnegative and b.nonnegative)
    if pa.types.is_null(b.type):
        return a
    if b not in (INT, FLOAT):
        raise _differ(a, b, where)
    return Approx(a.epsilon, a.nonnegative and b.nonnegative)


def _differ(a: ValueType, b: ValueType, where: str) -> PlanError:
    return PlanError(
        f"{where} gives {a} on one side and {b} on the other.", remedy="Make the two types the same."
    )


def type_of_value(value: Any) -> ValueType:
    """The type of a plain Python value."""
    match value:
        case dict():
            return Record(tuple((str(n), type_of_value(v)) for n, v in value.items()))
        case tuple() if not value:
            return UNIT
        case bool():
            return BOOL
        case int():
            return INT
        case float():
            return FLOAT
        case str():
            return TEXT
        case None:
            return Scalar(pa.null())
    try:
        return Scalar(pa.scalar(value).type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return Opaque(type(value).__name__)


def fits(value: Any, t: ValueType) -> bool:
    """Whether a Python value may stand where this type is promised."""
    match t:
        case Opaque():
            return True
        case Record(fields=fields):
            if not fields:
                return True
            return isinstance(value, dict) and all(n in value and fits(value[n], f) for n, f in fields)
        case MapOf():
            return isinstance(value, dict)
        case RelOf():
            return isinstance(value, list)
    if value is None:
        return True
    wanted = pa.float64() if isinstance(t, Approx) else t.type
    if pa.types.is_integer(wanted) or pa.types.is_floating(wanted):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (isinstance(value, float) and pa.types.is_floating(wanted))
    got = type_of_value(value)
    return isinstance(got, Scalar) and (got.type == wanted or pa.types.is_timestamp(wanted))


def columns(t: ValueType) -> list[pa.Field]:
    """The columns of a value that is no map; the bound of an approximate one is the field's metadata."""
    if isinstance(t, Record):
        return [column_of(name, inner) for name, inner in t.fields]
    return [column_of("value", t)]


def column_of(name: str, t: ValueType) -> pa.Field:
    """The column of one value; a value that no column holds is refused."""
    arrow = to_arrow(t)
    if arrow is None:
        raise PlanError(
            f"the value '{name}' is of type {t}, which no column can hold.",
            remedy="Promise a type: qre.function(f, returns='double'), or reduce the map with rel().",
        )
    if isinstance(t, Approx):
        note = {"epsilon": repr(t.epsilon), "bound": str(t)}
        return pa.field(name, arrow, metadata=note)
    return pa.field(name, arrow)
