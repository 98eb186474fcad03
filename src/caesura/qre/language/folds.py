"""Folds that come with the language: how a list of values becomes one, step by step.

A fold is data: a starting value, a step over ``acc`` and ``x``, a last operation over ``acc``, and,
for sliding windows, how two partial results are combined (over ``a`` and ``b``) or a value taken
out again. Nulls are left out, as SQL's aggregates do.

>>> str(avg().step)
'{n: acc.n + CASE WHEN x IS NULL THEN 0 ELSE 1 END, s: acc.s + coalesce(x, 0)}'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from caesura.errors import PlanError
from caesura.expr import Expr, col, lit, when
from caesura.plan import here
from caesura.qre.language.arguments import number, text
from caesura.qre.language.operations import ACC, ExprOp, Operation, X, constant, operation

__all__ = [
    "Fold",
    "avg",
    "count",
    "custom",
    "discounted",
    "interpolated_avg",
    "linreg",
    "max_",
    "min_",
    "stddev",
    "sum_",
]
A, B = col("a"), col("b")
CUSTOM = "fold"
"""The name of folds of users' own."""


@dataclass(frozen=True, eq=False)
class Fold:
    """A way to make one value of many."""

    name: str
    init: Operation
    step: Operation
    finish: Operation | None = None
    combine: Operation | None = None
    """Joins the partial results of two consecutive pieces; None when only refolding will do."""
    evict: Operation | None = None
    """Takes the oldest value out again; exact for whole numbers only."""
    structure: Any = None
    """A sketch that kernels know (see `caesura.qre.language.sketches`)."""

    @property
    def key(self) -> Any:
        """Equal for folds that do the same."""
        if self.structure is not None:
            return (self.name, self.structure.key)
        parts = (self.init, self.step, self.finish)
        return (self.name, *(None if p is None else p.key for p in parts))

    def __str__(self) -> str:
        return self.name


def custom(init: Any, step: Any, *, combine: Any = None, evict: Any = None, finish: Any = None) -> Fold:
    """A fold of your own.

    Parameters
    ----------
    init
        The value that it begins with; a dict is a record.
    step
        What becomes of the value so far, ``acc``, and the next one, ``x``.
    combine
        What becomes of the folds ``a`` and ``b`` of two stretches, one behind the other.
    evict
        The fold ``acc`` of a stretch without its oldest value ``x``.
    finish
        The answer, of the last ``acc``; without it that is the answer.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`.

    Notes
    -----
    With ``combine`` or ``evict`` windows over it slide in constant time; otherwise each is folded anew.
    ``evict`` is used where folds are whole numbers, for which adding and taking away cancel.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.custom(1, col("acc") * col("x"))), pa.record_batch({"v": [1, 2, 3]}))
    [1, 2, 6]
    """
    return Fold(
        CUSTOM,
        constant(init),
        operation(step),
        None if finish is None else operation(finish),
        None if combine is None else operation(combine),
        None if evict is None else operation(evict),
    )


def sum_() -> Fold:
    """The sum of the values.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`; 0 of nothing.

    Notes
    -----
    State: a number. Nulls are left out. A window over it slides in constant time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.sum()), pa.record_batch({"v": [1, 2, 3]}))
    [1, 3, 6]
    """
    value = X.coalesce(0)
    return Fold("sum", constant(0), operation(ACC + value), None, operation(A + B), operation(ACC - value))


def count() -> Fold:
    """How many pieces there are.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`; 0 of nothing.

    Notes
    -----
    State: a number. Pieces whose value is null count too. A window over it slides in constant time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.count()), pa.record_batch({"v": [1, 2, 3]}))
    [1, 2, 3]
    """
    return Fold("count", constant(0), operation(ACC + 1), None, operation(A + B), operation(ACC - 1))


def min_() -> Fold:
    """The least value.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`; null of nothing.

    Notes
    -----
    State: a value. Nulls are left out. A window over it slides in constant time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.min()), pa.record_batch({"v": [1, 2, 3]}))
    [1, 1, 1]
    """
    return Fold("min", constant(None), operation(ACC.least(X)), None, operation(A.least(B)))


def max_() -> Fold:
    """The greatest value.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`; null of nothing. NaN is above every number.

    Notes
    -----
    State: a value. Nulls are left out. A window over it slides in constant time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.max()), pa.record_batch({"v": [1, 2, 3]}))
    [1, 2, 3]
    """
    return Fold("max", constant(None), operation(ACC.greatest(X)), None, operation(A.greatest(B)))


def avg() -> Fold:
    """The mean of the values.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`; null of nothing.

    Notes
    -----
    State: two numbers. Nulls are left out. A window over it slides in constant time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.avg()), pa.record_batch({"v": [1, 2, 3]}))
    [1.0, 1.5, 2.0]
    """
    n, s = ACC.field("n"), ACC.field("s")
    one, value = when(X.is_null(), 0).otherwise(1), X.coalesce(0)
    both = {"n": A.field("n") + B.field("n"), "s": A.field("s") + B.field("s")}
    return Fold(
        "avg",
        constant({"n": 0, "s": 0}),
        operation({"n": n + one, "s": s + value}),
        ExprOp(s / n),
        operation(both),
        operation({"n": n - one, "s": s - value}),
    )


def stddev() -> Fold:
    """The population's standard deviation, by Welford's method.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`; null of nothing.

    Notes
    -----
    State: three numbers. Nulls are left out. A window over it slides in constant time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.stddev()), pa.record_batch({"v": [1, 3]}))
    [0.0, 1.0]
    """
    n, mean, m2 = (ACC.field(f) for f in ("n", "mean", "m2"))
    grown = mean + (X - mean) / (n + 1)
    step = {
        "n": _unless_null(n + 1, n),
        "mean": _unless_null(grown, mean),
        "m2": _unless_null(m2 + (X - mean) * (X - grown), m2),
    }
    total, shift = A.field("n") + B.field("n"), B.field("mean") - A.field("mean")
    weight = B.field("n") / total
    both = {
        "n": total,
        "mean": when(total > 0, A.field("mean") + shift * weight).otherwise(0.0),
        "m2": when(
            total > 0, A.field("m2") + B.field("m2") + shift * shift * A.field("n") * weight
        ).otherwise(0.0),
    }
    start = constant({"n": 0, "mean": 0.0, "m2": 0.0})
    return Fold("stddev", start, operation(step), ExprOp((m2 / n).sqrt()), operation(both))


def linreg(x: str = "x", y: str = "y") -> Fold:
    """Least squares through points: slope and intercept.

    Parameters
    ----------
    x, y
        The fields of the values that are records.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`: a record ``{slope, intercept}``, with nulls of fewer than
        two points.

    Notes
    -----
    State: five numbers. A window over it slides in constant time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import qre
    >>> items = qre.items(pa.schema([("x", pa.float64()), ("y", pa.float64())]))
    >>> points = qre.iter(qre.atom(items=items), qre.linreg())
    >>> qre.evaluate(points, pa.record_batch({"x": [0.0, 1.0], "y": [1.0, 3.0]}))[-1]
    {'slope': 2.0, 'intercept': 1.0}
    """
    for name in (x, y):
        text("linreg", name, "a field")
    n, mx, my, sxx, sxy = (ACC.field(f) for f in ("n", "mx", "my", "sxx", "sxy"))
    px, py = X.field(x), X.field(y)
    new_x, new_y = mx + (px - mx) / (n + 1), my + (py - my) / (n + 1)
    step = {
        "n": n + 1,
        "mx": new_x,
        "my": new_y,
        "sxx": sxx + (px - mx) * (px - new_x),
        "sxy": sxy + (px - mx) * (py - new_y),
    }
    start = constant({"n": 0, "mx": 0.0, "my": 0.0, "sxx": 0.0, "sxy": 0.0})
    line = operation({"slope": sxy / sxx, "intercept": my - sxy / sxx * mx})
    total = A.field("n") + B.field("n")
    dx, dy = (B.field(f) - A.field(f) for f in ("mx", "my"))
    weight = B.field("n") / total
    both = {
        "mx": A.field("mx") + dx * weight,
        "my": A.field("my") + dy * weight,
        "sxx": A.field("sxx") + B.field("sxx") + dx * dx * A.field("n") * weight,
        "sxy": A.field("sxy") + B.field("sxy") + dx * dy * A.field("n") * weight,
    }
    some = {name: when(total > 0, made).otherwise(0.0) for name, made in both.items()}
    return Fold("linreg", start, operation(step), line, operation({"n": total, **some}))


def discounted(rate: float) -> Fold:
    """The sum of the values, each counting less than the one before.

    Parameters
    ----------
    rate
        What share of its weight each next value has: above 0, at most 1.

    Returns
    -------
    Fold
        ``x0 + rate * x1 + rate**2 * x2 + ...``; 0.0 of nothing.

    Notes
    -----
    State: two numbers. Nulls are left out. A window over it slides in constant time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.discounted(0.5)), pa.record_batch({"v": [1, 2, 3]}))
    [1.0, 2.0, 2.75]
    """
    if not 0 < number("discounted", rate, "0.9") <= 1:
        error = PlanError(f"a discount of {rate} does not lie between 0 and 1.", remedy="Give one like 0.9.")
        raise error.at("discounted", here())
    w, s = ACC.field("w"), ACC.field("s")
    value = X.coalesce(0.0)
    both = {"w": A.field("w") * B.field("w"), "s": A.field("s") + A.field("w") * B.field("s")}
    return Fold(
        "discounted",
        constant({"w": 1.0, "s": 0.0}),
        operation({"w": w * lit(rate), "s": s + w * value}),
        ExprOp(s),
        operation(both),
    )


def interpolated_avg(t: str = "t", v: str = "v") -> Fold:
    """The average of the curve through points, with straight lines between them.

    Parameters
    ----------
    t, v
        The fields of the values that are records: time and height.

    Returns
    -------
    Fold
        For `iter`, `iter1`, `iter_n` and `wnd`: a double; of one point its value, null of none.

    Notes
    -----
    State: five numbers. A window over it slides in constant time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import qre
    >>> items = qre.items(pa.schema([("t", pa.int64()), ("v", pa.float64())]))
    >>> curve = qre.iter(qre.atom(items=items), qre.interpolated_avg())
    >>> qre.evaluate(curve, pa.record_batch({"t": [0, 10, 20], "v": [0.0, 4.0, 4.0]}))
    [0.0, 2.0, 3.0]
    """
    for name in (t, v):
        text("interpolated_avg", name, "a field")
    first, last, value, area = (ACC.field(f) for f in ("first", "last", "value", "area"))
    gap, mean_ = B.field("first") - A.field("last"), (A.field("value") + B.field("opening")) / 2.0
    both = {
        "first": A.field("first").coalesce(B.field("first")),
        "opening": A.field("opening").coalesce(B.field("opening")),
        "last": B.field("last").coalesce(A.field("last")),
        "value": B.field("value").coalesce(A.field("value")),
        "area": A.field("area") + B.field("area") + (gap * mean_).coalesce(0.0),
    }
    now, here = X.field(t) * 1.0, X.field(v) * 1.0
    grown = area + (now - last) * (here + value) / 2.0
    step = {
        "first": first.coalesce(now),
        "opening": ACC.field("opening").coalesce(here),
        "last": now,
        "value": here,
        "area": when(last.is_null(), 0.0).otherwise(grown),
    }
    start = constant({"first": None, "opening": None, "last": None, "value": None, "area": 0.0})
    mean = when(last > first, area / (last - first)).otherwise(value)
    return Fold("interpolated_avg", start, operation(step), ExprOp(mean), operation(both))


def _unless_null(then: Expr, otherwise: Expr) -> Expr:
    return when(X.is_null(), otherwise).otherwise(then)
