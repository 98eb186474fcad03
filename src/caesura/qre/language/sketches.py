"""Approximation as plug-in data structures, each with a guarantee that holds for every stream.

* `quantile(q, epsilon)`: the paper's histogram of geometric buckets. The answer m has the exact value's
  sign and |m| <= |exact| <= (1 + epsilon) |m|; zero is exact. Of an even count the median is the lower one:
  the value of rank ceil(q n), counted from 1. Histograms merge, and values can be taken out again.
* `event_count(size, epsilon)`: Datar's exponential histogram for the events in a sliding window.

>>> h = Histogram(0.01)
>>> for v in [5.0, -3.0, 0.0, 7.5]:
...     h = h.insert(v)
>>> h.quantile(0.5), h.quantile(0.0) <= -2.97
(0.0, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from caesura.errors import PlanError, StreamError
from caesura.plan import here
from caesura.qre.language.arguments import number
from caesura.qre.language.error_bounds import compound
from caesura.qre.language.folds import Fold
from caesura.qre.language.operations import Function, Types
from caesura.qre.language.types import FLOAT as FLOAT
from caesura.qre.language.types import Approx, Opaque, Scalar, ValueType


@dataclass(frozen=True)
class Histogram:
    """Counts of values by sign and by the power of 1 + epsilon at or below their size.

    Buckets are numbered so that bucket i of the positive ones holds [(1+e)^i, (1+e)^(i+1)).
    """

    epsilon: float
    counts: dict[tuple[int, int], int] = field(default_factory=dict)
    size: int = 0

    def bucket(self, value: float) -> tuple[int, int]:
        """(sign, power) of a value; the power is settled by comparison, not by the logarithm alone."""
        if value == 0:
            return (0, 0)
        if value != value or math.isinf(value):
            raise StreamError(
                f"{value} has no place in a histogram.", remedy="Leave it out with the predicate."
            )
        x, base = abs(value), 1.0 + self.epsilon
        i = math.floor(math.log(x) / math.log(base))
        while self.edge(i) > x:
            i -= 1
        while self.edge(i + 1) <= x:
            i += 1
        return (1 if value > 0 else -1, i)

    def edge(self, i: int) -> float:
        """The least size in bucket i."""
        return math.exp(i * math.log1p(self.epsilon))

    def insert(self, value: float, times: int = 1) -> Histogram:
        """With a value more, or less when ``times`` is negative."""
        at = self.bucket(value)
        counts = dict(self.counts)
        counts[at] = counts.get(at, 0) + times
        if counts[at] == 0:
            del counts[at]
        return Histogram(self.epsilon, counts, self.size + times)

    def remove(self, value: float) -> Histogram:
        """Without a value that was inserted before."""
        if self.counts.get(self.bucket(value), 0) < 1:
            raise StreamError(f"{value} was never inserted.", remedy="Take out only what was put in.")
        return self.insert(value, -1)

    def merge(self, other: Histogram) -> Histogram:
        """The histogram of both streams."""
        if other.epsilon != self.epsilon:
            raise PlanError("histograms of different epsilon do not merge.", remedy="Use one epsilon.")
        counts = dict(self.counts)
        for at, n in other.counts.items():
            counts[at] = counts.get(at, 0) + n
        return Histogram(self.epsilon, counts, self.size + other.size)

    def quantile(self, q: float) -> float | None:
        """The value of rank ceil(q n), rounded towards zero to its bucket's edge; None of nothing."""
        if self.size == 0:
            return None
        rank = max(1, math.ceil(q * self.size))
        for (sign, power), n in sorted(self.counts.items(), key=lambda item: item[0][0] * _order(item[0])):
            rank -= n
            if rank <= 0:
                return sign * self.edge(power) if sign else 0.0
        raise AssertionError("counts and size differ")


def _order(bucket: tuple[int, int]) -> float:
    """A bucket's size as an order: powers may be negative, so they are shifted up."""
    return bucket[1] + 2.0**40


def checked_epsilon(epsilon: float) -> float:
    """A usable error bound."""
    if not 0 < number("epsilon", epsilon, "0.01") < 1:
        raise PlanError(
            f"an epsilon of {epsilon} does not lie between 0 and 1.", remedy="Give one like 0.01."
        )
    return float(epsilon)


@dataclass(frozen=True)
class Quantile:
    """What kernels need to know of a quantile."""

    q: float
    epsilon: float | None
    nonnegative: bool

    @property
    def key(self) -> Any:
        return ("quantile", self.q, self.epsilon, self.nonnegative)


@dataclass(frozen=True)
class _Insert(Function):
    """Puts a value into a sketch, whose type tells the error of what is in it."""

    def type(self, types: Types) -> ValueType:
        known = [t for t in types.values() if isinstance(t, (Approx, Opaque))]
        sure = all(getattr(t, "nonnegative", False) for t in types.values())
        return Opaque("histogram", max((t.epsilon for t in known), default=0.0), sure)


@dataclass(frozen=True)
class _Rank(Function):
    """A quantile, perhaps of approximate values: it keeps their bound, and its own compounds with that."""

    epsilon: float = 0.0
    nonnegative: bool = False

    def type(self, types: Types) -> ValueType:
        acc = types["acc"]
        assert isinstance(acc, Opaque)
        epsilon, sure = compound(self.epsilon, acc.epsilon), self.nonnegative or acc.nonnegative
        return Approx(epsilon, sure) if epsilon else Scalar(FLOAT.type, sure)


def quantile(q: float, *, epsilon: float | None = None, nonnegative: bool = False) -> Fold:
    """The value of rank ``ceil(q n)`` among n.

    Parameters
    ----------
    q
        The share, from 0 to 1.
    epsilon
        With it the answer is within the factor 1 + epsilon, in fixed state for values of one size;
        without it, it is exact and keeps all values.
    nonnegative
        The promise that no value is below zero, so that the bound holds for sums of such answers too; a
        value that breaks it stops the query.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`: a double; null of nothing.

    Notes
    -----
    State: all values, or buckets of them with ``epsilon``. Nulls are left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.quantile(0.9)), pa.record_batch({"v": [1, 2, 3]}))
    [1.0, 2.0, 3.0]
    """
    if not 0 <= number("quantile", q, "0.5") <= 1:
        error = PlanError(
            f"a quantile of {q} does not lie between 0 and 1.", remedy="Give a share; the median is 0.5."
        )
        raise error.at("quantile", here())
    known = Quantile(q, None if epsilon is None else checked_epsilon(epsilon), nonnegative)
    name = f"quantile({q:g}" + ("" if epsilon is None else f", epsilon={epsilon:g}") + ")"
    what = Opaque("histogram", nonnegative=True)
    if known.epsilon is None:
        start = Function(lambda: (), what)
        finish = _Rank(lambda acc: _rank(acc, q), FLOAT, f"{name} of all")
        step = _Insert(lambda acc, x: acc if x is None else (*acc, float(x)), what)
        return Fold(name, start, step, finish, structure=known)
    begin = Histogram(known.epsilon)
    return Fold(
        name,
        Function(lambda: begin, what),
        _Insert(lambda acc, x: added(acc, x, nonnegative), what),
        _Rank(lambda acc: acc.quantile(q), FLOAT, f"{name} of buckets", known.epsilon, nonnegative),
        _Insert(lambda a, b: a.merge(b), what),
        _Insert(lambda acc, x: acc if x is None else acc.remove(x), what),
        known,
    )


def median(*, epsilon: float | None = None, nonnegative: bool = False) -> Fold:
    """The value in the middle; of two, the lower.

    Parameters
    ----------
    epsilon
        With it the answer is within the factor 1 + epsilon, in fixed state for values of one size;
        without it, it is exact and keeps all values.
    nonnegative
        The promise that no value is below zero, so that the bound holds for sums of such answers too; a
        value that breaks it stops the query.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`: a double; null of nothing.

    Notes
    -----
    State: all values, or buckets of them with ``epsilon``. Nulls are left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.median()), pa.record_batch({"v": [1, 2, 3]}))
    [1.0, 1.0, 2.0]
    """
    return quantile(0.5, epsilon=epsilon, nonnegative=nonnegative)


def added(acc: Histogram, x: Any, nonnegative: bool) -> Histogram:
    if x is not None and nonnegative and x < 0:
        raise StreamError(
            f"{x} is negative, but the quantile was promised values that are not.",
            remedy="Drop nonnegative=True; the bound then does not travel through sums.",
        )
    return acc if x is None else acc.insert(float(x))


def _rank(values: tuple[float, ...], q: float) -> float | None:
    """The value of a rank; NaN is above every number."""
    if not values:
        return None
    return sorted(values, key=lambda v: (v != v, 0.0 if v != v else v))[
        max(1, math.ceil(q * len(values))) - 1
    ]


@dataclass(frozen=True)
class EventCount:
    """An exponential histogram: sizes of groups of events, the newest first, with their last position.

    At most ``per_size`` groups have one size; then the two oldest merge. The oldest group may straddle the
    window's end: only its newest event is surely inside, and only that is counted.
    """

    size: int
    epsilon: float
    now: int = 0
    groups: tuple[tuple[int, int], ...] = ()
    """(position of the newest event, how many events), newest first."""

    @property
    def key(self) -> Any:
        return ("event_count", self.size, self.epsilon)

    @property
    def per_size(self) -> int:
        return math.ceil(1 / self.epsilon) + 1

    def insert(self, hit: Any) -> EventCount:
        """The window moved on by one piece, which is an event or not."""
        now = self.now + 1
        groups = [g for g in self.groups if g[0] > now - self.size]
        if hit:
            groups.insert(0, (now, 1))
            self._merge(groups)
        return EventCount(self.size, self.epsilon, now, tuple(groups))

    def _merge(self, groups: list[tuple[int, int]]) -> None:
        size = 1
        while True:
            same = [i for i, g in enumerate(groups) if g[1] == size]
            if len(same) <= self.per_size:
                return
            newer, older = same[-2], same[-1]
            groups[newer] = (groups[newer][0], 2 * size)
            del groups[older]
            size *= 2

    def count(self) -> float:
        """The events in the window, within a factor 1 + epsilon from below."""
        total = sum(n for _, n in self.groups)
        return float(total - self.groups[-1][1] + 1) if self.groups else 0.0


def event_count(size: int, epsilon: float) -> Fold:
    """How many of the last ``size`` values are 1, in space logarithmic in the window."""
    begin = EventCount(size, checked_epsilon(epsilon))
    what = Opaque("exponential histogram")
    return Fold(
        f"event_count(epsilon={epsilon:g})",
        Function(lambda: begin, what),
        Function(lambda acc, x: acc.insert(x), what),
        Function(lambda acc: acc.count(), Approx(float(epsilon), True), f"count of {size}"),
        structure=begin,
    )
