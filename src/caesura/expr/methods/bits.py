"""What is asked of the bits of whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class BitMethods:
    """What is asked of the bits of whole numbers."""

    def bit_and(self, other: object) -> Expr:
        """The bits that both whole numbers have.

        Parameters
        ----------
        other
            A whole number, or an expression of whole numbers.

        Returns
        -------
        Expr
            The wider type of the two; null where either is null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").bit_and(6), a=[3, 12, None])
        [2, 4, None]
        """
        return nodes.apply("bit_and", self, other)

    def bit_or(self, other: object) -> Expr:
        """The bits that at least one of two whole numbers has.

        Parameters
        ----------
        other
            A whole number, or an expression of whole numbers.

        Returns
        -------
        Expr
            The wider type of the two; null where either is null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").bit_or(6), a=[3, 8, None])
        [7, 14, None]
        """
        return nodes.apply("bit_or", self, other)

    def bit_xor(self, other: object) -> Expr:
        """The bits that exactly one of two whole numbers has.

        Parameters
        ----------
        other
            A whole number, or an expression of whole numbers.

        Returns
        -------
        Expr
            The wider type of the two; null where either is null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").bit_xor(6), a=[3, 8, None])
        [5, 14, None]
        """
        return nodes.apply("bit_xor", self, other)

    def shift_left(self, by: object) -> Expr:
        """The bits moved up so many places: ``lit(1).shift_left(n)`` is the n-th bit, n from 0 to 62.

        Parameters
        ----------
        by
            How many places: a whole number, or an expression.

        Returns
        -------
        Expr
            ``bigint``; null where either is null. A row whose answer the type cannot hold is refused;
            Spark drops the bits that fall off.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").shift_left(3), a=[1, 5, None])
        [8, 40, None]
        """
        return nodes.apply("shift_left", self, by)
