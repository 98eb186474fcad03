"""Functions of the parts of a date or timestamp: its year, hour, day of the week.

>>> year("ts"), week_of_year("d")
(Expr(year(ts)), Expr(weekofyear(d)))
"""

from __future__ import annotations

from caesura.expr.nodes import Expr, as_column

__all__ = [
    "day",
    "day_of_week",
    "day_of_year",
    "hour",
    "last_day",
    "minute",
    "month",
    "quarter",
    "second",
    "week_of_year",
    "weekday",
    "year",
]


def day(x: object) -> Expr:
    """The day of the month, from 1.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.day("d"), d=[dt.date(2024, 5, 17), None])
    [17, None]
    """
    return as_column(x).day()


def day_of_week(x: object) -> Expr:
    """The day of the week, from 1 for Sunday to 7 for Saturday.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    See Also
    --------
    functions.weekday : from 0 for Monday on.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.day_of_week("d"), d=[dt.date(2024, 5, 17), None])
    [6, None]
    """
    return as_column(x).day_of_week()


def day_of_year(x: object) -> Expr:
    """The day of the year, from 1.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.day_of_year("d"), d=[dt.date(2024, 5, 17), None])
    [138, None]
    """
    return as_column(x).day_of_year()


def hour(x: object) -> Expr:
    """The hour, from 0 to 23.

    Parameters
    ----------
    x
        A column's name, or an expression: timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.hour("t"), t=[dt.datetime(2024, 5, 17, 10, 20, 30), None])
    [10, None]
    """
    return as_column(x).hour()


def last_day(x: object) -> Expr:
    """The last day of the month.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``date``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.last_day("d"), d=[dt.date(2024, 2, 3), None])
    [datetime.date(2024, 2, 29), None]
    """
    return as_column(x).last_day()


def minute(x: object) -> Expr:
    """The minute, from 0 to 59.

    Parameters
    ----------
    x
        A column's name, or an expression: timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.minute("t"), t=[dt.datetime(2024, 5, 17, 10, 20, 30), None])
    [20, None]
    """
    return as_column(x).minute()


def month(x: object) -> Expr:
    """The month, from 1 to 12.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.month("d"), d=[dt.date(2024, 5, 17), None])
    [5, None]
    """
    return as_column(x).month()


def quarter(x: object) -> Expr:
    """The quarter of the year, from 1 to 4.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.quarter("d"), d=[dt.date(2024, 5, 17), None])
    [2, None]
    """
    return as_column(x).quarter()


def second(x: object) -> Expr:
    """The second, from 0 to 59.

    Parameters
    ----------
    x
        A column's name, or an expression: timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.second("t"), t=[dt.datetime(2024, 5, 17, 10, 20, 30), None])
    [30, None]
    """
    return as_column(x).second()


def week_of_year(x: object) -> Expr:
    """The week of the year, from 1.

    Weeks begin on Monday, and the first has at least four days of its year.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.week_of_year("d"), d=[dt.date(2024, 12, 30), None])
    [1, None]
    """
    return as_column(x).week_of_year()


def weekday(x: object) -> Expr:
    """The day of the week, from 0 for Monday to 6 for Sunday.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    See Also
    --------
    functions.day_of_week : from 1 for Sunday on.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.weekday("d"), d=[dt.date(2024, 5, 17), None])
    [4, None]
    """
    return as_column(x).weekday()


def year(x: object) -> Expr:
    """The year of the date.

    Parameters
    ----------
    x
        A column's name, or an expression: dates or timestamps.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import datetime as dt
    >>> from caesura.testing import values
    >>> values(F.year("d"), d=[dt.date(2024, 5, 17), None])
    [2024, None]
    """
    return as_column(x).year()
