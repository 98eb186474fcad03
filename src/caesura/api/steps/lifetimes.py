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
        return self._then(Lifetime(inputs=(self.node,), rule=rule, amount=size, per=per))

    def shift(self, by: Duration) -> Stream:
        """Moves lifetimes, and punctuation with them."""
        return self._lifetime("shift", by)

    def set_duration(self, to: Duration) -> Stream:
        """Every event lives this long from its start."""
        return self._lifetime("set_duration", to)

    def forever(self) -> Stream:
        """Every event lives from its start on, without an end.

        >>> import caesura as cz
        >>> print(cz.from_rows([{"ts": 3, "id": 7}], time="ts").forever().run())
         LE  RE  | id |
          3  inf | 7  | +
        """
        return self._lifetime("forever")

    def extend(self, by: Duration) -> Stream:
        """Moves ends; an event that loses its whole lifetime vanishes."""
        return self._lifetime("extend", by)

    def scale(self, by: int | float | Fraction) -> Stream:
        """Multiplies lifetimes, starts fixed."""
        if isinstance(by, float) and not math.isfinite(by):
            raise PlanError(
                f"lifetimes cannot be multiplied by {by}.",
                remedy="Give a number that is finite; forever() lets events live without an end.",
            ).at("scale", here())
        exact = Fraction(by).limit_denominator(1_000_000)
        return self._lifetime("scale", exact.numerator, exact.denominator)

    def start_at(self, period: Duration) -> Stream:
        """Rounds starts up to a multiple of the period."""
        return self._lifetime("start_at", period)

    def points_at_start(self) -> Stream:
        """Each event as a point at its start."""
        return self._lifetime("points_at_start")

    def points_at_end(self) -> Stream:
        """Each event as a point at its end; one that never ends gives none."""
        return self._lifetime("points_at_end")

    def chop(self, period: Duration) -> Stream:
        """Cuts lifetimes at the multiples of a period."""
        size = self._ticks(period, "period of chop", "chop")
        return self._then(Chop(inputs=(self.node,), period=size))
