"""What is asked of dates and timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.expr.durations import Duration, micros
from caesura.expr.types import as_type
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr

UNITS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}
"""What Spark also calls units of time."""


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
        return nodes.apply("date_trunc", self, options=(UNITS.get(unit.lower(), unit.lower()),))

    def unix_micros(self) -> Expr:
        """Microseconds since 1970."""
        return nodes.apply("unix_micros", self)

    def timestamp_micros(self) -> Expr:
        """The timestamp so many microseconds after 1970: the inverse of unix_micros."""
        return nodes.apply("timestamp_micros", self)

    def to_timestamp(self, format: str | None = None) -> Expr:
        """The value as a timestamp, a text by a pattern if given; a row whose value is none is refused.

        Patterns have Spark's letters: ``to_timestamp("dd/MM/yyyy HH:mm:ss")``.
        """
        if format is None:
            return nodes.Cast(nodes.as_expr(self), as_type("timestamp"))
        return nodes.apply("to_timestamp", self, options=(nodes.plain_text("to_timestamp", format),))

    def try_to_timestamp(self, format: str | None = None) -> Expr:
        """The value as a timestamp; null where it is none."""
        if format is None:
            return nodes.Cast(nodes.as_expr(self), as_type("timestamp"), attempts=True)
        return nodes.apply("try_to_timestamp", self, options=(nodes.plain_text("to_timestamp", format),))

    def to_date(self, format: str | None = None) -> Expr:
        """The value as a date, a text by a pattern if given; a row whose value is none is refused."""
        made = nodes.as_expr(self) if format is None else self.to_timestamp(format)
        return nodes.Cast(made, as_type("date"))

    def date_format(self, format: str) -> Expr:
        """The time as a text, by a pattern with Spark's letters: ``date_format("yyyy-MM-dd HH:mm")``."""
        return nodes.apply("date_format", self, options=(nodes.plain_text("date_format", format),))

    def unix_timestamp(self, format: str | None = None) -> Expr:
        """Whole seconds since 1970, a part of one cut off; of a text with a pattern."""
        made = nodes.as_expr(self) if format is None else self.to_timestamp(format)
        return nodes.apply("unix_timestamp", made)

    def quarter(self) -> Expr:
        """The quarter of the year, from 1 to 4."""
        return nodes.apply("quarter", self)

    def day_of_year(self) -> Expr:
        """The day of the year, from 1."""
        return nodes.apply("day_of_year", self)

    def week_of_year(self) -> Expr:
        """The week of the year, from 1; weeks begin on Monday, and the first has four days of its year."""
        return nodes.apply("week_of_year", self)

    def weekday(self) -> Expr:
        """0 for Monday to 6 for Sunday."""
        return nodes.apply("weekday", self)

    def date_add(self, days: object) -> Expr:
        """The date so many days later."""
        return nodes.apply("date_add", self, days)

    def date_sub(self, days: object) -> Expr:
        """The date so many days earlier."""
        return nodes.apply("date_sub", self, days)

    def date_diff(self, start: object) -> Expr:
        """The days from a date to this one."""
        return nodes.apply("date_diff", self, start)

    def add_months(self, months: object) -> Expr:
        """The same day so many months later, or the last of a shorter month."""
        return nodes.apply("add_months", self, months)

    def last_day(self) -> Expr:
        """The last day of the month."""
        return nodes.apply("last_day", self)

    def plus_time(self, duration: Duration) -> Expr:
        """A timestamp or date moved later: plus_time("1h 30m"), plus_time(timedelta(days=1))."""
        return nodes.apply("plus_time", self, options=(micros(duration),))

    def minus_time(self, duration: Duration) -> Expr:
        """A timestamp or date moved earlier."""
        return nodes.apply("plus_time", self, options=(-micros(duration),))
