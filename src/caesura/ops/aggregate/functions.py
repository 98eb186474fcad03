"""The aggregates that users write: count, sum, min, max, avg; what they take and what they give.

>>> avg("speed").label
'avg_speed'
>>> result_type(avg("speed"), pa.schema([("speed", pa.int32())]), pa.int64())
DataType(double)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, as_column, attributes, is_column, type_of

Kind = Literal["count", "sum", "min", "max", "avg"]


@dataclass(frozen=True, eq=False)
class Aggregate:
    """An aggregate over an expression, or over rows where there is none."""

    kind: Kind
    value: Expr | None = None

    @property
    def label(self) -> str:
        """The output name when the user gives none."""
        if self.value is None:
            return self.kind
        return f"{self.kind}_{is_column(self.value) or 'value'}"

    @property
    def key(self) -> object:
        return (self.kind, None if self.value is None else self.value.key)

    def __str__(self) -> str:
        return f"{self.kind}({'' if self.value is None else self.value})"


def count(value: str | Expr | None = None) -> Aggregate:
    """How many rows; with a column, how many of its values are not null."""
    return Aggregate("count", None if value is None else as_column(value))


def sum(value: str | Expr) -> Aggregate:
    """The sum of the values that are not null; null when there is none. Float sums are exact."""
    return Aggregate("sum", as_column(value))


def min(value: str | Expr) -> Aggregate:
    """The least value; NaN counts as greater than every number."""
    return Aggregate("min", as_column(value))


def max(value: str | Expr) -> Aggregate:
    """The greatest value; NaN counts as greater than every number."""
    return Aggregate("max", as_column(value))


def avg(value: str | Expr) -> Aggregate:
    """The mean of the values that are not null, as a double."""
    return Aggregate("avg", as_column(value))


def read_by(aggregates: tuple[tuple[str, Aggregate], ...]) -> set[str]:
    """The columns that aggregates read."""
    return set().union(*(attributes(a.value) for _, a in aggregates if a.value is not None))


def result_type(aggregate: Aggregate, schema: pa.Schema, time: pa.DataType) -> pa.DataType:
    """The type of an aggregate's result; refuses what cannot be aggregated."""
    if aggregate.value is None:
        return pa.int64()
    got = type_of(aggregate.value, schema, time=time)
    match aggregate.kind:
        case "count":
            return pa.int64()
        case "min" | "max":
            if pa.types.is_struct(got):
                raise _refused(aggregate, got, "a type with an order")
            return got
        case "sum":
            if pa.types.is_integer(got):
                return pa.int64()
            if pa.types.is_floating(got):
                return pa.float64()
            if pa.types.is_decimal(got):
                return pa.decimal128(38, got.scale)
        case "avg":
            if pa.types.is_integer(got) or pa.types.is_floating(got) or pa.types.is_decimal(got):
                return pa.float64()
    raise _refused(aggregate, got, "a number")


def _refused(aggregate: Aggregate, got: pa.DataType, wanted: str) -> PlanError:
    return PlanError(
        f"{aggregate} is over the type {got}; wanted {wanted}.",
        remedy="Cast the column, for example col(...).cast('double'), or count it instead.",
    )
