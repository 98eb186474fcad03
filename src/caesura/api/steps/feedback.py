"""Steps that speak to those above them: what will be ignored, what is wanted, what is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa

from caesura.api.planned import Planned
from caesura.errors import CaesuraError, PlanError
from caesura.expr import Expr, col
from caesura.misuse import check_word, strict
from caesura.plan import Duration, here, ticks, walk
from caesura.plan.feedback import Switches
from caesura.punctuation import Pattern

WHO = ("upstream", "nobody")
"""Whom a step tells what it leaves out."""

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
        """What the last step may do about feedback.

        Parameters
        ----------
        exploit
            Whether it acts on feedback: stops rows, gives up state.
        propagate
            Whether it tells the steps above. To tell without acting is refused where results would then be
            made from a part of their rows.

        Returns
        -------
        Stream
            The stream behind the same step, with this choice.

        Notes
        -----
        Promises, State, Spark: those of the step. Feedback: what is switched off is neither done nor told
        here.

        See Also
        --------
        Stream.feedback_from : rows of another stream as feedback.
        Stream.pace : rows that are not too far behind.
        Stream.instrument : feedback after every so many rows.
        Stream.deadline : a partial result when none comes in time.
        Stream.impute : missing values filled by a slow function.
        Stream.audit : whether feedback left out what it may.
        Stream.explain : the plan in words.
        caesura.runtime.Query.assume : rows that will be ignored.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> slow = cz.from_rows([{"ts": 1, "mph": 9}], time="ts").where("mph < 30").feedback(propagate=False)
        >>> print(slow.explain("feedback", pattern=col("mph") == 9))
        feedback: mph = 9 will be ignored
        r1 := where: stops mph = 9 at its input
        """
        return self._then(replace(self.node, switches=Switches(exploit, propagate)))

    def pace(
        self,
        *others: Stream,
        within: Duration,
        by: str = "",
        tells: Literal["upstream", "nobody"] = "upstream",
        name: str = "",
    ) -> Stream:
        """All events of these streams that start at most so far behind the furthest; the rest is left out.

        What is left out is counted and kept in the late table. The result depends on the order of arrival.

        Parameters
        ----------
        *others
            Streams with the same columns that are merged with this one.
        within
            How far behind an event may be: a time, or with ``by`` a number.
        by
            A column whose values take the place of starts: a number of sequence, a time of arrival.
        tells
            Whether the steps above are told what is too late, ``"upstream"``, or ``"nobody"`` is.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The events that are in time, with their columns and lifetimes.

        Notes
        -----
        Promises: what all of its inputs promise; on time, that of the slowest. State: the furthest start so
        far; rows that were left out, at most 10,000 until they are asked for. Feedback: stopped at its
        output and passed on to every input; and it tells them itself what is too late. Spark: in one
        bucket, for the furthest start is that of the whole stream.

        See Also
        --------
        Stream.feedback : what a step may do about feedback.
        Stream.feedback_from : rows of another stream as feedback.
        Stream.instrument : feedback after every so many rows.
        Stream.deadline : a partial result when none comes in time.
        Stream.union : all rows of several streams.
        delay : progress behind the latest event.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 10, "id": 7}, {"ts": 3, "id": 8}, {"ts": 6, "id": 9}], time="ts")
        >>> print(clicks.pace(within=5).run())
         LE  RE | id |
          6  7  | 9  | +
         10  11 | 7  | +
        1 of 3 rows at 'pace': more than 5 behind the furthest start (result.late['pace']).
        """
        from caesura.ops.pace import Pace

        check_word(tells, WHO, "one to be told", name or "pace")
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
        """Sends feedback after every so many rows that some rows will be ignored; for measurements.

        Parameters
        ----------
        every
            After how many rows.
        pattern
            The rows that will be ignored, the same each time; or
        columns
            the columns in which rows like the latest one will be.
        tells
            Whether the steps above are told, ``"upstream"``, or ``"nobody"`` is: the other run of a
            comparison.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The same events; fewer, once feedback is acted on above.

        Notes
        -----
        Promises: all that its input promises. State: none. Feedback: stopped at its output and passed on;
        and it sends its own. Spark: in the stage of its input, behind the gate of its source.

        See Also
        --------
        Stream.feedback : what a step may do about feedback.
        Stream.feedback_from : rows of another stream as feedback.
        Stream.pace : rows that are not too far behind.
        Stream.deadline : a partial result when none comes in time.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": t, "id": t % 2} for t in range(6)], time="ts")
        >>> print(clicks.instrument(every=3, columns=["id"]).explain().splitlines()[2].split("  (")[0])
        r1 := instrument r0: every 3: id
        """
        from caesura.ops.instrument import Instrument

        check_word(tells, WHO, "one to be told", name or "instrument")
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
        """Rows of another stream are feedback on this one, while they live.

        A row speaks of rows that start within its lifetime (what is demanded: of rows that are alive then),
        and of fewer when it is shortened or taken back.

        Parameters
        ----------
        control
            The stream whose rows are feedback.
        intent
            ``"assumed"``: rows with these values will be ignored. ``"desired"``: they come first.
            ``"demanded"``: they come now, as they are.
        on
            The column that both streams have and by which a row speaks, or several.
        leaving
            An intent for the time from a row's end on: what enters may be demanded and what leaves assumed
            away.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The events of this stream; with ``"assumed"`` those that are spoken of may be missing.

        Notes
        -----
        Promises: all that this stream promises. State: none but the feedback that stands, at most 4,096
        patterns. Feedback: passed on to this stream, and the rows of ``control`` with it. Spark: in one
        bucket.

        See Also
        --------
        Stream.feedback : what a step may do about feedback.
        Stream.pace : rows that are not too far behind.
        Stream.instrument : feedback after every so many rows.
        Stream.deadline : a partial result when none comes in time.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_items('''
        ...  LE  RE | id |
        ...   1   2 | 7  | +
        ...   2   3 | 8  | +
        ...   3   4 | 7  | +
        ... ''')
        >>> muted = cz.from_rows([{"ts": 1, "id": 7}], time="ts").set_duration(9)
        >>> print(clicks.feedback_from(muted, on="id").run())
         LE  RE | id |
          1  2  | 7  | +
          2  3  | 8  | +
        """
        from caesura.ops.feedback_from import FeedbackFrom, FeedbackIntent

        for word in (intent,) if leaving is None else (intent, leaving):
            check_word(word, get_args(FeedbackIntent), "intent of feedback", name or "feedback_from")
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
        """Fills a column where it is missing, by an archive or a slow function.

        Rows that are whole go through at once; the others wait for their turn.

        Parameters
        ----------
        column
            The column that is filled.
        by
            A function that takes a batch of rows and gives one value for each, or a `cz.Archive`.
        missing
            Which rows are filled; by default those where the column is null.
        budget
            How many rows are worked on at a turn, or for how long, like ``"20ms"``; without it, all.
        per
            What a turn is: an ``"item"`` that is taken, or an ``"epoch"``: a micro-batch on Spark, a call
            of ``run`` here.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The same events, the column filled.

        Notes
        -----
        Promises: what its input promises on time and on other columns, once the rows that it speaks of have
        left. State: the rows that wait. Feedback: stopped at its input and passed on; rows that wait are
        struck from the list, which the late table tells, and those that are desired come first. Spark: in
        the stage of its input, behind the gate of its source.

        See Also
        --------
        Stream.feedback : what a step may do about feedback.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 1, "id": 7, "mph": None}, {"ts": 2, "id": 7, "mph": 51}], time="ts")
        >>> print(speeds.impute("mph", lambda rows: [48] * len(rows)).run(output="final"))
         LE  RE | id mph |
          1  2  | 7  48  | +
          2  3  | 7  51  | +
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
        """Demands what there is when no result came for so long.

        A partial result is marked, and corrected when the whole one comes.

        Parameters
        ----------
        after
            For how long.
        over
            Whose time it is: that of the ``"first"`` source of the plan, or with ``"all"`` of whichever has
            come furthest, so that one that has stopped holds nothing up.
        clock
            How often the clock is read, like ``"1s"``: then it is the clock that tells, also while nothing
            comes.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The same events, some of them as partial results before.

        Notes
        -----
        Promises: all that its input promises. State: when the last result came. Feedback: passed on; and it
        demands by itself. Spark: in the stage of its input; the time comes from the sources to all buckets.

        See Also
        --------
        Stream.feedback : what a step may do about feedback.
        Stream.feedback_from : rows of another stream as feedback.
        Stream.pace : rows that are not too far behind.
        Stream.instrument : feedback after every so many rows.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_items('''
        ...  LE  RE | id |
        ...   3   4 | 7  | +
        ... -- 4 --
        ...  18  19 | 7  | +
        ... -- 19 --
        ... ''')
        >>> print(clicks.tumbling(20).agg(n=cz.count()).deadline(5).run(speculate="watermark").draw())
         LE  RE | n |
        -- definite: time < 0 --
          0  20 | 2 | ~
        -- definite: * --
        """
        from caesura.ops.deadline import Deadline

        check_word(over, ("first", "all"), "time of a deadline", name or "deadline")
        if clock is not None:
            if over != "first":
                raise PlanError(
                    f"over={over!r} is about the time of sources, and clock= has the clock tell.",
                    remedy="Leave one of the two out.",
                ).at(name or "deadline", here())
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
