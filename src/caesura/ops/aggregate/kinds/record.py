"""An aggregate as one record: what it takes and gives, what it keeps per slot, and how a result is read.

A file beside this one defines each family; nothing else in the engine knows an aggregate by name. Its
oracle is the function of the same name in `testing/oracles/aggregates.py`, which the audit asks too.

>>> from caesura.ops.aggregate.kinds import avg
>>> avg("speed").label, avg("speed").rule.name
('avg_speed', 'avg')
>>> result_type(avg("speed"), pa.schema([("speed", pa.int32())]), pa.int64())
DataType(double)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.columns import taken
from caesura.events.rows import RowState
from caesura.expr import Expr, as_column, as_predicate, attributes, is_column, lit, type_of, when
from caesura.expr.nodes import AggregateValue
from caesura.kernels.hashing import I64
from caesura.misuse import checked
from caesura.ops.aggregate.accumulators.comoments import PairSums
from caesura.ops.aggregate.accumulators.exact import F64
from caesura.ops.aggregate.accumulators.moments import Spread
from caesura.ops.aggregate.accumulators.running import Counts, RunningValue
from caesura.ops.aggregate.accumulators.sums import Accumulator, Counted
from caesura.plain_arrays import plain_numbers
from caesura.plan import here

Condition = Expr | str | None
"""What a value must satisfy to count: a predicate, or its SQL text."""


def _operator(name: str) -> Callable[..., Expr]:
    def operate(self: Any, *others: object) -> Expr:
        made: Expr = getattr(self.__caesura_expr__(), name)(*others)
        return made

    return operate


class Reckoned:
    """What is computed over a window, as a value to go on with: ``cz.max("a") - cz.min("a")``."""

    def __caesura_expr__(self) -> Expr:
        """The column that it will have behind its window."""
        return AggregateValue(str(self), self)

    def __getattr__(self, name: str) -> Any:
        """What is asked of a value, such as ``cz.avg("v").round(1)``."""
        if name.startswith("_") or not hasattr(Expr, name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self.__caesura_expr__(), name)

    __add__, __radd__ = _operator("__add__"), _operator("__radd__")
    __sub__, __rsub__ = _operator("__sub__"), _operator("__rsub__")
    __mul__, __rmul__ = _operator("__mul__"), _operator("__rmul__")
    __truediv__, __rtruediv__ = _operator("__truediv__"), _operator("__rtruediv__")
    __floordiv__, __rfloordiv__ = _operator("__floordiv__"), _operator("__rfloordiv__")
    __mod__, __rmod__ = _operator("__mod__"), _operator("__rmod__")
    __pow__ = _operator("__pow__")
    __neg__ = _operator("__neg__")
    __abs__ = _operator("__abs__")
    __and__ = _operator("__and__")
    __or__ = _operator("__or__")
    __invert__ = _operator("__invert__")
    __lt__, __le__ = _operator("__lt__"), _operator("__le__")
    __gt__, __ge__ = _operator("__gt__"), _operator("__ge__")


@dataclass(frozen=True, eq=False)
class Aggregate(Reckoned):
    """An aggregate over an expression, or over rows where there is none."""

    kind: str
    value: Expr | None = None
    option: Any = 0
    """The k of top_k, the q of quantile, the ddof of variance and stddev, the separator of string_agg
    (with an order also whether it descends)."""
    shown: str = ""
    """What explain prints, where it is not the expression."""
    name: str = ""
    """The output name that the user gave it."""

    @checked
    def alias(self, name: str) -> Aggregate:
        """The same under an output name: ``agg(cz.sum("v").alias("total"))``."""
        return replace(self, name=name)

    @property
    def rule(self) -> AggregateKind:
        """The record of its kind."""
        return KINDS[self.kind]

    @property
    def label(self) -> str:
        """The output name when the user gives none."""
        if self.name or self.value is None:
            return self.name or self.kind
        return f"{self.kind}_{is_column(self.value) or 'value'}"

    @property
    def key(self) -> object:
        return (self.kind, None if self.value is None else self.value.key, self.option)

    def __str__(self) -> str:
        return self.shown or f"{self.kind}({'' if self.value is None else self.value})"


class Reading(Protocol):
    """What was accumulated for some results: in slots, over panes, or along a sweep."""

    @property
    def n(self) -> I64:
        """How many values that are not null each result has; of a count of rows, how many rows."""

    def values(self) -> pa.Array:
        """The quantity, in its own type; a sum of nothing is 0."""

    def floats(self) -> F64:
        """A sum as doubles."""


class InSlots:
    """The accumulators of one aggregate in some slots."""

    def __init__(self, parts: tuple[Accumulator, ...], slots: RowState, at: I64) -> None:
        self.slots, self.at = slots, at
        self._count = parts[0] if parts else None
        self.part: Any = parts[-1] if parts else None
        """The accumulator of the aggregate's own state."""

    @cached_property
    def n(self) -> I64:
        if self._count is None:
            return taken(self.slots.get("rows"), self.at)
        found = self._count.value(self.slots, self.at)
        return plain_numbers(found)

    def values(self) -> pa.Array:
        return self.part.value(self.slots, self.at)

    def floats(self) -> F64:
        found: F64 = self.part.as_float(self.slots, self.at)
        return found

    def spread(self) -> Spread:
        """Of an accumulator that keeps moments: what variances are made of."""
        found: Spread = self.part.spread(self.slots, self.at, self.n)
        return found

    def pair_sums(self) -> PairSums:
        """Of an accumulator that keeps sums of pairs: what is read of them."""
        found: PairSums = self.part.pair_sums(self.slots, self.at, self.n)
        return found


@dataclass(frozen=True)
class State:
    """What an aggregate keeps per slot; aggregates of one expression with states of one name share it.

    Every accumulator takes weights below zero: that is how values are taken back.
    """

    name: str
    make: Callable[[str, pa.DataType], Accumulator]
    """From a name for its fields and the type of the values."""
    running: Callable[[Any], RunningValue] | None = None
    """What merges panes into windows; None where windows cannot be made of panes."""
    timed: bool = False
    """Whether a value comes with its event's start."""


COUNT = State("n", lambda name, t: Counted(name), running=lambda part: Counts(part.name))
"""How many values there are: what every aggregate of an expression keeps."""


@dataclass(frozen=True)
class PartialAggregate:
    """What a bucket gives of an aggregate, how the shares are combined, and what they make."""

    parts: tuple[tuple[str, Aggregate], ...]
    combined: tuple[tuple[str, Aggregate], ...]
    result: Expr
    on_request: bool = False
    """Whether only steps that say ``skewed`` are taken apart so; others find the state that they saved."""


@dataclass(frozen=True)
class AggregateKind:
    """All that the engine asks of a kind of aggregate."""

    name: str
    result: Callable[[Aggregate, pa.DataType], pa.DataType]
    """The type rule: from the type of the values to that of the result; refuses what cannot be aggregated."""
    finish: Callable[[Aggregate, Any], pa.Array]
    """From what was accumulated to results: a `Reading`, or `InSlots` where the state neither runs over
    panes nor along a sweep."""
    state: Callable[[pa.DataType, bool], State] | None = None
    """What is kept besides a count, for values of this type that only come, or also go; None for no more."""
    share: Callable[[str, Aggregate, pa.DataType], PartialAggregate | None] | None = None
    """How results of buckets combine exactly, by output name and type of the values; None if they do not."""
    direction: Literal["up", "down"] | None = None
    """Whether a result only grows, or only shrinks, as rows are added."""
    threshold: Callable[[Aggregate, pa.Array], pa.Array] | None = None
    """From results to values below which no further value changes them; None where every value counts."""
    shows_option: bool = False
    """Whether explain prints the option."""
    counts_values: bool = False
    """Whether a result is the number of different values."""
    state_for: Callable[[Any], Callable[[pa.DataType, bool], State]] | None = None
    """The same as ``state``, where it depends on the option."""
    metadata: Callable[[Aggregate], dict[str, str]] | None = None
    """What the field of a result says of it."""


KINDS: dict[str, AggregateKind] = {}


def define(kind: AggregateKind) -> AggregateKind:
    """Adds a kind of aggregate."""
    KINDS[kind.name] = kind
    return kind


def always(state: State) -> Callable[[pa.DataType, bool], State]:
    """The same state for every type, whether values are taken back or not."""
    return lambda t, insert_only: state


def either(where: Condition, filter: Condition) -> Condition:
    """The one condition of an aggregate, by either name."""
    if where is not None and filter is not None:
        raise PlanError(
            "an aggregate has where= and filter=, which mean the same.",
            remedy="Leave one out, or write (a) & (b).",
            place=here(),
        )
    return filter if where is None else where


def made(kind: str, value: str | Expr | None, where: Condition, option: Any = 0) -> Aggregate:
    """An aggregate; a filter turns the values that it leaves out into nulls, which count nowhere."""
    over = None if value is None else as_column(value)
    texts = [] if over is None else [str(over)]
    if KINDS[kind].shows_option:
        texts.append(repr(option))
    if where is None:
        return Aggregate(kind, over, option, f"{kind}({', '.join(texts)})")
    filtered = when(as_predicate(where), lit(1) if over is None else over)
    return Aggregate(kind, filtered, option, f"{kind}({', '.join([*texts, f'where {where}'])})")


def directions(
    aggregates: tuple[tuple[str, Aggregate], ...],
) -> tuple[tuple[str, Literal["up", "down"]], ...]:
    """The aggregates that only grow, or only shrink, as rows are added."""
    found = ((name, a.rule.direction) for name, a in aggregates)
    return tuple((name, direction) for name, direction in found if direction is not None)


def read_by(aggregates: tuple[tuple[str, Aggregate], ...]) -> set[str]:
    """The columns that aggregates read."""
    return set().union(*(attributes(a.value) for _, a in aggregates if a.value is not None))


def result_type(aggregate: Aggregate, schema: pa.Schema, time: pa.DataType) -> pa.DataType:
    """The type of an aggregate's result; refuses what cannot be aggregated."""
    if aggregate.value is None:
        return pa.int64()
    return aggregate.rule.result(aggregate, type_of(aggregate.value, schema, time=time))


def result_field(name: str, aggregate: Aggregate, schema: pa.Schema, time: pa.DataType) -> pa.Field:
    """The field of an aggregate's result."""
    stated = aggregate.rule.metadata
    t = result_type(aggregate, schema, time)
    return pa.field(name, t, metadata=None if stated is None else stated(aggregate))


# Type rules.


def whole(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    """Any type, counted."""
    return pa.int64()


def told_apart(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    """Any type that a value may have, counted."""
    if pa.types.is_null(t):
        raise refused(aggregate, t, "values of some type")
    return pa.int64()


def as_double(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    """Numbers; the result is a double."""
    if pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t):
        return pa.float64()
    raise refused(aggregate, t, "a number")


def with_order(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    """Any type, since each has its canonical order; the result is one of the values."""
    return t


CAST = "Cast the column, for example col(...).cast('double'), or count it instead."


def refused(aggregate: Aggregate, got: pa.DataType, wanted: str, *, remedy: str = CAST) -> PlanError:
    """The error for values of a type that an aggregate does not take."""
    return PlanError(f"{aggregate} is over the type {got}; wanted {wanted}.", remedy=remedy)
