"""What is asked of numbers, and of the bits of whole ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.misuse import checked_methods, strict

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class NumberMethods:
    """What is asked of numbers, and of the bits of whole ones."""

    def try_add(self, other: object) -> Expr:
        """The sum; null where the type cannot hold it."""
        return nodes.apply("try_add", self, other)

    def try_subtract(self, other: object) -> Expr:
        """The difference; null where the type cannot hold it."""
        return nodes.apply("try_subtract", self, other)

    def try_multiply(self, other: object) -> Expr:
        """The product; null where the type cannot hold it."""
        return nodes.apply("try_multiply", self, other)

    def try_divide(self, other: object) -> Expr:
        """The quotient; null where the other is zero or the type cannot hold it."""
        return nodes.apply("try_divide", self, other)

    def try_mod(self, other: object) -> Expr:
        """The remainder; null where the other is zero."""
        return nodes.apply("try_remainder", self, other)

    def abs(self) -> Expr:
        """The value without its sign."""
        return nodes.apply("abs", self)

    @strict
    def round(self, digits: int = 0) -> Expr:
        """Rounded half away from zero."""
        return nodes.apply("round", self, options=(nodes.whole_number("round", digits),))

    @strict
    def bround(self, digits: int = 0) -> Expr:
        """Rounded half to the even neighbour."""
        return nodes.apply("bround", self, options=(nodes.whole_number("bround", digits),))

    def isnan(self) -> Expr:
        """Whether it is NaN; false for null."""
        return nodes.apply("isnan", self)

    def log10(self) -> Expr:
        """The logarithm to the base 10; null where there is none."""
        return nodes.apply("log10", self)

    def log2(self) -> Expr:
        """The logarithm to the base 2; null where there is none."""
        return nodes.apply("log2", self)

    def floor(self) -> Expr:
        """The greatest whole number that is not greater."""
        return nodes.apply("floor", self)

    def ceil(self) -> Expr:
        """The least whole number that is not less."""
        return nodes.apply("ceil", self)

    def sqrt(self) -> Expr:
        """The square root; NaN below zero."""
        return nodes.apply("sqrt", self)

    def exp(self) -> Expr:
        """e to this power."""
        return nodes.apply("exp", self)

    def ln(self) -> Expr:
        """The natural logarithm; null where there is none."""
        return nodes.apply("ln", self)

    def power(self, exponent: object) -> Expr:
        """This to the power of the exponent."""
        return nodes.apply("power", self, exponent)

    def sign(self) -> Expr:
        """-1.0, 0.0 or 1.0."""
        return nodes.apply("sign", self)

    def greatest(self, *others: object) -> Expr:
        """The greatest that is not null; NaN is above every number."""
        return nodes.apply("greatest", self, *others)

    def least(self, *others: object) -> Expr:
        """The least that is not null."""
        return nodes.apply("least", self, *others)

    def bit_and(self, other: object) -> Expr:
        """The bits that both have."""
        return nodes.apply("bit_and", self, other)

    def bit_or(self, other: object) -> Expr:
        """The bits that one of them has."""
        return nodes.apply("bit_or", self, other)

    def bit_xor(self, other: object) -> Expr:
        """The bits that exactly one of them has."""
        return nodes.apply("bit_xor", self, other)

    def shift_left(self, by: object) -> Expr:
        """The bits moved up so many places: lit(1).shift_left(n) is the n-th bit, n from 0 to 62."""
        return nodes.apply("shift_left", self, by)
