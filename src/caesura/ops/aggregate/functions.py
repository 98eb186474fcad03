"""The aggregates that users write, what they take and what they give.

>>> avg("speed").label
'avg_speed'
>>> result_type(avg("speed"), pa.schema([("speed", pa.int32())]), pa.int64())
DataType(double)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, as_column, as_expr, attributes, is_column, lit, type_of, when
from caesura.ops.aggregate.picks import top_fields
from caesura.plan import here

Kind = Literal[
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "variance",
    "stddev",
    "first",
    "last",
    "top_k",
    "count_distinct",
    "quantile",
    "median",
    "collect",
    "whole_sum",
]
"""Users write all but `whole_sum`, which adds up the shares that buckets have of a sum of whole numbers."""
MOST_TOP = 64


class NoValue:
    """Refuses arithmetic with what is computed over a window: it has no value before that."""

    def _refuse(self, *others: object) -> NoReturn:
        raise PlanError(
            "an aggregate has no value before its window is computed.",
            remedy="Compute each, then go on with their columns: "
            "agg(hi=cz.max('v'), lo=cz.min('v')).with_columns(span=col('hi') - col('lo')).",
            place=here(),
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __neg__ = __and__ = __or__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse


@dataclass(frozen=True, eq=False)
class Aggregate(NoValue):
    """An aggregate over an expression, or over rows where there is none."""

    kind: Kind
    value: Expr | None = None
    option: float = 0
    """The k of top_k, the q of quantile, the ddof of variance and stddev."""
    shown: str = ""
    """What explain prints, where it is not the expression."""

    @property
    def label(self) -> str:
        """The output name when the user gives none."""
        if self.value is None:
            return self.kind
        return f"{self.kind}_{is_column(self.value) or 'value'}"

    @property
    def key(self) -> object:
        return (self.kind, None if self.value is None else self.value.key, self.option)

    def __str__(self) -> str:
        return self.shown or f"{self.kind}({'' if self.value is None else self.value})"


def one_way(
    aggregates: tuple[tuple[str, Aggregate], ...],
) -> tuple[tuple[str, Literal["up", "down"]], ...]:
    """The aggregates that only grow, or only shrink, as rows are added."""
    ways: dict[str, Literal["up", "down"]] = {
        "count": "up",
        "count_distinct": "up",
        "max": "up",
        "min": "down",
    }
    return tuple((name, ways[a.kind]) for name, a in aggregates if a.kind in ways)


def _made(kind: Kind, value: str | Expr | None, where: Expr | None, option: float = 0) -> Aggregate:
    """An aggregate; a filter turns the values that it leaves out into nulls, which count nowhere."""
    over = None if value is None else as_column(value)
    words = [] if over is None else [str(over)]
    if kind in ("top_k", "quantile"):
        words.append(str(option))
    if where is None:
        return Aggregate(kind, over, option, f"{kind}({', '.join(words)})")
    kept = when(as_expr(where), lit(1) if over is None else over)
    return Aggregate(kind, kept, option, f"{kind}({', '.join([*words, f'where {where}'])})")


def count(value: str | Expr | None = None, *, where: Expr | None = None) -> Aggregate:
    """How many rows; with a column, how many of its values are not null."""
    return _made("count", value, where)


def sum(value: str | Expr, *, where: Expr | None = None) -> Aggregate:
    """The sum of the values that are not null; null when there is none. Float sums are exact."""
    return _made("sum", value, where)


def min(value: str | Expr, *, where: Expr | None = None) -> Aggregate:
    """The least value; NaN counts as greater than every number."""
    return _made("min", value, where)


def max(value: str | Expr, *, where: Expr | None = None) -> Aggregate:
    """The greatest value; NaN counts as greater than every number."""
    return _made("max", value, where)


def avg(value: str | Expr, *, where: Expr | None = None) -> Aggregate:
    """The mean of the values that are not null, as a double."""
    return _made("avg", value, where)


def variance(value: str | Expr, *, ddof: int = 1, where: Expr | None = None) -> Aggregate:
    """The variance, of a sample by default (ddof=0: of a population); null for too few values."""
    return _made("variance", value, where, _freedom(ddof))


def stddev(value: str | Expr, *, ddof: int = 1, where: Expr | None = None) -> Aggregate:
    """The square root of the variance."""
    return _made("stddev", value, where, _freedom(ddof))


def _freedom(ddof: int) -> int:
    if isinstance(ddof, bool) or not isinstance(ddof, int) or not 0 <= ddof < 2**31:
        raise PlanError(
            f"ddof={ddof!r} is no number of values to leave out of count.",
            remedy="Give ddof=1 for a sample, ddof=0 for a population.",
            place=here(),
        )
    return ddof


def first(value: str | Expr, *, where: Expr | None = None) -> Aggregate:
    """The value of the event that starts first; of several, the least."""
    return _made("first", value, where)


def last(value: str | Expr, *, where: Expr | None = None) -> Aggregate:
    """The value of the event that starts last; of several, the greatest."""
    return _made("last", value, where)


def top_k(value: str | Expr, k: int, *, where: Expr | None = None) -> Aggregate:
    """The k greatest values, copies included, as a struct with the fields top1 to topk."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_TOP:
        raise PlanError(
            f"top_k of {k!r} values says nothing.", remedy=f"Give a whole k from 1 to {MOST_TOP}."
        )
    return _made("top_k", value, where, k)


def count_distinct(value: str | Expr, *, where: Expr | None = None) -> Aggregate:
    """How many different values there are; null is none."""
    return _made("count_distinct", value, where)


def quantile(value: str | Expr, q: float, *, where: Expr | None = None) -> Aggregate:
    """The least value that at least the share q of the values does not exceed; exact."""
    if not 0 <= q <= 1:
        error = PlanError(f"no quantile lies at {q}.", remedy="Give a share from 0 to 1, like 0.95.")
        raise error.at("quantile", here())
    return _made("quantile", value, where, q)


def median(value: str | Expr, *, where: Expr | None = None) -> Aggregate:
    """The value in the middle, or the mean of the two there, as a double; exact."""
    return _made("median", value, where, 0.5)


def collect(value: str | Expr, *, where: Expr | None = None) -> Aggregate:
    """All values in canonical order, as the text of a JSON list (a stream carries no lists)."""
    return _made("collect", value, where)


def read_by(aggregates: tuple[tuple[str, Aggregate], ...]) -> set[str]:
    """The columns that aggregates read."""
    return set().union(*(attributes(a.value) for _, a in aggregates if a.value is not None))


def result_type(aggregate: Aggregate, schema: pa.Schema, time: pa.DataType) -> pa.DataType:
    """The type of an aggregate's result; refuses what cannot be aggregated."""
    if aggregate.value is None:
        return pa.int64()
    got = type_of(aggregate.value, schema, time=time)
    match aggregate.kind:
        case "count" | "whole_sum":
            return pa.int64()
        case "count_distinct" | "collect" | "min" | "max" | "first" | "last" | "top_k" | "quantile":
            return _picked_type(aggregate, got)
        case "sum":
            if pa.types.is_integer(got):
                return pa.int64()
            if pa.types.is_floating(got):
                return pa.float64()
            if pa.types.is_decimal(got):
                return pa.decimal128(38, got.scale)
        case "avg" | "variance" | "stddev" | "median":
            if pa.types.is_integer(got) or pa.types.is_floating(got) or pa.types.is_decimal(got):
                return pa.float64()
    raise _refused(aggregate, got, "a number")


def _picked_type(aggregate: Aggregate, got: pa.DataType) -> pa.DataType:
    """The type of what is picked out of the values, which must have an order."""
    if pa.types.is_struct(got):
        raise _refused(aggregate, got, "a type with an order")
    if aggregate.kind == "count_distinct":
        return pa.int64()
    if aggregate.kind == "collect":
        if pa.types.is_binary(got):
            raise _refused(aggregate, got, "a type that has a text")
        return pa.string()
    return top_fields(int(aggregate.option), got) if aggregate.kind == "top_k" else got


def _refused(aggregate: Aggregate, got: pa.DataType, wanted: str) -> PlanError:
    return PlanError(
        f"{aggregate} is over the type {got}; wanted {wanted}.",
        remedy="Cast the column, for example col(...).cast('double'), or count it instead.",
    )
