"""What is asked of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.expr.methods.bits import BitMethods
from caesura.misuse import checked_methods, strict

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class NumberMethods(BitMethods):
    """What is asked of numbers, and of the bits of whole ones."""

    def try_add(self, other: object) -> Expr:
        """The sum, or null where the type cannot hold it.

        Parameters
        ----------
        other
            A number, or an expression of numbers.

        Returns
        -------
        Expr
            The type that ``+`` gives; null where either is null, or where ``+`` would refuse the row.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").try_add(1), a=[1, 2**63 - 1, None])
        [2, None, None]
        """
        return nodes.apply("try_add", self, other)

    def try_subtract(self, other: object) -> Expr:
        """The difference, or null where the type cannot hold it.

        Parameters
        ----------
        other
            A number, or an expression of numbers.

        Returns
        -------
        Expr
            The type that ``-`` gives; null where either is null, or where ``-`` would refuse the row.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").try_subtract(1), a=[1, -(2**63), None])
        [0, None, None]
        """
        return nodes.apply("try_subtract", self, other)

    def try_multiply(self, other: object) -> Expr:
        """The product, or null where the type cannot hold it.

        Parameters
        ----------
        other
            A number, or an expression of numbers.

        Returns
        -------
        Expr
            The type that ``*`` gives; null where either is null, or where ``*`` would refuse the row.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").try_multiply(4), a=[5, 2**62, None])
        [20, None, None]
        """
        return nodes.apply("try_multiply", self, other)

    def try_divide(self, other: object) -> Expr:
        """The quotient, or null where the divisor is zero.

        Parameters
        ----------
        other
            A number, or an expression of numbers.

        Returns
        -------
        Expr
            ``double``, or a decimal of decimals; null where either is null or the divisor is zero, as
            ``/`` gives here and Spark's does not.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").try_divide(col("b")), a=[6, 6, None], b=[4, 0, 2])
        [1.5, None, None]
        """
        return nodes.apply("try_divide", self, other)

    def try_mod(self, other: object) -> Expr:
        """The remainder, or null where the divisor is zero.

        Parameters
        ----------
        other
            A number, or an expression of numbers.

        Returns
        -------
        Expr
            The type that ``%`` gives, with the sign of the dividend; null where either is null or the
            divisor is zero.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").try_mod(4), a=[7, -7, None])
        [3, -3, None]
        """
        return nodes.apply("try_remainder", self, other)

    def abs(self) -> Expr:
        """The value without its sign.

        Returns
        -------
        Expr
            The type of its argument; null for null. A row whose value has no positive counterpart, such
            as the least bigint, is refused.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").abs(), a=[-3, 4, None])
        [3, 4, None]
        """
        return nodes.apply("abs", self)

    @strict
    def round(self, digits: int = 0) -> Expr:
        """The value rounded to so many digits, a half away from zero.

        Parameters
        ----------
        digits
            How many digits behind the point are kept; negative ones round to tens, hundreds.

        Returns
        -------
        Expr
            The type of its argument, with so many digits for decimals; null for null. A row whose answer
            the type cannot hold is refused.

        See Also
        --------
        Expr.bround : a half goes to the even neighbour.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").round(1), a=[2.25, -2.25, None])
        [2.3, -2.3, None]
        >>> values(col("a").round(-1), a=[15, None])
        [20, None]
        """
        return nodes.apply("round", self, options=(nodes.whole_number("round", digits),))

    @strict
    def bround(self, digits: int = 0) -> Expr:
        """The value rounded to so many digits, a half to the even neighbour.

        Parameters
        ----------
        digits
            How many digits behind the point are kept; negative ones round to tens, hundreds.

        Returns
        -------
        Expr
            The type of its argument, with so many digits for decimals; null for null.

        See Also
        --------
        Expr.round : a half goes away from zero.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").bround(), a=[2.5, 3.5, None])
        [2.0, 4.0, None]
        """
        return nodes.apply("bround", self, options=(nodes.whole_number("bround", digits),))

    def isnan(self) -> Expr:
        """Whether the value is NaN.

        Returns
        -------
        Expr
            ``boolean``; false for null, as in Spark.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").isnan(), a=[float("nan"), 1.0, None])
        [True, False, False]
        """
        return nodes.apply("isnan", self)

    def log10(self) -> Expr:
        """The logarithm to the base 10.

        Returns
        -------
        Expr
            ``double``; null for null, and for numbers that are not above zero.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").log10(), a=[1000.0, 0.0, None])
        [3.0, None, None]
        """
        return nodes.apply("log10", self)

    def log2(self) -> Expr:
        """The logarithm to the base 2.

        Returns
        -------
        Expr
            ``double``; null for null, and for numbers that are not above zero.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").log2(), a=[8.0, -1.0, None])
        [3.0, None, None]
        """
        return nodes.apply("log2", self)

    def floor(self) -> Expr:
        """The greatest whole number that is not greater.

        Returns
        -------
        Expr
            ``bigint``, or a decimal of decimals; null for null. A row whose answer the type cannot hold
            is refused, also NaN, for which Spark gives 0.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").floor(), a=[1.8, -1.2, None])
        [1, -2, None]
        """
        return nodes.apply("floor", self)

    def ceil(self) -> Expr:
        """The least whole number that is not less.

        Returns
        -------
        Expr
            ``bigint``, or a decimal of decimals; null for null. A row whose answer the type cannot hold
            is refused, also NaN, for which Spark gives 0.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").ceil(), a=[1.2, -1.2, None])
        [2, -1, None]
        """
        return nodes.apply("ceil", self)

    def sqrt(self) -> Expr:
        """The square root.

        Returns
        -------
        Expr
            ``double``; NaN below zero, null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").sqrt(), a=[9.0, -1.0, None])
        [3.0, nan, None]
        """
        return nodes.apply("sqrt", self)

    def exp(self) -> Expr:
        """The number e raised to this power.

        Returns
        -------
        Expr
            ``double``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").exp(), a=[0.0, 1.0, None])
        [1.0, 2.718281828459045, None]
        """
        return nodes.apply("exp", self)

    def ln(self) -> Expr:
        """The natural logarithm.

        Returns
        -------
        Expr
            ``double``; null for null, and for numbers that are not above zero.

        See Also
        --------
        Expr.log10, Expr.log2 : to other bases.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").ln(), a=[1.0, 0.0, None])
        [0.0, None, None]
        """
        return nodes.apply("ln", self)

    def power(self, exponent: object) -> Expr:
        """The value raised to the power of an exponent.

        Parameters
        ----------
        exponent
            A number, or an expression; for the function also a column's name.

        Returns
        -------
        Expr
            ``double``; null where either is null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").power(2), a=[3, None])
        [9.0, None]
        """
        return nodes.apply("power", self, exponent)

    def sign(self) -> Expr:
        """-1.0, 0.0 or 1.0, as the value is below, at or above zero.

        Returns
        -------
        Expr
            ``double``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").sign(), a=[-3, 0, 7, None])
        [-1.0, 0.0, 1.0, None]
        """
        return nodes.apply("sign", self)

    def greatest(self, *others: object) -> Expr:
        """The greatest of several values that are not null.

        Parameters
        ----------
        *others
            What it is compared with: values or expressions.

        Returns
        -------
        Expr
            The common type of all; null where all are null. NaN is above every number.

        See Also
        --------
        Expr.least : the least of them.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").greatest(col("b"), 2), a=[1, 9, None], b=[5, 1, None])
        [5, 9, 2]
        """
        return nodes.apply("greatest", self, *others)

    def least(self, *others: object) -> Expr:
        """The least of several values that are not null.

        Parameters
        ----------
        *others
            What it is compared with: values or expressions.

        Returns
        -------
        Expr
            The common type of all; null where all are null. NaN is above every number.

        See Also
        --------
        Expr.greatest : the greatest of them.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").least(col("b"), 4), a=[1, 9, None], b=[5, 1, None])
        [1, 1, 4]
        """
        return nodes.apply("least", self, *others)
