"""What is asked of dates and timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.expr.durations import Duration, micros
from caesura.expr.methods.parts import PartMethods
from caesura.expr.types import as_type
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr

UNITS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}
"""What Spark also calls units of time."""


@checked_methods
class TimeMethods(PartMethods):
    """What is asked of dates and timestamps."""

    def date_trunc(self, unit: str) -> Expr:
        """The start of the year, month, hour, ... that a time falls in.

        Parameters
        ----------
        unit
            ``"year"``, ``"quarter"``, ``"month"``, ``"week"``, ``"day"``, ``"hour"``, ``"minute"``,
            ``"second"``, ``"millisecond"`` or ``"microsecond"``. The function takes it first, as in
            Spark.

        Returns
        -------
        Expr
            ``timestamp``; null for null. Weeks begin on Monday.

        See Also
        --------
        functions.trunc : a date for the answer.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("t").date_trunc("hour"), t=[dt.datetime(2024, 5, 17, 10, 20), None])
        [datetime.datetime(2024, 5, 17, 10, 0), None]
        """
        return nodes.apply("date_trunc", self, options=(UNITS.get(unit.lower(), unit.lower()),))

    def unix_micros(self) -> Expr:
        """Microseconds since 1970.

        Returns
        -------
        Expr
            ``bigint``; null for null.

        See Also
        --------
        Expr.timestamp_micros : the inverse.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("t").unix_micros(), t=[dt.datetime(1970, 1, 1, 0, 0, 2), None])
        [2000000, None]
        """
        return nodes.apply("unix_micros", self)

    def timestamp_micros(self) -> Expr:
        """The timestamp so many microseconds after 1970.

        Returns
        -------
        Expr
            ``timestamp``; null for null.

        See Also
        --------
        Expr.unix_micros : the inverse.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").timestamp_micros(), a=[2_000_000, None])
        [datetime.datetime(1970, 1, 1, 0, 0, 2), None]
        """
        return nodes.apply("timestamp_micros", self)

    def to_timestamp(self, format: str | None = None) -> Expr:
        """The value as a timestamp; a row whose value is none is refused.

        Parameters
        ----------
        format
            Spark's letters ``y M L d H h K k m s S a``, by which a text is read; without it texts are
            read as ``cast`` does.

        Returns
        -------
        Expr
            ``timestamp``; null for null.

        See Also
        --------
        Expr.try_to_timestamp : null for such a value.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").to_timestamp("dd/MM/yyyy HH:mm"), s=["17/05/2024 10:20", None])
        [datetime.datetime(2024, 5, 17, 10, 20), None]
        """
        if format is None:
            return nodes.Cast(nodes.as_expr(self), as_type("timestamp"))
        return nodes.apply("to_timestamp", self, options=(nodes.plain_text("to_timestamp", format),))

    def try_to_timestamp(self, format: str | None = None) -> Expr:
        """The value as a timestamp, or null where it is none.

        Parameters
        ----------
        format
            Spark's letters ``y M L d H h K k m s S a``, by which a text is read; without it texts are
            read as ``cast`` does.

        Returns
        -------
        Expr
            ``timestamp``; null for null.

        See Also
        --------
        Expr.to_timestamp : such a row is refused.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").try_to_timestamp("dd/MM/yyyy"), s=["17/05/2024", "soon", None])
        [datetime.datetime(2024, 5, 17, 0, 0), None, None]
        """
        if format is None:
            return nodes.Cast(nodes.as_expr(self), as_type("timestamp"), attempts=True)
        return nodes.apply("try_to_timestamp", self, options=(nodes.plain_text("to_timestamp", format),))

    def to_date(self, format: str | None = None) -> Expr:
        """The value as a date; a row whose value is none is refused.

        Parameters
        ----------
        format
            Spark's letters ``y M L d H h K k m s S a``, by which a text is read; without it texts are
            read as ``cast`` does.

        Returns
        -------
        Expr
            ``date``; null for null.

        See Also
        --------
        Expr.try_cast : ``try_cast("date")`` is null for such a value.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").to_date("dd/MM/yyyy"), s=["17/05/2024", None])
        [datetime.date(2024, 5, 17), None]
        """
        made = nodes.as_expr(self) if format is None else self.to_timestamp(format)
        return nodes.Cast(made, as_type("date"))

    def date_format(self, format: str) -> Expr:
        """The time as a text.

        Parameters
        ----------
        format
            Spark's letters ``y M L d D Q q E a H h K k m s S``, by which the text is written.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").date_format("EEE dd/MM/yyyy"), d=[dt.date(2024, 5, 17), None])
        ['Fri 17/05/2024', None]
        """
        return nodes.apply("date_format", self, options=(nodes.plain_text("date_format", format),))

    def unix_timestamp(self, format: str | None = None) -> Expr:
        """Whole seconds since 1970; a part of one is cut off.

        Parameters
        ----------
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
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("t").unix_timestamp(), t=[dt.datetime(1970, 1, 2), None])
        [86400, None]
        >>> values(col("s").unix_timestamp("dd/MM/yyyy"), s=["02/01/1970", None])
        [86400, None]
        """
        made = nodes.as_expr(self) if format is None else self.to_timestamp(format)
        return nodes.apply("unix_timestamp", made)

    def date_add(self, days: object) -> Expr:
        """The date so many days later.

        Parameters
        ----------
        days
            How many: a whole number or an expression; for the function also a column's name.

        Returns
        -------
        Expr
            ``date``; null where either is null. A row whose day no date can hold is refused; Spark wraps
            round.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").date_add(20), d=[dt.date(2024, 5, 17), None])
        [datetime.date(2024, 6, 6), None]
        """
        return nodes.apply("date_add", self, days)

    def date_sub(self, days: object) -> Expr:
        """The date so many days earlier.

        Parameters
        ----------
        days
            How many: a whole number or an expression; for the function also a column's name.

        Returns
        -------
        Expr
            ``date``; null where either is null. A row whose day no date can hold is refused; Spark wraps
            round.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").date_sub(20), d=[dt.date(2024, 5, 17), None])
        [datetime.date(2024, 4, 27), None]
        """
        return nodes.apply("date_sub", self, days)

    def date_diff(self, start: object) -> Expr:
        """The days from one date to another.

        Parameters
        ----------
        start
            The date that is counted from: a date, or an expression.

        Returns
        -------
        Expr
            ``int``; null where either is null, negative where the start is later.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").date_diff(dt.date(2024, 5, 1)), d=[dt.date(2024, 5, 17), None])
        [16, None]
        """
        return nodes.apply("date_diff", self, start)

    def add_months(self, months: object) -> Expr:
        """The same day so many months later, or the last of a shorter month.

        Parameters
        ----------
        months
            How many: a whole number or an expression; for the function also a column's name.

        Returns
        -------
        Expr
            ``date``; null where either is null. A row whose day no date can hold is refused; Spark wraps
            round.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").add_months(1), d=[dt.date(2024, 1, 31), None])
        [datetime.date(2024, 2, 29), None]
        """
        return nodes.apply("add_months", self, months)

    def plus_time(self, duration: Duration) -> Expr:
        """A timestamp or date moved later.

        Parameters
        ----------
        duration
            A text such as ``"1h 30m"`` (units us, ms, s, m, h, d, w), or a timedelta.

        Returns
        -------
        Expr
            ``timestamp``; a date moved by whole days stays a date. Null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("t").plus_time("1h 30m"), t=[dt.datetime(2024, 5, 17, 10), None])
        [datetime.datetime(2024, 5, 17, 11, 30), None]
        """
        return nodes.apply("plus_time", self, options=(micros(duration),))

    def minus_time(self, duration: Duration) -> Expr:
        """A timestamp or date moved earlier.

        Parameters
        ----------
        duration
            A text such as ``"1h 30m"`` (units us, ms, s, m, h, d, w), or a timedelta.

        Returns
        -------
        Expr
            ``timestamp``; a date moved by whole days stays a date. Null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("t").minus_time("1h 30m"), t=[dt.datetime(2024, 5, 17, 10), None])
        [datetime.datetime(2024, 5, 17, 8, 30), None]
        """
        return nodes.apply("plus_time", self, options=(-micros(duration),))
