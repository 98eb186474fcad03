"""Steps that speak to those above them: what will be ignored, what is wanted, what is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from caesura.api.planned import Planned
from caesura.errors import CaesuraError, PlanError
from caesura.expr import Expr, col
from caesura.misuse import strict
from caesura.plan import Duration, here, ticks, walk
from caesura.plan.feedback import Switches
from caesura.punctuation import Pattern

if TYPE_CHECKING:
    from caesura.api.stream import Stream
    from caesura.ops.archive import Fill
    from caesura.ops.feedback_from import FeedbackIntent
    from caesura.ops.impute import Per

ONLY_TYPES = {
    "Fill": "caesura.ops.archive",
    "FeedbackIntent": "caesura.ops.feedback_from",
    "Per": "caesura.ops.impute",
}
"""Where the types of arguments are that a wrong call needs: a step is imported when it is used."""


class FeedbackSteps(Planned):
    """Steps that speak to those above them: what will be ignored, what is wanted, what is due."""

    def feedback(self, *, exploit: bool = True, propagate: bool = True) -> Stream:
        """What the last step may do about feedback: act on it, and tell the steps above."""
        return self._then(replace(self.node, switches=Switches(exploit, propagate)))

    def pace(
        self,
        *others: Stream,
        within: Duration,
        by: str = "",
        tells: Literal["upstream", "nobody"] = "upstream",
        name: str = "",
    ) -> Stream:
        """All events of these streams that start at most so far behind the furthest; the rest is counted.

        With ``by`` it is the values of a column that are so far behind: a number of sequence, a time. The
        steps above are told what is too late, unless ``tells="nobody"``.
        """
        from caesura.ops.pace import Pace

        bound = self._pace_bound(within, by)
        inputs = (self.node, *(o.node for o in others))
        return self._then(Pace(inputs=inputs, within=bound, by=by, tells=tells, name=name))

    def _pace_bound(self, within: Duration, by: str) -> int:
        if not by:
            return self._ticks(within, "bound of pace", "pace")
        own = self.schema.field(by).type if by in self.schema.names else None
        try:
            return ticks(
                within, own if own is not None and pa.types.is_timestamp(own) else pa.int64(), "bound of pace"
            )
        except CaesuraError as error:
            raise error.at("pace", here()) from None

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
        from caesura.ops.instrument import Instrument

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
        from caesura.ops.feedback_from import FeedbackFrom

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
        from caesura.ops.archive import Archive, Slow
        from caesura.ops.impute import Impute

        test = col(column).is_null() if missing is None else missing
        limit = budget if not isinstance(budget, str) else timedelta(microseconds=_micros(budget))
        how = by if isinstance(by, Archive) else Slow(by)
        node = Impute(
            inputs=(self.node,), value=column, by=how, missing=test, budget=limit, per=per, name=name
        )
        return self._then(node)

    def deadline(
        self,
        after: Duration,
        *,
        over: Literal["first", "all"] = "first",
        clock: Duration | None = None,
        name: str = "",
    ) -> Stream:
        """Demands what there is when no result came while the source went on for so long.

        The first source of the plan tells the time; with ``over="all"`` whichever has come furthest does, so
        that one that has stopped holds nothing up. With ``clock="1s"`` it is the clock, read so often, also
        while nothing comes at all.
        """
        from caesura.ops.deadline import Deadline

        if clock is not None:
            return self._clock_deadline(after, clock, name)
        sources = [node for node in walk(self.node) if not node.inputs]
        bound = self._ticks(after, "deadline", "deadline")
        some = sources if over == "all" else sources[:1]
        return self._then(Deadline(inputs=(self.node, *some), after=bound, name=name))

    def _clock_deadline(self, after: Duration, clock: Duration, name: str) -> Stream:
        from caesura.io.sources.clock import clock_source
        from caesura.ops.deadline import Deadline

        try:
            bound = ticks(after, pa.timestamp("us"), "deadline")
            source = clock_source(clock)
        except CaesuraError as error:
            raise error.at("deadline", here()) from None
        return self._then(Deadline(inputs=(self.node, source), after=bound, clock=True, name=name))


def _micros(budget: str) -> int:
    try:
        return ticks(budget, pa.timestamp("us"), "budget")
    except PlanError as error:
        raise error.at("impute", here()) from None
