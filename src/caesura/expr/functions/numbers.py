"""Functions of numbers, under the names Spark users know; text names a column.

>>> round("price", 2), sqrt("a")
(Expr(round(price, 2)), Expr(sqrt(a)))
"""

from __future__ import annotations

from caesura.expr.nodes import Expr, as_column, when

__all__ = [
    "abs",
    "bround",
    "ceil",
    "exp",
    "floor",
    "ln",
    "log2",
    "log10",
    "pmod",
    "power",
    "round",
    "shiftleft",
    "sign",
    "sqrt",
]


def abs(x: object) -> Expr:
    """The value without its sign.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        The type of its argument; null for null. A row whose value has no positive counterpart, such as
        the least bigint, is refused.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.abs("a"), a=[-3, 4, None])
    [3, 4, None]
    """
    return as_column(x).abs()


def bround(x: object, digits: int = 0) -> Expr:
    """The value rounded to so many digits, a half to the even neighbour.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.
    digits
        How many digits behind the point are kept; negative ones round to tens, hundreds.

    Returns
    -------
    Expr
        The type of its argument, with so many digits for decimals; null for null.

    See Also
    --------
    functions.round : a half goes away from zero.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.bround("a"), a=[2.5, 3.5, None])
    [2.0, 4.0, None]
    """
    return as_column(x).bround(digits)


def ceil(x: object) -> Expr:
    """The least whole number that is not less.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        ``bigint``, or a decimal of decimals; null for null. A row whose answer the type cannot hold is
        refused, also NaN, for which Spark gives 0.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.ceil("a"), a=[1.2, -1.2, None])
    [2, -1, None]
    """
    return as_column(x).ceil()


def exp(x: object) -> Expr:
    """The number e raised to this power.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        ``double``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.exp("a"), a=[0.0, 1.0, None])
    [1.0, 2.718281828459045, None]
    """
    return as_column(x).exp()


def floor(x: object) -> Expr:
    """The greatest whole number that is not greater.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        ``bigint``, or a decimal of decimals; null for null. A row whose answer the type cannot hold is
        refused, also NaN, for which Spark gives 0.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.floor("a"), a=[1.8, -1.2, None])
    [1, -2, None]
    """
    return as_column(x).floor()


def ln(x: object) -> Expr:
    """The natural logarithm.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        ``double``; null for null, and for numbers that are not above zero.

    See Also
    --------
    functions.log10, functions.log2 : to other bases.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.ln("a"), a=[1.0, 0.0, None])
    [0.0, None, None]
    """
    return as_column(x).ln()


def log10(x: object) -> Expr:
    """The logarithm to the base 10.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        ``double``; null for null, and for numbers that are not above zero.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.log10("a"), a=[1000.0, 0.0, None])
    [3.0, None, None]
    """
    return as_column(x).log10()


def log2(x: object) -> Expr:
    """The logarithm to the base 2.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        ``double``; null for null, and for numbers that are not above zero.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.log2("a"), a=[8.0, -1.0, None])
    [3.0, None, None]
    """
    return as_column(x).log2()


def pmod(x: object, y: object) -> Expr:
    """The remainder that is not below zero, for a divisor above it.

    Parameters
    ----------
    x
        What is divided: a column's name, or an expression.
    y
        What it is divided by: a column's name, an expression or a number.

    Returns
    -------
    Expr
        The type that ``x % y`` has; null where either is null or the divisor is zero. Spark refuses a
        zero.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.pmod("a", 5), a=[7, -7, None])
    [2, 3, None]
    """
    by = as_column(y)
    rest = as_column(x) % by
    return when(rest < 0, (rest + by) % by).otherwise(rest)


def power(x: object, exponent: object) -> Expr:
    """The value raised to the power of an exponent.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.
    exponent
        A number, or an expression; for the function also a column's name.

    Returns
    -------
    Expr
        ``double``; null where either is null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.power("a", 2), a=[3, None])
    [9.0, None]
    """
    return as_column(x).power(as_column(exponent))


def round(x: object, digits: int = 0) -> Expr:
    """The value rounded to so many digits, a half away from zero.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.
    digits
        How many digits behind the point are kept; negative ones round to tens, hundreds.

    Returns
    -------
    Expr
        The type of its argument, with so many digits for decimals; null for null. A row whose answer the
        type cannot hold is refused.

    See Also
    --------
    functions.bround : a half goes to the even neighbour.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.round("a", 1), a=[2.25, -2.25, None])
    [2.3, -2.3, None]
    >>> values(F.round("a", -1), a=[15, None])
    [20, None]
    """
    return as_column(x).round(digits)


def shiftleft(x: object, by: object) -> Expr:
    """The bits of a whole number moved up so many places.

    Parameters
    ----------
    x
        A column's name, or an expression: whole numbers.
    by
        How many places: a number, a column's name or an expression.

    Returns
    -------
    Expr
        ``bigint``; null where either is null. A row whose answer the type cannot hold is refused; Spark
        drops the bits that fall off.

    See Also
    --------
    Expr.shift_left : the same, behind a column.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.shiftleft("a", 3), a=[1, 5, None])
    [8, 40, None]
    """
    return as_column(x).shift_left(as_column(by))


def sign(x: object) -> Expr:
    """-1.0, 0.0 or 1.0, as the value is below, at or above zero.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        ``double``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.sign("a"), a=[-3, 0, 7, None])
    [-1.0, 0.0, 1.0, None]
    """
    return as_column(x).sign()


def sqrt(x: object) -> Expr:
    """The square root.

    Parameters
    ----------
    x
        A column's name, or an expression: numbers.

    Returns
    -------
    Expr
        ``double``; NaN below zero, null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.sqrt("a"), a=[9.0, -1.0, None])
    [3.0, nan, None]
    """
    return as_column(x).sqrt()
