"""Steps that speak to those above them: what will be ignored, what is wanted, what is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from caesura.api.planned import Planned
from caesura.errors import PlanError
from caesura.expr import Expr, col
from caesura.misuse import strict
from caesura.ops.archive import Archive, Fill, Slow
from caesura.ops.deadline import Deadline
from caesura.ops.feedback_from import FeedbackFrom, FeedbackIntent
from caesura.ops.impute import Impute, Per
from caesura.ops.instrument import Instrument
from caesura.ops.pace import Pace
from caesura.plan import Duration, here, ticks, walk
from caesura.plan.feedback import Switches
from caesura.punctuation import Pattern

if TYPE_CHECKING:
    from caesura.api.stream import Stream


class FeedbackSteps(Planned):
    """Steps that speak to those above them: what will be ignored, what is wanted, what is due."""

    def feedback(self, *, exploit: bool = True, propagate: bool = True) -> Stream:
        """What the last step may do about feedback: act on it, and tell the steps above."""
        return self._then(replace(self.node, switches=Switches(exploit, propagate)))

    def pace(
        self,
        *others: Stream,
        within: Duration,
        tells: Literal["upstream", "nobody"] = "upstream",
        name: str = "",
    ) -> Stream:
        """All events of these streams that start at most so far behind the furthest; the rest is counted.

        The steps above are told what is too late, unless ``tells="nobody"``.
        """
        bound = self._ticks(within, "bound of pace", "pace")
        inputs = (self.node, *(o.node for o in others))
        return self._then(Pace(inputs=inputs, within=bound, tells=tells, name=name))

    def instrument(
        self,
        *,
        every: int,
        pattern: Pattern | None = None,
        columns: Sequence[str] = (),
        tells: Literal["upstream", "nobody"] = "upstream",
        name: str = "",
    ) -> Stream:
        """Says after every so many rows that a pattern, or rows like the latest, will be ignored."""
        node = Instrument(
            inputs=(self.node,), every=every, pattern=pattern, columns=tuple(columns), tells=tells, name=name
        )
        return self._then(node)

    def feedback_from(
        self,
        control: Stream,
        intent: FeedbackIntent = "assumed",
        *,
        on: str | Sequence[str],
        leaving: FeedbackIntent | None = None,
        name: str = "",
    ) -> Stream:
        """A row of another stream is feedback on this one, by the columns ``on``, while it lives.

        It speaks of rows that start within its lifetime (what is demanded: of rows that are alive then), and
        of fewer when it is shortened or taken back. ``leaving`` says something of those from its end on: what
        enters may be demanded and what leaves assumed away.
        """
        names = (on,) if isinstance(on, str) else tuple(on)
        node = FeedbackFrom(
            inputs=(self.node, control.node), intent=intent, on=names, leaving=leaving, name=name
        )
        return self._then(node)

    @strict
    def impute(
        self,
        column: str,
        by: Fill,
        *,
        missing: Expr | None = None,
        budget: int | str | timedelta | None = None,
        per: Per = "item",
        name: str = "",
    ) -> Stream:
        """Fills a column where it is null (or ``missing`` is true) by an archive or a slow function.

        ``by`` takes a batch of rows and gives one value for each; ``budget`` rows, or for a time such as
        "20ms", are worked on whenever an item is taken, or in an epoch, and the others wait. Rows that will
        be ignored are struck from the list.
        """
        test = col(column).is_null() if missing is None else missing
        limit = budget if not isinstance(budget, str) else timedelta(microseconds=_micros(budget))
        how = by if isinstance(by, Archive) else Slow(by)
        node = Impute(
            inputs=(self.node,), value=column, by=how, missing=test, budget=limit, per=per, name=name
        )
        return self._then(node)

    def deadline(self, after: Duration, *, name: str = "") -> Stream:
        """Demands what there is when no result came while the source went on for so long."""
        source = next(node for node in walk(self.node) if not node.inputs)
        bound = self._ticks(after, "deadline", "deadline")
        return self._then(Deadline(inputs=(self.node, source), after=bound, name=name))


def _micros(budget: str) -> int:
    try:
        return ticks(budget, pa.timestamp("us"), "budget")
    except PlanError as error:
        raise error.at(Impute.kind, here()) from None
