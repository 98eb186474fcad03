"""Functions that give null where others refuse the row: ``try_add``, ``try_cast``.

>>> try_divide("a", "b"), try_cast("a", "int")
(Expr(try_divide(a, b)), Expr(TRY_CAST(a AS INT)))
"""

from __future__ import annotations

import pyarrow as pa

from caesura.expr.nodes import Expr, as_column

__all__ = [
    "try_add",
    "try_cast",
    "try_divide",
    "try_mod",
    "try_multiply",
    "try_subtract",
]


def try_add(x: object, y: object) -> Expr:
    """The sum, or null where the type cannot hold it.

    Parameters
    ----------
    x, y
        Columns' names, expressions or numbers.

    Returns
    -------
    Expr
        The type that ``+`` gives; null where either is null, or where ``+`` would refuse the row.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.try_add("a", 1), a=[1, 2**63 - 1, None])
    [2, None, None]
    """
    return as_column(x).try_add(as_column(y))


def try_cast(x: object, type: pa.DataType | str) -> Expr:
    """The value as another type, or null where it cannot be converted.

    Parameters
    ----------
    x
        A column's name, or an expression: values of any type.
    type
        A type of Arrow, or its Spark name: ``"int"``, ``"timestamp"``, ``"decimal(10,2)"``.

    Returns
    -------
    Expr
        The type that is named; null for null.

    See Also
    --------
    Expr.cast : such a row is refused.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.try_cast("a", "int"), a=["7", "x", None])
    [7, None, None]
    """
    return as_column(x).try_cast(type)


def try_divide(x: object, y: object) -> Expr:
    """The quotient, or null where the divisor is zero.

    Parameters
    ----------
    x, y
        Columns' names, expressions or numbers.

    Returns
    -------
    Expr
        ``double``, or a decimal of decimals; null where either is null or the divisor is zero, as ``/``
        gives here and Spark's does not.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.try_divide("a", "b"), a=[6, 6, None], b=[4, 0, 2])
    [1.5, None, None]
    """
    return as_column(x).try_divide(as_column(y))


def try_mod(x: object, y: object) -> Expr:
    """The remainder, or null where the divisor is zero.

    Parameters
    ----------
    x, y
        Columns' names, expressions or numbers.

    Returns
    -------
    Expr
        The type that ``%`` gives, with the sign of the dividend; null where either is null or the divisor
        is zero.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.try_mod("a", 4), a=[7, -7, None])
    [3, -3, None]
    """
    return as_column(x).try_mod(as_column(y))


def try_multiply(x: object, y: object) -> Expr:
    """The product, or null where the type cannot hold it.

    Parameters
    ----------
    x, y
        Columns' names, expressions or numbers.

    Returns
    -------
    Expr
        The type that ``*`` gives; null where either is null, or where ``*`` would refuse the row.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.try_multiply("a", 4), a=[5, 2**62, None])
    [20, None, None]
    """
    return as_column(x).try_multiply(as_column(y))


def try_subtract(x: object, y: object) -> Expr:
    """The difference, or null where the type cannot hold it.

    Parameters
    ----------
    x, y
        Columns' names, expressions or numbers.

    Returns
    -------
    Expr
        The type that ``-`` gives; null where either is null, or where ``-`` would refuse the row.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.try_subtract("a", 1), a=[1, -(2**63), None])
    [0, None, None]
    """
    return as_column(x).try_subtract(as_column(y))
