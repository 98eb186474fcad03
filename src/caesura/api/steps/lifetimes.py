"""Steps on lifetimes: moved, lengthened, rounded, cut."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from caesura.api.planned import Planned
from caesura.errors import PlanError
from caesura.ops.chop import Chop
from caesura.ops.lifetimes import Lifetime, Rule
from caesura.plan import Duration, here

if TYPE_CHECKING:
    from caesura.api.stream import Stream


class LifetimeSteps(Planned):
    """Steps on lifetimes: moved, lengthened, rounded, cut."""

    def _lifetime(self, rule: Rule, amount: Duration = 0, per: int = 1) -> Stream:
        size = self._ticks(amount, f"amount of {rule}", rule)
        return self._then(Lifetime(inputs=(self.node,), rule=rule, amount=size, per=per, exact=True))

    def shift(self, by: Duration) -> Stream:
        """Moves lifetimes, and punctuation with them.

        Parameters
        ----------
        by
            How far, later; below zero for earlier: ``"5m"``, ``-3`` ticks. A row that would leave the times
            that there are stops the query, here and in the other steps on lifetimes.

        Returns
        -------
        Stream
            The same rows, with start and end moved.

        Notes
        -----
        Promises: those of its input, with times moved alike. State: none. Feedback: stopped at its output,
        and passed on with times moved back. Spark: in the stage of its input, behind the gate of its
        source.

        See Also
        --------
        Stream.extend : ends moved.
        Stream.start_at : starts rounded up.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 3, "till": 8, "id": 7}], time="ts", end="till")
        >>> print(visits.shift(10).run())
         LE  RE | id |
         13  18 | 7  | +
        """
        return self._lifetime("shift", by)

    def set_duration(self, to: Duration) -> Stream:
        """Every event lives this long from its start.

        Parameters
        ----------
        to
            The length, more than zero: ``"30s"``, ``9`` ticks.

        Returns
        -------
        Stream
            The same rows; ends that they had do not matter.

        Notes
        -----
        Promises: those of its input; ends are fixed, so a row is final once its start is. State: none.
        Feedback: stopped at its output, and passed on, with starts as they are. Spark: in the stage of its
        input, behind the gate of its source.

        See Also
        --------
        Stream.forever : lifetimes without an end.
        Stream.extend : ends moved.
        Stream.scale : lengths multiplied.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 3, "id": 7}, {"ts": 8, "id": 9}], time="ts")
        >>> print(clicks.set_duration(10).run())
         LE  RE | id |
          3  13 | 7  | +
          8  18 | 9  | +
        """
        return self._lifetime("set_duration", to)

    def forever(self) -> Stream:
        """Every event lives from its start on, without an end.

        Returns
        -------
        Stream
            The same rows; ends that they had do not matter.

        Notes
        -----
        Promises: those of its input. State: none here; steps behind it that keep rows until they end keep
        these for ever, unless promises on columns or keys free them: `check` says so. Feedback: stopped at
        its output, and passed on. Spark: in the stage of its input, behind the gate of its source.

        See Also
        --------
        Stream.set_duration : lifetimes of one length.
        Stream.extend : ends moved.
        Stream.scale : lengths multiplied.
        Stream.latest : the current row of every key.

        Examples
        --------
        >>> import caesura as cz
        >>> print(cz.from_rows([{"ts": 3, "id": 7}], time="ts").forever().run())
         LE  RE  | id |
          3  inf | 7  | +
        """
        return self._lifetime("forever")

    def extend(self, by: Duration) -> Stream:
        """Moves ends; an event that loses its whole lifetime vanishes.

        Parameters
        ----------
        by
            How far, later; below zero for earlier.

        Returns
        -------
        Stream
            The same rows, with other ends.

        Notes
        -----
        Promises: those of its input; where ends are moved earlier, a change of an old end may change an
        earlier time, and time is promised that much later. State: none. Feedback: stopped at its output,
        and passed on with ends moved back. Spark: in the stage of its input, behind the gate of its source.

        See Also
        --------
        Stream.shift : lifetimes moved.
        Stream.start_at : starts rounded up.
        Stream.set_duration : lifetimes of one length.
        Stream.forever : lifetimes without an end.
        Stream.scale : lengths multiplied.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "till": 8, "id": 7}, {"ts": 4, "till": 5, "id": 9}]
        >>> visits = cz.from_rows(rows, time="ts", end="till")
        >>> print(visits.extend(-2).run())
         LE  RE | id |
          3  6  | 7  | +
        """
        return self._lifetime("extend", by)

    def scale(self, by: int | float | Fraction) -> Stream:
        """Multiplies the lengths of lifetimes; starts stay.

        Parameters
        ----------
        by
            A whole number, a float or a ``Fraction``; a float is taken as the nearest fraction with a
            denominator up to a million. Below 1 it is refused where ends may still change, for it would
            move them into the past.

        Returns
        -------
        Stream
            The same rows, with other ends.

        Notes
        -----
        Promises: those of its input on columns and on time. State: none. Feedback: stopped at its output,
        and passed on. Spark: in the stage of its input, behind the gate of its source.

        See Also
        --------
        Stream.set_duration : lifetimes of one length.
        Stream.forever : lifetimes without an end.
        Stream.extend : ends moved.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 3, "till": 8, "id": 7}], time="ts", end="till")
        >>> print(visits.scale(2).run())
         LE  RE | id |
          3  13 | 7  | +
        """
        if isinstance(by, float) and not math.isfinite(by):
            raise PlanError(
                f"lifetimes cannot be multiplied by {by}.",
                remedy="Give a number that is finite; forever() lets events live without an end.",
            ).at("scale", here())
        exact = Fraction(by).limit_denominator(1_000_000)
        return self._lifetime("scale", exact.numerator, exact.denominator)

    def start_at(self, period: Duration) -> Stream:
        """Rounds starts up to a multiple of the period; an event that ends before that vanishes.

        Parameters
        ----------
        period
            The length that starts are multiples of.

        Returns
        -------
        Stream
            The same rows, with later starts.

        Notes
        -----
        Promises: those of its input. State: none. Feedback: stopped at its output, and passed on. Spark: in
        the stage of its input, behind the gate of its source.

        See Also
        --------
        Stream.shift : lifetimes moved.
        Stream.extend : ends moved.
        Stream.hopping_lifetimes : lifetimes on a grid of hops.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "till": 18, "id": 7}, {"ts": 4, "till": 5, "id": 9}]
        >>> visits = cz.from_rows(rows, time="ts", end="till")
        >>> print(visits.start_at(10).run())
         LE  RE | id |
         10  18 | 7  | +
        """
        return self._lifetime("start_at", period)

    def points_at_start(self) -> Stream:
        """Each event as a point at its start.

        Returns
        -------
        Stream
            The same rows, each alive for one tick.

        Notes
        -----
        Promises: those of its input; ends are fixed. State: none. Feedback: stopped at its output, and
        passed on. Spark: in the stage of its input, behind the gate of its source.

        See Also
        --------
        Stream.points_at_end : points where events end.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 3, "till": 8, "id": 7}], time="ts", end="till")
        >>> print(visits.points_at_start().run())
         LE  RE | id |
          3  4  | 7  | +
        """
        return self._lifetime("points_at_start")

    def points_at_end(self) -> Stream:
        """Each event as a point at its end; one that never ends gives none.

        Returns
        -------
        Stream
            The same rows, each alive for one tick from its end on.

        Notes
        -----
        Promises: those of its input. State: none. Feedback: stopped at its output, and passed on. Spark: in
        the stage of its input, behind the gate of its source.

        See Also
        --------
        Stream.points_at_start : points where events start.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 3, "till": 8, "id": 7}], time="ts", end="till")
        >>> print(visits.points_at_end().run())
         LE  RE | id |
          8  9  | 7  | +
        """
        return self._lifetime("points_at_end")

    def chop(self, period: Duration) -> Stream:
        """Cuts lifetimes at the multiples of a period: a row for each piece.

        Parameters
        ----------
        period
            The length between cuts. An event without an end is cut as far as progress reaches.

        Returns
        -------
        Stream
            The pieces, each with all columns.

        Notes
        -----
        Promises: those of its input. State: none for events that end; of those that do not, the row.
        Feedback: stopped at its input, and passed on where it speaks of columns. Spark: in the stage of its
        input, behind the gate of its source.

        See Also
        --------
        Stream.tumbling_lifetimes : lifetimes on a grid of windows.
        Stream.tumbling : windows laid end to end.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 3, "till": 12, "id": 7}], time="ts", end="till")
        >>> print(visits.chop(5).run())
         LE  RE | id |
          3  5  | 7  | +
          5  10 | 7  | +
         10  12 | 7  | +
        """
        size = self._ticks(period, "period of chop", "chop")
        return self._then(Chop(inputs=(self.node,), period=size))
