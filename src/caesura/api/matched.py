"""What conditions and measures of `match_rows` read of a match, beside columns and aggregates.

``col("UP.price")`` is the value of the last row that is matched to UP, ``cz.avg("UP.price")`` the mean of all
such rows; here are other rows, and the name and the number of a match.

>>> import caesura as cz
>>> cz.matched.prev("price", 2) < cz.col("price")
Expr(`PREV(price, 2)` < price)
"""

from __future__ import annotations

from dataclasses import replace

from caesura.errors import PlanError
from caesura.expr import Expr, as_column
from caesura.expr.nodes import AggregateValue
from caesura.misuse import checked
from caesura.ops.aggregate import Aggregate
from caesura.ops.match.formula import MatchFold, MatchValue, Navigation
from caesura.plan import here

__all__ = ["classifier", "final", "first", "last", "next", "number", "prev"]


@checked
def prev(value: str | Expr, by: int = 1) -> Expr:
    """The value so many rows before the last row, or before that of `first` or `last`."""
    return _moved("prev", value, -_count("prev", by))


@checked
def next(value: str | Expr, by: int = 1) -> Expr:
    """The value so many rows behind the last row, or behind that of `first` or `last`."""
    return _moved("next", value, _count("next", by))


@checked
def first(value: str | Expr, by: int = 0) -> Expr:
    """The value of the first row, or of the one so many behind it: ``first("UP.price")`` of those of UP."""
    return MatchValue(Navigation(_value("first", value), first=True, by=_count("first", by)))


@checked
def last(value: str | Expr, by: int = 0) -> Expr:
    """The value of the last row, or of the one so many before it: ``last("UP.price", 1)``."""
    return MatchValue(Navigation(_value("last", value), by=_count("last", by)))


@checked
def classifier(of: str = "") -> Expr:
    """The variable that the last row is matched to, of all rows or of those of one variable or union."""
    return MatchValue(Navigation(None, (of,) if of else ()))


def number() -> Expr:
    """How many matches its group has had, with this one."""
    return MatchValue(None)


@checked
def final(value: Expr | Aggregate) -> Expr:
    """The same as the match ends, where all its rows are shown: ``final(cz.count())``."""
    if isinstance(value, Aggregate):
        return MatchValue(MatchFold(value, final=True))
    if isinstance(value, AggregateValue):
        return MatchValue(MatchFold(value.aggregate, final=True))
    if not isinstance(value, MatchValue) or value.read is None:
        raise PlanError(
            f"{value!r} is no value of a match.",
            remedy="Write final(cz.matched.last('price')), or final(cz.count()).",
        ).at("final", here())
    return MatchValue(replace(value.read, final=True))


def _moved(step: str, value: str | Expr, move: int) -> Expr:
    if isinstance(value, MatchValue) and isinstance(value.read, Navigation):
        return MatchValue(replace(value.read, move=move))
    return MatchValue(Navigation(_value(step, value), move=move))


def _value(step: str, value: str | Expr) -> Expr:
    made = as_column(value)
    if isinstance(made, MatchValue):
        raise PlanError(
            f"{step}(...) takes a value of rows, not one of a match.",
            remedy="Write it around a column: last('UP.price'); prev and next stand around first and last.",
        ).at(step, here())
    return made


def _count(step: str, by: int) -> int:
    if isinstance(by, bool) or not isinstance(by, int) or by < 0:
        raise PlanError(f"{by!r} is no number of rows.", remedy=f"Write {step}('price', 2).").at(step, here())
    return by
