"""Names, types, nulls and sets of values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import ExprError
from caesura.expr import nodes
from caesura.expr.types import as_type
from caesura.misuse import checked_methods, strict

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class ValueMethods:
    """Names, types, nulls and sets of values."""

    def alias(self, name: str) -> Expr:
        """The same value under another output name.

        Parameters
        ----------
        name
            What its column is called.

        Returns
        -------
        Expr
            The same value, with that name in ``select``, ``with_columns`` and ``group_by``.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> rows = cz.from_rows([{"t": 1, "mph": 50}], time="t")
        >>> print(rows.select((col("mph") * 1.6).alias("kmh")).run())
         LE  RE | kmh  |
          1  2  | 80.0 | +
        """
        return nodes.Alias(nodes.as_expr(self), name)

    def cast(self, type: pa.DataType | str) -> Expr:
        """The value as another type; a row whose value cannot be converted is refused.

        Parameters
        ----------
        type
            A type of Arrow, or its Spark name: ``"int"``, ``"timestamp"``, ``"decimal(10,2)"``.

        Returns
        -------
        Expr
            The type that is named; null for null.

        Notes
        -----
        What is refused stops the query, or goes to the late table with ``.on_bad("late")`` behind the step.
        Spark does the same with ``spark.sql.ansi.enabled``.

        See Also
        --------
        Expr.try_cast : null for such a value.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").cast("int"), a=["7", None])
        [7, None]
        """
        return nodes.Cast(nodes.as_expr(self), as_type(type))

    def try_cast(self, type: pa.DataType | str) -> Expr:
        """The value as another type, or null where it cannot be converted.

        Parameters
        ----------
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
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").try_cast("int"), a=["7", "x", None])
        [7, None, None]
        """
        return nodes.Cast(nodes.as_expr(self), as_type(type), attempts=True)

    @strict
    def field(self, name: str) -> Expr:
        """One field of a struct.

        Parameters
        ----------
        name
            The field's name.

        Returns
        -------
        Expr
            The field's type; null where the struct is null.

        See Also
        --------
        Expr.get_item : also elements of lists and values of maps.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").field("x"), a=[{"x": 1}, None])
        [1, None]
        """
        return nodes.Field(nodes.as_expr(self), name)

    def is_null(self) -> Expr:
        """Whether there is no value.

        Returns
        -------
        Expr
            ``boolean``, never null. NaN is a value.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").is_null(), a=[1, None])
        [False, True]
        """
        return nodes.apply("is_null", self)

    def is_not_null(self) -> Expr:
        """Whether there is a value.

        Returns
        -------
        Expr
            ``boolean``, never null. NaN is a value.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").is_not_null(), a=[1, None])
        [True, False]
        """
        return nodes.apply("is_not_null", self)

    def eq_null_safe(self, other: object) -> Expr:
        """Whether two values are equal, where two nulls are equal and one is not.

        Parameters
        ----------
        other
            A value, or an expression.

        Returns
        -------
        Expr
            ``boolean``, never null; ``==`` is null where either is null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").eq_null_safe(col("b")), a=[1, 1, None], b=[1, None, None])
        [True, False, True]
        """
        return nodes.apply("equal_null_safe", self, other)

    def isin(self, *listed: object) -> Expr:
        """Whether the value is one of several: SQL's IN.

        Parameters
        ----------
        *listed
            Plain values, in a list or one by one.

        Returns
        -------
        Expr
            ``boolean``; null for null, and where it is not found and one of the values is null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").isin([1, 2]), a=[1, 3, None])
        [True, False, None]
        """
        values = listed
        if len(listed) == 1:
            if isinstance(listed[0], str | bytes):
                raise ExprError(
                    f"isin wants a list of values, got {listed[0]!r}.",
                    remedy=f"Write .isin([{listed[0]!r}]).",
                )
            values = tuple(listed[0]) if isinstance(listed[0], Iterable) else listed
        return nodes.Member(nodes.as_expr(self), tuple(nodes.plain_value("isin", v) for v in values))

    def between(self, low: object, high: object) -> Expr:
        """Whether the value lies between two bounds, both included.

        Parameters
        ----------
        low, high
            The bounds: values or expressions.

        Returns
        -------
        Expr
            ``boolean``; null where the value is null, or where a bound is null and the other does not
            decide.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").between(2, 3), a=[1, 2, 3, None])
        [False, True, True, None]
        """
        return nodes.apply("between", self, low, high)

    def coalesce(self, *others: object) -> Expr:
        """The first of several values that is not null.

        Parameters
        ----------
        *others
            What is taken instead, in this order: values or expressions.

        Returns
        -------
        Expr
            The common type of all; null where all are null. What stands behind the first value is not
            asked of a row.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").coalesce(col("b"), 0), a=[1, None, None], b=[5, 7, None])
        [1, 7, 0]
        """
        return nodes.apply("coalesce", self, *others)

    def nullif(self, other: object) -> Expr:
        """Null where the value equals another.

        Parameters
        ----------
        other
            What it is compared with: a value or an expression.

        Returns
        -------
        Expr
            The type of the first.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").nullif(0), a=[1, 0, None])
        [1, None, None]
        """
        return nodes.apply("nullif", self, other)

    def if_null(self, other: object) -> Expr:
        """The other value where this one is null.

        Parameters
        ----------
        other
            What is taken instead: a value or an expression.

        Returns
        -------
        Expr
            The common type of both.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").if_null(0), a=[1, None])
        [1, 0]
        """
        return nodes.apply("coalesce", self, other)
