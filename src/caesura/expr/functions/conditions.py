"""Functions of nulls and conditions: which of several values a row has.

>>> coalesce("a", "b", 0), nvl2("a", 1, 2)
(Expr(coalesce(a, b, 0)), Expr(CASE WHEN a IS NOT NULL THEN 1 ELSE 2 END))
"""

from __future__ import annotations

from caesura.expr.nodes import Expr, as_column, when

__all__ = [
    "coalesce",
    "equal_null",
    "greatest",
    "if_null",
    "is_not_null",
    "is_null",
    "isnan",
    "least",
    "nanvl",
    "nullif",
    "nvl2",
]


def coalesce(first: object, *others: object) -> Expr:
    """The first of several values that is not null.

    Parameters
    ----------
    first, *others
        Columns' names, expressions or values, of one kind.

    Returns
    -------
    Expr
        The common type of all; null where all are null. What stands behind the first value is not asked
        of a row.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.coalesce("a", "b", 0), a=[1, None, None], b=[5, 7, None])
    [1, 7, 0]
    """
    return as_column(first).coalesce(*(as_column(other) for other in others))


def equal_null(x: object, y: object) -> Expr:
    """Whether two values are equal, where two nulls are equal and one is not.

    Parameters
    ----------
    x, y
        Columns' names, expressions or values.

    Returns
    -------
    Expr
        ``boolean``, never null.

    See Also
    --------
    Expr.eq_null_safe : the same, behind a column.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.equal_null("a", "b"), a=[1, 1, None], b=[1, None, None])
    [True, False, True]
    """
    return as_column(x).eq_null_safe(as_column(y))


def greatest(first: object, *others: object) -> Expr:
    """The greatest of several values that are not null.

    Parameters
    ----------
    first, *others
        Columns' names, expressions or values, of one kind.

    Returns
    -------
    Expr
        The common type of all; null where all are null. NaN is above every number.

    See Also
    --------
    functions.least : the least of them.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.greatest("a", "b", 2), a=[1, 9, None], b=[5, 1, None])
    [5, 9, 2]
    """
    return as_column(first).greatest(*(as_column(other) for other in others))


def if_null(x: object, y: object) -> Expr:
    """The other value where this one is null.

    Parameters
    ----------
    x, y
        Columns' names, expressions or values.

    Returns
    -------
    Expr
        The common type of both.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.if_null("a", 0), a=[1, None])
    [1, 0]
    """
    return as_column(x).if_null(as_column(y))


def is_not_null(x: object) -> Expr:
    """Whether there is a value.

    Parameters
    ----------
    x
        A column's name, or an expression: values of any type.

    Returns
    -------
    Expr
        ``boolean``, never null. NaN is a value.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.is_not_null("a"), a=[1, None])
    [True, False]
    """
    return as_column(x).is_not_null()


def is_null(x: object) -> Expr:
    """Whether there is no value.

    Parameters
    ----------
    x
        A column's name, or an expression: values of any type.

    Returns
    -------
    Expr
        ``boolean``, never null. NaN is a value.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.is_null("a"), a=[1, None])
    [False, True]
    """
    return as_column(x).is_null()


def isnan(x: object) -> Expr:
    """Whether the value is NaN.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        ``boolean``; false for null, as in Spark.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.isnan("a"), a=[float("nan"), 1.0, None])
    [True, False, False]
    """
    return as_column(x).isnan()


def least(first: object, *others: object) -> Expr:
    """The least of several values that are not null.

    Parameters
    ----------
    first, *others
        Columns' names, expressions or values, of one kind.

    Returns
    -------
    Expr
        The common type of all; null where all are null. NaN is above every number.

    See Also
    --------
    functions.greatest : the greatest of them.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.least("a", "b", 4), a=[1, 9, None], b=[5, 1, None])
    [1, 1, 4]
    """
    return as_column(first).least(*(as_column(other) for other in others))


def nanvl(x: object, y: object) -> Expr:
    """The other value where this one is NaN.

    Parameters
    ----------
    x, y
        Columns' names, expressions or numbers.

    Returns
    -------
    Expr
        ``double``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.nanvl("a", 0.0), a=[float("nan"), 1.5, None])
    [0.0, 1.5, None]
    """
    return when(as_column(x).isnan(), as_column(y)).otherwise(as_column(x))


def nullif(x: object, y: object) -> Expr:
    """Null where the value equals another.

    Parameters
    ----------
    x, y
        Columns' names, expressions or values.

    Returns
    -------
    Expr
        The type of the first.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.nullif("a", 0), a=[1, 0, None])
    [1, None, None]
    """
    return as_column(x).nullif(as_column(y))


def nvl2(x: object, y: object, z: object) -> Expr:
    """The second value where the first is not null, else the third.

    Parameters
    ----------
    x
        What is looked at: a column's name, or an expression.
    y
        The value where it is not null.
    z
        The value where it is null.

    Returns
    -------
    Expr
        The common type of the second and the third.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.nvl2("a", 1, 2), a=["x", None])
    [1, 2]
    """
    return when(as_column(x).is_not_null(), as_column(y)).otherwise(as_column(z))
