"""Functions that make, read, move and cut dates and timestamps.

>>> date_trunc("hour", "ts"), trunc("d", "month")
(Expr(date_trunc('HOUR', ts)), Expr(CAST(date_trunc('MONTH', d) AS DATE)))
"""

from __future__ import annotations

from caesura.expr.durations import Duration
from caesura.expr.nodes import Expr, as_column

__all__ = [
    "add_months",
    "date_add",
    "date_diff",
    "date_format",
    "date_sub",
    "date_trunc",
    "from_unixtime",
    "minus_time",
    "plus_time",
    "timestamp_micros",
    "to_date",
    "to_timestamp",
    "trunc",
    "try_to_timestamp",
    "unix_micros",
    "unix_timestamp",
]

SECONDS = "yyyy-MM-dd HH:mm:ss"


def add_months(x: object, months: object) -> Expr:
    """The same day so many months later, or the last of a shorter month.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.
    months
        How many: a whole number or an expression; for the function also a column's name.

    Returns
    -------
    Expr
        ``date``; null where either is null. A row whose day no date can hold is refused; Spark wraps
        round.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.add_months("d", 1), d=[dt.date(2024, 1, 31), None])
    [datetime.date(2024, 2, 29), None]
    """
    return as_column(x).add_months(as_column(months))


def date_add(x: object, days: object) -> Expr:
    """The date so many days later.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.
    days
        How many: a whole number or an expression; for the function also a column's name.

    Returns
    -------
    Expr
        ``date``; null where either is null. A row whose day no date can hold is refused; Spark wraps
        round.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.date_add("d", 20), d=[dt.date(2024, 5, 17), None])
    [datetime.date(2024, 6, 6), None]
    """
    return as_column(x).date_add(as_column(days))


def date_diff(end: object, start: object) -> Expr:
    """The days from one date to another.

    Parameters
    ----------
    end, start
        To this date from that one: columns' names, expressions or dates.

    Returns
    -------
    Expr
        ``int``; null where either is null, negative where the start is later.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.date_diff("d", dt.date(2024, 5, 1)), d=[dt.date(2024, 5, 17), None])
    [16, None]
    """
    return as_column(end).date_diff(as_column(start))


def date_format(x: object, format: str) -> Expr:
    """The time as a text.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.
    format
        Spark's letters ``y M L d D Q q E a H h K k m s S``, by which the text is written.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.date_format("d", "EEE dd/MM/yyyy"), d=[dt.date(2024, 5, 17), None])
    ['Fri 17/05/2024', None]
    """
    return as_column(x).date_format(format)


def date_sub(x: object, days: object) -> Expr:
    """The date so many days earlier.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.
    days
        How many: a whole number or an expression; for the function also a column's name.

    Returns
    -------
    Expr
        ``date``; null where either is null. A row whose day no date can hold is refused; Spark wraps
        round.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.date_sub("d", 20), d=[dt.date(2024, 5, 17), None])
    [datetime.date(2024, 4, 27), None]
    """
    return as_column(x).date_sub(as_column(days))


def date_trunc(unit: str, x: object) -> Expr:
    """The start of the year, month, hour, ... that a time falls in.

    Parameters
    ----------
    unit
        ``"year"``, ``"quarter"``, ``"month"``, ``"week"``, ``"day"``, ``"hour"``, ``"minute"``,
        ``"second"``, ``"millisecond"`` or ``"microsecond"``. The function takes it first, as in Spark.
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``timestamp``; null for null. Weeks begin on Monday.

    See Also
    --------
    functions.trunc : a date for the answer.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.date_trunc("hour", "t"), t=[dt.datetime(2024, 5, 17, 10, 20), None])
    [datetime.datetime(2024, 5, 17, 10, 0), None]
    """
    return as_column(x).date_trunc(unit)


def from_unixtime(x: object, format: str = SECONDS) -> Expr:
    """Seconds since 1970 as a text.

    Parameters
    ----------
    x
        A column's name, or an expression: whole numbers.
    format
        Spark's letters ``y M L d D Q q E a H h K k m s S``, by which the text is written.

    Returns
    -------
    Expr
        ``string``; null for null.

    See Also
    --------
    functions.unix_timestamp : the inverse.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.from_unixtime("a"), a=[86400, None])
    ['1970-01-02 00:00:00', None]
    """
    return as_column(x).cast("timestamp").date_format(format)


def minus_time(x: object, duration: Duration) -> Expr:
    """A timestamp or date moved earlier.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.
    duration
        A text such as ``"1h 30m"`` (units us, ms, s, m, h, d, w), or a timedelta.

    Returns
    -------
    Expr
        ``timestamp``; a date moved by whole days stays a date. Null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.minus_time("t", "1h 30m"), t=[dt.datetime(2024, 5, 17, 10), None])
    [datetime.datetime(2024, 5, 17, 8, 30), None]
    """
    return as_column(x).minus_time(duration)


def plus_time(x: object, duration: Duration) -> Expr:
    """A timestamp or date moved later.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.
    duration
        A text such as ``"1h 30m"`` (units us, ms, s, m, h, d, w), or a timedelta.

    Returns
    -------
    Expr
        ``timestamp``; a date moved by whole days stays a date. Null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.plus_time("t", "1h 30m"), t=[dt.datetime(2024, 5, 17, 10), None])
    [datetime.datetime(2024, 5, 17, 11, 30), None]
    """
    return as_column(x).plus_time(duration)


def timestamp_micros(x: object) -> Expr:
    """The timestamp so many microseconds after 1970.

    Parameters
    ----------
    x
        A column's name, or an expression: whole numbers.

    Returns
    -------
    Expr
        ``timestamp``; null for null.

    See Also
    --------
    functions.unix_micros : the inverse.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.timestamp_micros("a"), a=[2_000_000, None])
    [datetime.datetime(1970, 1, 1, 0, 0, 2), None]
    """
    return as_column(x).timestamp_micros()


def to_date(x: object, format: str | None = None) -> Expr:
    """The value as a date; a row whose value is none is refused.

    Parameters
    ----------
    x
        A column's name, or an expression: texts, dates or timestamps.
    format
        Spark's letters ``y M L d H h K k m s S a``, by which a text is read; without it texts are read as
        ``cast`` does.

    Returns
    -------
    Expr
        ``date``; null for null.

    See Also
    --------
    functions.try_cast : ``try_cast("date")`` is null for such a value.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.to_date("s", "dd/MM/yyyy"), s=["17/05/2024", None])
    [datetime.date(2024, 5, 17), None]
    """
    return as_column(x).to_date(format)


def to_timestamp(x: object, format: str | None = None) -> Expr:
    """The value as a timestamp; a row whose value is none is refused.

    Parameters
    ----------
    x
        A column's name, or an expression: texts, dates or timestamps.
    format
        Spark's letters ``y M L d H h K k m s S a``, by which a text is read; without it texts are read as
        ``cast`` does.

    Returns
    -------
    Expr
        ``timestamp``; null for null.

    See Also
    --------
    functions.try_to_timestamp : null for such a value.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.to_timestamp("s", "dd/MM/yyyy HH:mm"), s=["17/05/2024 10:20", None])
    [datetime.datetime(2024, 5, 17, 10, 20), None]
    """
    return as_column(x).to_timestamp(format)


def trunc(x: object, unit: str) -> Expr:
    """The first day of the year, quarter, month or week.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.
    unit
        ``"year"``, ``"quarter"``, ``"month"`` or ``"week"``.

    Returns
    -------
    Expr
        ``date``; null for null. Weeks begin on Monday.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.trunc("d", "month"), d=[dt.date(2024, 5, 17), None])
    [datetime.date(2024, 5, 1), None]
    """
    return as_column(x).date_trunc(unit).cast("date")


def try_to_timestamp(x: object, format: str | None = None) -> Expr:
    """The value as a timestamp, or null where it is none.

    Parameters
    ----------
    x
        A column's name, or an expression: texts, dates or timestamps.
    format
        Spark's letters ``y M L d H h K k m s S a``, by which a text is read; without it texts are read as
        ``cast`` does.

    Returns
    -------
    Expr
        ``timestamp``; null for null.

    See Also
    --------
    functions.to_timestamp : such a row is refused.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.try_to_timestamp("s", "dd/MM/yyyy"), s=["17/05/2024", "soon", None])
    [datetime.datetime(2024, 5, 17, 0, 0), None, None]
    """
    return as_column(x).try_to_timestamp(format)


def unix_micros(x: object) -> Expr:
    """Microseconds since 1970.

    Parameters
    ----------
    x
        A column's name, or an expression: timestamps.

    Returns
    -------
    Expr
        ``bigint``; null for null.

    See Also
    --------
    functions.timestamp_micros : the inverse.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.unix_micros("t"), t=[dt.datetime(1970, 1, 1, 0, 0, 2), None])
    [2000000, None]
    """
    return as_column(x).unix_micros()


def unix_timestamp(x: object, format: str | None = None) -> Expr:
    """Whole seconds since 1970; a part of one is cut off.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps, or texts with a format.
    format
        Spark's letters, by which a text is read: ``"dd/MM/yyyy HH:mm"``.

    Returns
    -------
    Expr
        ``bigint``; null for null. A row whose text is no time is refused.

    See Also
    --------
    functions.from_unixtime : the inverse, as a text.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.unix_timestamp("t"), t=[dt.datetime(1970, 1, 2), None])
    [86400, None]
    >>> values(F.unix_timestamp("s", "dd/MM/yyyy"), s=["02/01/1970", None])
    [86400, None]
    """
    return as_column(x).unix_timestamp(format)
