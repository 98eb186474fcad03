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
    """The value so many rows before the last row, or before that of `first` or `last`.

    Parameters
    ----------
    value
        A column, an expression, or what `first` or `last` give.
    by
        How many rows before.

    Returns
    -------
    Expr
        For conditions and measures of ``match_rows``; null where there is no such row.

    See Also
    --------
    caesura.api.matched.next : a value of a later row.
    caesura.Stream.match_rows : rows that match a pattern.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col, matched
    >>> prices = cz.from_rows([{"t": t, "v": v} for t, v in enumerate([5, 3, 6])], time="t")
    >>> falling = {"DOWN": col("v") < matched.prev("v")}
    >>> falls = prices.match_rows("A DOWN", define=falling, measures={"v": col("v")})
    >>> print(falls.run())
     LE  RE | v |
      1  2  | 3 | +
    """
    return _moved("prev", value, -_count("prev", by))


@checked
def next(value: str | Expr, by: int = 1) -> Expr:
    """The value so many rows behind the last row, or behind that of `first` or `last`.

    Parameters
    ----------
    value
        A column, an expression, or what `first` or `last` give.
    by
        How many rows behind.

    Returns
    -------
    Expr
        For conditions and measures of ``match_rows``; null where there is no such row.

    See Also
    --------
    caesura.api.matched.prev : a value of an earlier row.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col, matched
    >>> prices = cz.from_rows([{"t": t, "v": v} for t, v in enumerate([5, 3, 6])], time="t")
    >>> low = prices.match_rows("A LOW", measures={"low": col("v"), "then": matched.next("v")})
    >>> print(low.run())
     LE  RE | low then |
      1  2  | 3   6    | +
    """
    return _moved("next", value, _count("next", by))


@checked
def first(value: str | Expr, by: int = 0) -> Expr:
    """The value of the first row of a match, or of a variable.

    Parameters
    ----------
    value
        A column or an expression; ``"UP.price"`` is of the rows of UP.
    by
        How many rows behind the first.

    Returns
    -------
    Expr
        For conditions and measures of ``match_rows``; null where there is no such row.

    See Also
    --------
    caesura.api.matched.last : the last row.
    caesura.Stream.match_rows : rows that match a pattern.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col, matched
    >>> prices = cz.from_rows([{"t": t, "v": v} for t, v in enumerate([5, 6, 7])], time="t")
    >>> rising = {"UP": col("v") > 5}
    >>> rises = prices.match_rows("A UP+", define=rising, measures={"one": matched.first("UP.v")})
    >>> print(rises.run())
     LE  RE | one |
      2  3  | 6   | +
    """
    return MatchValue(Navigation(_value("first", value), first=True, by=_count("first", by)))


@checked
def last(value: str | Expr, by: int = 0) -> Expr:
    """The value of the last row of a match, or of a variable.

    Parameters
    ----------
    value
        A column or an expression; ``"UP.price"`` is of the rows of UP.
    by
        How many rows before the last.

    Returns
    -------
    Expr
        For conditions and measures of ``match_rows``; null where there is no such row.

    See Also
    --------
    caesura.api.matched.first : the first row.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col, matched
    >>> prices = cz.from_rows([{"t": t, "v": v} for t, v in enumerate([5, 6, 7])], time="t")
    >>> rising = {"UP": col("v") > 5}
    >>> rises = prices.match_rows("A UP+", define=rising, measures={"v": matched.last("UP.v", 1)})
    >>> print(rises.run())
     LE  RE | v |
      2  3  | 6 | +
    """
    return MatchValue(Navigation(_value("last", value), by=_count("last", by)))


@checked
def classifier(of: str = "") -> Expr:
    """The name of the variable that the last row is matched to.

    Parameters
    ----------
    of
        Of all rows, or of those of one variable or subset.

    Returns
    -------
    Expr
        For conditions and measures of ``match_rows``; a text.

    See Also
    --------
    caesura.api.matched.number : the number of the match.
    caesura.api.matched.final : a value as the match ends.
    caesura.Stream.match_rows : rows that match a pattern.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col, matched
    >>> prices = cz.from_rows([{"t": t, "v": v} for t, v in enumerate([5, 6])], time="t")
    >>> named = prices.match_rows("A UP", measures={"is": matched.classifier()}, rows="all")
    >>> print(named.run())
     LE  RE | v is |
      0  1  | 5 A  | +
      1  2  | 6 UP | +
    """
    return MatchValue(Navigation(None, (of,) if of else ()))


def number() -> Expr:
    """How many matches its group has had, with this one.

    Returns
    -------
    Expr
        For measures of ``match_rows``; a whole number from 1 on.

    See Also
    --------
    caesura.api.matched.classifier : the variable of a row.
    caesura.api.matched.final : a value as the match ends.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import matched
    >>> prices = cz.from_rows([{"t": t, "v": v} for t, v in enumerate([5, 6, 7, 8])], time="t")
    >>> print(prices.match_rows("A B", measures={"n": matched.number()}).run())
     LE  RE | n |
      1  2  | 1 | +
      3  4  | 2 | +
    """
    return MatchValue(None)


@checked
def final(value: Expr | Aggregate) -> Expr:
    """A value as the match ends, where all its rows are shown.

    Parameters
    ----------
    value
        What `first` or `last` give, or an aggregate.

    Returns
    -------
    Expr
        For measures of ``match_rows``: the same in all rows of a match.

    See Also
    --------
    caesura.api.matched.classifier : the variable of a row.
    caesura.api.matched.number : the number of the match.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import matched
    >>> prices = cz.from_rows([{"t": t, "v": v} for t, v in enumerate([5, 6])], time="t")
    >>> counted = {"so_far": cz.count(), "all": matched.final(cz.count())}
    >>> print(prices.match_rows("A B", measures=counted, rows="all").run())
     LE  RE | v so_far all |
      0  1  | 5 1      2   | +
      1  2  | 6 2      2   | +
    """
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
