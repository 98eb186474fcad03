"""The parts of dates and timestamps: year, hour, day of the week."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class PartMethods:
    """The parts of dates and timestamps: year, hour, day of the week."""

    def year(self) -> Expr:
        """The year of the date.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").year(), d=[dt.date(2024, 5, 17), None])
        [2024, None]
        """
        return nodes.apply("year", self)

    def quarter(self) -> Expr:
        """The quarter of the year, from 1 to 4.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").quarter(), d=[dt.date(2024, 5, 17), None])
        [2, None]
        """
        return nodes.apply("quarter", self)

    def month(self) -> Expr:
        """The month, from 1 to 12.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").month(), d=[dt.date(2024, 5, 17), None])
        [5, None]
        """
        return nodes.apply("month", self)

    def week_of_year(self) -> Expr:
        """The week of the year, from 1.

        Weeks begin on Monday, and the first has at least four days of its year.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").week_of_year(), d=[dt.date(2024, 12, 30), None])
        [1, None]
        """
        return nodes.apply("week_of_year", self)

    def day(self) -> Expr:
        """The day of the month, from 1.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").day(), d=[dt.date(2024, 5, 17), None])
        [17, None]
        """
        return nodes.apply("day", self)

    def day_of_year(self) -> Expr:
        """The day of the year, from 1.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").day_of_year(), d=[dt.date(2024, 5, 17), None])
        [138, None]
        """
        return nodes.apply("day_of_year", self)

    def day_of_week(self) -> Expr:
        """The day of the week, from 1 for Sunday to 7 for Saturday.

        Returns
        -------
        Expr
            ``int``; null for null.

        See Also
        --------
        Expr.weekday : from 0 for Monday on.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").day_of_week(), d=[dt.date(2024, 5, 17), None])
        [6, None]
        """
        return nodes.apply("day_of_week", self)

    def weekday(self) -> Expr:
        """The day of the week, from 0 for Monday to 6 for Sunday.

        Returns
        -------
        Expr
            ``int``; null for null.

        See Also
        --------
        Expr.day_of_week : from 1 for Sunday on.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").weekday(), d=[dt.date(2024, 5, 17), None])
        [4, None]
        """
        return nodes.apply("weekday", self)

    def last_day(self) -> Expr:
        """The last day of the month.

        Returns
        -------
        Expr
            ``date``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("d").last_day(), d=[dt.date(2024, 2, 3), None])
        [datetime.date(2024, 2, 29), None]
        """
        return nodes.apply("last_day", self)

    def hour(self) -> Expr:
        """The hour, from 0 to 23.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("t").hour(), t=[dt.datetime(2024, 5, 17, 10, 20, 30), None])
        [10, None]
        """
        return nodes.apply("hour", self)

    def minute(self) -> Expr:
        """The minute, from 0 to 59.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("t").minute(), t=[dt.datetime(2024, 5, 17, 10, 20, 30), None])
        [20, None]
        """
        return nodes.apply("minute", self)

    def second(self) -> Expr:
        """The second, from 0 to 59.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> import datetime as dt
        >>> from caesura.testing import values
        >>> values(col("t").second(), t=[dt.datetime(2024, 5, 17, 10, 20, 30), None])
        [30, None]
        """
        return nodes.apply("second", self)
