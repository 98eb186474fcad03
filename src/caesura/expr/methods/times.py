"""What is asked of dates and timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.expr.durations import Duration, micros
from caesura.expr.types import as_type
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class TimeMethods:
    """What is asked of dates and timestamps."""

    def year(self) -> Expr:
        """The year."""
        return nodes.apply("year", self)

    def month(self) -> Expr:
        """The month, from 1 to 12."""
        return nodes.apply("month", self)

    def day(self) -> Expr:
        """The day of the month, from 1."""
        return nodes.apply("day", self)

    def hour(self) -> Expr:
        """The hour, from 0 to 23."""
        return nodes.apply("hour", self)

    def minute(self) -> Expr:
        """The minute, from 0 to 59."""
        return nodes.apply("minute", self)

    def second(self) -> Expr:
        """The second, from 0 to 59."""
        return nodes.apply("second", self)

    def day_of_week(self) -> Expr:
        """1 for Sunday to 7 for Saturday."""
        return nodes.apply("day_of_week", self)

    def date_trunc(self, unit: str) -> Expr:
        """The start of the year, quarter, month, week, day, hour, minute... it falls in."""
        return nodes.apply("date_trunc", self, options=(unit.lower(),))

    def unix_micros(self) -> Expr:
        """Microseconds since 1970."""
        return nodes.apply("unix_micros", self)

    def timestamp_micros(self) -> Expr:
        """The timestamp so many microseconds after 1970: the inverse of unix_micros."""
        return nodes.apply("timestamp_micros", self)

    def to_timestamp(self) -> Expr:
        """The value as a timestamp; a row whose value is none is refused."""
        return nodes.Cast(nodes.as_expr(self), as_type("timestamp"))

    def plus_time(self, duration: Duration) -> Expr:
        """A timestamp or date moved later: plus_time("1h 30m"), plus_time(timedelta(days=1))."""
        return nodes.apply("plus_time", self, options=(micros(duration),))

    def minus_time(self, duration: Duration) -> Expr:
        """A timestamp or date moved earlier."""
        return nodes.apply("plus_time", self, options=(-micros(duration),))
