"""Looking at a plan, and running it in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from caesura.api.planned import Planned
from caesura.errors import CaesuraError, PlanError
from caesura.feedback.predicates import Meant, patterns_of
from caesura.misuse import check_word, renamed, shown
from caesura.plan import here, ticks
from caesura.plan.cut import cut
from caesura.plan.explain import explain, explain_stages
from caesura.plan.outline import html, mermaid, outline
from caesura.plan.prune import prune
from caesura.printable import printable
from caesura.punctuation import Pattern
from caesura.runtime.query.result import (
    Output,
    Preview,
    Result,
    delivered,
    pace_of,
    preview,
    query_of,
    run,
)

if TYPE_CHECKING:
    from pathlib import Path

    from plotly.graph_objects import Figure

    from caesura.consistency import Mode
    from caesura.contracts import Bound, SourceRate, Verdict
    from caesura.io.sinks.protocol import Sink
    from caesura.plan import Duration, Speculate
    from caesura.runtime import Query, Schedule, ScheduleName
    from caesura.runtime.durable.change import OnChange
    from caesura.runtime.durable.corrections import FinalRows
    from caesura.runtime.durable.preparing import Preparation
    from caesura.runtime.inspect.feedback_audit import FeedbackAudit
    from caesura.runtime.inspect.trace import Trace
    from caesura.runtime.inspect.trace_back import RowOrigin
    from caesura.runtime.query.recording import Recording
    from caesura.runtime.threads.query import ThreadedQuery


class RunSteps(Planned):
    """Looking at a plan, and running it in this process."""

    def explain(
        self,
        what: Literal["plan", "spark", "feedback", "mermaid", "html"] = "plan",
        *,
        pattern: Meant | None = None,
    ) -> str:
        """The plan in words: per step its columns, its properties, and the punctuation it carries.

        Parameters
        ----------
        what
            ``"plan"``; ``"spark"`` for the stages that it runs in on Spark, the exchanges and why they are
            there; ``"feedback"`` for what each step would do if some rows were assumed away; ``"mermaid"``
            or ``"html"`` to draw it.
        pattern
            With ``"feedback"``, which rows: a predicate like ``col("id") == 4``, or a `cz.Pattern`.

        Returns
        -------
        str
            A text of several lines; a shared step stands once.

        See Also
        --------
        Stream.named : what the step is called.
        Stream.feedback : what a step may do about feedback.
        Stream.check : whether state stays bounded and answers come out.
        Stream.bounds : how much each step holds at most.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> slow = cz.from_rows([{"ts": 1, "mph": 62}], time="ts").where("mph < 30")
        >>> print(slow.explain("spark"))
        stage 0 (in front of the first exchange)
          read: rows, time 'ts' (point); gives all at the end of input
          where: mph < 30
        stage 1 (one bucket per partition)
          <- where from its source, spread over the buckets: 'out' must enter through its source's gate
          -> output 'out'
        >>> print(slow.explain("feedback", pattern=col("mph") == 9))
        feedback: mph = 9 will be ignored
        r1 := where: stops mph = 9 at its input; sends mph = 9 to r0
        r0 := read: keeps back mph = 9 at its output
        """
        check_word(what, ("plan", "spark", "feedback", "mermaid", "html"), "way to explain", "explain")
        if what == "feedback":
            return self._explain_feedback(pattern)
        if pattern is not None:
            raise PlanError(
                f"pattern= says which rows are assumed away, and explain({what!r}) speaks of none.",
                remedy="Leave it out, or write explain('feedback', pattern=...).",
            ).at("explain", here())
        if what == "spark":
            return printable(explain_stages(cut(prune({"out": self.node}))), lines=True)
        if what == "mermaid":
            return mermaid(outline(self.node))
        if what == "html":
            return html(outline(self.node))
        return explain(self.node)

    def _explain_feedback(self, pattern: Meant | None) -> str:
        if pattern is None:
            error = PlanError(
                "explain('feedback') wants to know which rows.",
                remedy="Say so: explain('feedback', pattern=col('id') == 4).",
            )
            raise error.at("explain", here())
        from caesura.feedback.explain import explain_feedback

        try:
            return explain_feedback(self.node, patterns_of(pattern, self.schema, self.node.time))
        except CaesuraError as error:
            raise error.at("explain", here()) from None

    @renamed(few="bounded_columns")
    def check(
        self,
        output: Output = "changes",
        *,
        schemes: Mapping[str, str] | None = None,
        lifetimes: Mapping[str, Duration | Literal["finite"]] | None = None,
        bounded_columns: Mapping[str, Iterable[str]] | None = None,
        fix: bool = False,
    ) -> Verdict:
        """Whether state stays bounded and every answer comes out; if not, why, and what to change.

        Nothing runs: the plan is read, with what its sources promise.

        Parameters
        ----------
        output
            What is taken of the stream: ``"changes"``, or ``"final"`` rows alone, which wait until they
            are.
        schemes
            By source, what punctuation lies in its data, where the plan cannot know.
        lifetimes
            By source, how long its events live at most, or ``"finite"``.
        bounded_columns
            By source, which columns have a bounded set of values.
        fix
            Whether an unsafe plan is shown mended too, by the first remedy that needs no more to be said:
            ``cz.Stream(verdict.mended.plan)`` is that plan.

        Returns
        -------
        caesura.contracts.Verdict
            ``safe``, and what each step promises and keeps; printed, all of it in words.

        See Also
        --------
        Stream.explain : the plan in words.
        Stream.bounds : how much each step holds at most.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts", punctuate=cz.delay(5), name="clicks")
        >>> clicks.tumbling(10).agg(n=cz.count()).check().safe
        True
        >>> verdict = clicks.totals(n=cz.count()).check()
        >>> verdict.safe
        False
        >>> print(str(verdict).split(", because")[0].split("): ")[-1])
        open groups are held for ever, and their results never become final
        """
        from caesura.contracts import check

        try:
            return check(
                delivered(self.node, output),
                schemes=schemes,
                lifetimes=lifetimes,
                bounded_columns=bounded_columns,
                fix=fix,
            )
        except CaesuraError as error:
            raise error.at("check", here()) from None

    def bounds(
        self,
        rates: Mapping[str, SourceRate | tuple[int, Duration, Duration]],
        *,
        skew: Duration = 0,
        schemes: Mapping[str, str] | None = None,
        lifetimes: Mapping[str, Duration | Literal["finite"]] | None = None,
        widths: Mapping[str, int] | None = None,
    ) -> list[Bound]:
        """Per step, how many rows and bytes it holds at most, and how far its output is behind.

        Parameters
        ----------
        rates
            Of each source ``(events, per, within)``: at most so many events start within any such time, and
            each is covered by punctuation so soon; of each loop, by its name, how many rows go around it.
        skew
            How far sources may be apart in time.
        schemes
            As in `check`.
        lifetimes
            As in `check`.
        widths
            The bytes of columns of any length, by name.

        Returns
        -------
        list of caesura.contracts.Bound
            One for each step, in the order of the plan.

        See Also
        --------
        Stream.explain : the plan in words.
        Stream.check : whether state stays bounded and answers come out.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts", punctuate=cz.delay(5), name="clicks")
        >>> for bound in clicks.tumbling(10).agg(n=cz.count()).bounds({"clicks": (1000, 5, 5)}):
        ...     print(bound)
        r0 read: holds nothing; final 5 ticks behind
        r1 tumbling: holds at most 24000 rows, about 2 MiB; final 16 ticks behind
        """
        from caesura.contracts import SourceRate, bounds

        if not isinstance(rates, Mapping):
            raise PlanError(
                f"rates are given by source; got {shown(rates)}.",
                remedy='Write bounds({"clicks": (1000, "5s", "10s")}): events, per, within.',
            ).at("bounds", here())
        try:
            known = {
                name: rate if isinstance(rate, SourceRate) else SourceRate(*rate)
                for name, rate in rates.items()
            }
            ahead = ticks(skew, self.node.time, "skew")
            options = {"schemes": schemes, "lifetimes": lifetimes, "widths": widths}
            return bounds(self.node, known, skew=ahead, **options)  # type: ignore[arg-type]
        except CaesuraError as error:
            raise error.at("bounds", here()) from None

    def run(
        self,
        *,
        output: Output = "changes",
        speculate: Speculate | None = None,
        schedule: Schedule | ScheduleName | None = None,
        claims: Mode | None = None,
        threads: int = 1,
    ) -> Result:
        """Runs in this process until every source is at its end, and gives what came out.

        Parameters
        ----------
        output
            ``"changes"``: inserts and corrections as they come. ``"final"``: rows held until nothing
            changes them any more. ``"marked"``: changes, and every row again when it is final.
        speculate
            When windows speak: on ``"arrival"`` of rows, the default, or behind the ``"watermark"`` alone,
            the default of final output. The history is the same.
        schedule
            Which step works next, by name or a ``Schedule``; for tests and measurements. The history is the
            same.
        claims
            `cz.tokens()`, `cz.heeding()` and their like: the output names the input prefix that each of its
            consistent states answers for.
        threads
            How many threads work on rows of different keys; another one reads. What comes out is the same.
            Claims, loops, feedback between steps and modules of your own keep to one thread.

        Returns
        -------
        Result
            The items that came out; printed, the history. Also late rows, counters and claims.

        Notes
        -----
        State is in memory and goes at the end. A source that never ends, such as a topic, makes it run for
        ever: use `query`.

        See Also
        --------
        Stream.query : a query that is fed and stepped.
        Stream.preview : the first rows.
        Stream.start : a streaming query on Spark.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "mph": 62}, {"ts": 12, "mph": 9}, {"ts": 8, "mph": 48}]
        >>> speeds = cz.from_rows(rows, time="ts", punctuate=cz.delay(5))
        >>> counted = speeds.tumbling(10).agg(n=cz.count())
        >>> print(counted.run())
         LE  RE | n |
          0  10 | 2 | +
         10  20 | 1 | +
        >>> print(counted.run(output="final").draw())
         LE  RE | n |
        -- definite: time < 0 --
          0  10 | 2 | +
         10  20 | 1 | +
        -- definite: * --
        """
        if threads == 1 and not isinstance(threads, bool):
            return run(self.node, output=output, speculate=speculate, schedule=schedule, claims=claims)
        from caesura.runtime.threads.running import check_threads, run_on_threads

        try:
            count = check_threads(threads)
        except CaesuraError as error:
            raise error.at("run", here()) from None
        if claims is not None:
            return run(self.node, output=output, speculate=speculate, schedule=schedule, claims=claims)
        return run_on_threads(self.node, count, output=output, speculate=speculate, schedule=schedule)

    @overload
    def query(
        self,
        *,
        output: Output = "changes",
        speculate: Speculate | None = None,
        schedule: Schedule | ScheduleName | None = None,
        claims: Mode | None = None,
        checkpoint: str | Path | None = None,
        every: Duration = "10s",
        sink: Sink | str | Path | None = None,
        take_over: bool = False,
        on_change: OnChange = "refuse",
        final_rows: FinalRows = "refuse",
        state_memory: int | str | None = None,
        record: Duration | None = None,
        threads: Literal[1] = 1,
    ) -> Query: ...
    @overload
    def query(
        self,
        *,
        output: Output = "changes",
        speculate: Speculate | None = None,
        schedule: Schedule | ScheduleName | None = None,
        claims: Mode | None = None,
        threads: int,
    ) -> Query | ThreadedQuery: ...

    def query(
        self,
        *,
        output: Output = "changes",
        speculate: Speculate | None = None,
        schedule: Schedule | ScheduleName | None = None,
        claims: Mode | None = None,
        checkpoint: str | Path | None = None,
        every: Duration = "10s",
        sink: Sink | str | Path | None = None,
        take_over: bool = False,
        on_change: OnChange = "refuse",
        final_rows: FinalRows = "refuse",
        state_memory: int | str | None = None,
        record: Duration | None = None,
        threads: int = 1,
    ) -> Query | ThreadedQuery:
        """The plan as a query in this process, to be fed, stepped, asked and published.

        Parameters
        ----------
        output
            What is taken of the stream, as in `run`.
        speculate
            When windows speak, as in `run`.
        schedule
            Which step works next, as in `run`.
        claims
            Of which states the output names the input prefix, as in `run`.
        checkpoint
            A folder or an object store. The query is saved there, and goes on from there when it is made
            again, in whatever process.
        every
            How often it is saved; at its end it always is.
        sink
            Where output goes when it is saved: a folder for Parquet files, or a sink as Spark takes it;
            without one, ``take`` gives it.
        take_over
            Whether a checkpoint that another process goes on with is taken from it; by default that is
            refused.
        on_change
            Where the checkpoint is of another plan: ``"refuse"``; ``"continue"``, state that fits is kept
            and the new plan holds from here on; or ``"rebuild"``, the sources are read again as far as they
            were, and the output is corrected to what the new plan would have given.
        final_rows
            Where a rebuild would touch rows that were final: ``"refuse"`` lists them, ``"keep"`` leaves
            them, ``"new_generation"`` begins the whole output anew beside the old.
        state_memory
            Of the texts and other wide values that its steps hold, how much lies in memory, like
            ``"1 GB"``; the rest lies on the local disk. Without it, all lie in memory.
        record
            For how long, like ``"10m"``, rows that come in are kept beside the checkpoint, at most 64 MB of
            them, so that ``query.replay()`` has a stretch of rows that cannot be read again.
        threads
            As in `run`; such a query is run or stepped and its output taken, what else queries do is
            refused by name.

        Returns
        -------
        caesura.runtime.Query
            The query; its output is called ``"out"``. With a checkpoint or a sink, a query that saves
            itself.

        See Also
        --------
        Stream.run : run to the end, in this process.
        Stream.preview : the first rows.
        Stream.start : a streaming query on Spark.
        Stream.prepare_upgrade : reads beforehand what a rebuild reads.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts")
        >>> with clicks.where("id > 7").query() as query:
        ...     query.run()
        ...     print(cz.draw(query.take("out")))
         LE  RE | id |
          4  5  | 9  | +
        -- definite: * --
        """
        if threads != 1 or isinstance(threads, bool):
            return self._query_on_threads(
                threads,
                saved=any(one is not None for one in (checkpoint, sink, state_memory, record)),
                output=output,
                speculate=speculate,
                schedule=schedule,
                claims=claims,
            )
        if checkpoint is None and sink is None and record is None:
            _refuse_unsaved(every=every, take_over=take_over, on_change=on_change, final_rows=final_rows)
            return query_of(self.node, output, speculate, schedule, claims, state_memory)
        from caesura.runtime.durable.making import durable_query

        try:
            return durable_query(
                delivered(self.node, output),
                checkpoint,
                sink,
                every=every,
                claims=claims,
                schedule=schedule,
                speculate=pace_of(output, speculate),
                take_over=take_over,
                on_change=on_change,
                final_rows=final_rows,
                state_memory=state_memory,
                record=record,
            )
        except CaesuraError as error:
            raise error.at("query", here()) from None

    def prepare_upgrade(
        self,
        checkpoint: str | Path,
        *,
        output: Output = "changes",
        speculate: Speculate | None = None,
        every: Duration = "1m",
        take_over: bool = False,
    ) -> Preparation:
        """Reads, beside a query that runs, what it has read so far; a rebuild then has little to read.

        The query and its checkpoint stay as they are. Called again, it reads only what the query has saved
        since. Then stop the query, and start this plan with ``on_change="rebuild"``.

        Parameters
        ----------
        checkpoint
            The checkpoint of the query. What is prepared lies in its folder ``prepared`` until the switch.
        output
            What is taken of the stream, as it will be in `query`.
        speculate
            When windows speak, as it will be in `query`.
        every
            How often what was read is saved: cut off, it goes on from there.
        take_over
            Whether it is taken from another process that prepares there; by default that is refused.

        Returns
        -------
        Preparation
            How many rows were read.

        See Also
        --------
        Stream.query : a query with a checkpoint, in this process.
        Pipeline.prepare_upgrade : of a pipeline with claims.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": t, "user": t % 2} for t in range(30)], time="ts")
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> runs = clicks.tumbling(10).agg(n=cz.count()).query(checkpoint=folder / "cp", sink=folder / "out")
        >>> while runs.step():
        ...     _ = runs.save()
        >>> other = clicks.tumbling(15).agg(n=cz.count())
        >>> print(other.prepare_upgrade(folder / "cp"))
        prepared: 30 rows read now, 30 in all
        >>> runs.close()
        >>> other.query(checkpoint=folder / "cp", sink=folder / "out", on_change="rebuild").run()
        """
        from caesura.runtime.durable.making import prepared_upgrade

        try:
            return prepared_upgrade(
                delivered(self.node, output),
                checkpoint,
                every=every,
                speculate=pace_of(output, speculate),
                take_over=take_over,
            )
        except CaesuraError as error:
            raise error.at("prepare_upgrade", here()) from None

    def _query_on_threads(self, threads: int, *, saved: bool, **options: Any) -> Query | ThreadedQuery:
        from caesura.runtime.threads.running import check_threads, query_on_threads

        try:
            count = check_threads(threads)
            if saved:
                raise PlanError(
                    f"a query on {threads} threads has no checkpoint, no sink that goes with one, and no "
                    "state_memory=.",
                    remedy="Leave out threads=, or take its output with take().",
                )
        except CaesuraError as error:
            raise error.at("query", here()) from None
        return query_on_threads(self.node, count, **options)

    @renamed(most="limit")
    def trace(
        self,
        rows: str | Pattern,
        *,
        assume: str | Pattern | None = None,
        limit: int = 10_000,
        recording: Recording | None = None,
    ) -> Trace:
        """What became of some rows of the sources, step by step.

        Runs in this process twice, with the rows and without them; every step shows what it says because of
        them.

        Parameters
        ----------
        rows
            Which rows: a pattern as text, ``"ts = 18, segment in {1, 3}"``, or a `cz.Pattern`.
        assume
            Feedback from the start, as a pattern.
        limit
            How many rows of each source are read at most.
        recording
            What a query took in, ``query.record()``: then the rows are those.

        Returns
        -------
        caesura.runtime.inspect.trace.Trace
            What each step said because of the rows; printed, a drawing per step.

        See Also
        --------
        Stream.audit : whether feedback left out what it may.
        Stream.trace_back : where rows came from.
        Stream.replay : a stretch to be looked into in other ways.
        caesura.runtime.Query.record : what a query takes in, kept.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 3, "mph": 62}, {"ts": 8, "mph": 9}], time="ts")
        >>> print(speeds.where("mph < 30").trace("mph = 62"))
        chosen: 1 row with mph = 62
        step 'read': emits 1 event because of them
          3  4  | 62 | +   by row 0 of 'read'
        step 'where' (mph < 30): drops them
        """
        from caesura.runtime.inspect.trace import trace

        node, fed = (self.node, ()) if recording is None else (recording.plan(), recording.fed)
        try:
            return trace(node, rows, assume=assume, limit=limit, fed=fed)
        except CaesuraError as error:
            raise error.at("trace", here()) from None

    def trace_back(
        self,
        rows: str | Pattern,
        *,
        step: str | None = None,
        limit: int = 2_000,
        recording: Recording | None = None,
    ) -> RowOrigin:
        """Where some rows of a step came from: the rows of the sources without which they are not there.

        Runs in this process, again and again, each time without some of the rows.

        Parameters
        ----------
        rows
            Which rows: a pattern of the step's columns, ``LE`` and ``RE``, as in ``"n = 2, LE = 10"``.
        step
            The step; by default the last.
        limit
            How many rows of each source are read at most.
        recording
            What a query took in, ``query.replay()`` or ``query.record()``: then the rows are those.

        Returns
        -------
        caesura.runtime.inspect.trace_back.RowOrigin
            The rows, and what each step said because of them, from that step back to the sources.

        See Also
        --------
        Stream.trace : what became of some rows of the sources.
        Stream.replay : a stretch to be looked into in other ways.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "mph": 62}, {"ts": 8, "mph": 9}]
        >>> slow = cz.from_rows(rows, time="ts").where("mph < 30")
        >>> print(slow.trace_back("mph = 9").needed[0][0])
        row 1 of 'read': 8 9
        """
        try:
            return (recording or self.replay(limit)).trace_back(rows, step=step)
        except CaesuraError as error:
            raise error.at("trace_back", here()) from None

    def replay(self, rows: int = 2_000) -> Recording:
        """The first rows of the sources, as a stretch that can be looked into.

        Parameters
        ----------
        rows
            How many of each source.

        Returns
        -------
        caesura.runtime.Recording
            What can be traced, stepped through, compared and saved as a test.

        See Also
        --------
        caesura.runtime.Query.replay : the last rows that a query has read.
        Stream.trace : what became of some rows.
        Stream.trace_back : where rows came from.

        Examples
        --------
        >>> import caesura as cz
        >>> slow = cz.from_rows([{"ts": 3, "mph": 62}], time="ts").where("mph < 30")
        >>> print(slow.replay().compare("mph = 62"))
        with and without 1 row of the input, at step 'where': the same
        """
        from caesura.runtime.query.read_again import read_first

        try:
            return read_first(self.node, rows=rows)
        except CaesuraError as error:
            raise error.at("replay", here()) from None

    def audit(self, *feedback: Meant | tuple[int, Meant]) -> FeedbackAudit:
        """Runs twice, without feedback and with it, and says whether only what it covers was left out.

        Parameters
        ----------
        *feedback
            Predicates or patterns that are assumed from the start; or pairs ``(rows, predicate)``, assumed
            once so many rows have come out.

        Returns
        -------
        caesura.runtime.inspect.feedback_audit.FeedbackAudit
            What came out in both runs; printed, whether the law of feedback was kept.

        See Also
        --------
        Stream.feedback : what a step may do about feedback.
        Stream.trace : what became of some rows.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> clicks = cz.from_rows([{"ts": t, "id": t % 2} for t in range(6)], time="ts")
        >>> print(clicks.audit(col("id") == 1))
        holds: 3 of 6 rows left out
        """
        from caesura.runtime.inspect.feedback_audit import audit_feedback

        return audit_feedback(self.node, [s if isinstance(s, tuple) else (0, s) for s in feedback])

    def preview(self, rows: int = 20) -> Preview:
        """Runs in this process until some rows have come out; they print as a timeline.

        Parameters
        ----------
        rows
            How many rows at most; final ones, so that none is taken back.

        Returns
        -------
        Preview
            A `Result` of these rows.

        See Also
        --------
        Stream.run : run to the end, in this process.
        Stream.query : a query that is fed and stepped.
        Stream.start : a streaming query on Spark.
        Stream.plot : a picture of the first rows.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").set_duration(5)
        >>> print(visits.preview(1))
         LE  RE | id |    1                                      6
          1  6  | 7  | +  [======================================)
        """
        return preview(self.node, rows)

    def plot(self, rows: int = 200, *, by: str | Sequence[str] = (), value: str | None = None) -> Figure:
        """The first rows' lifetimes and windows, drawn with plotly.

        Parameters
        ----------
        rows
            How many rows at most.
        by
            The columns that tell lines of the picture apart.
        value
            A column of numbers that is drawn as heights.

        Returns
        -------
        plotly.graph_objects.Figure
            The picture. Needs the extra ``plot``.

        See Also
        --------
        Stream.preview : the first rows.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").set_duration(5)
        >>> figure = visits.plot(by="id")
        >>> len(figure.data) > 0
        True
        """
        try:
            return self.preview(rows).plot(by=by, value=value)
        except CaesuraError as error:
            raise error.at("plot", here()) from None


UNSAVED: dict[str, Any] = {"every": "10s", "take_over": False, "on_change": "refuse", "final_rows": "refuse"}
"""What is said of a checkpoint, and what it is where nothing is said."""


def _refuse_unsaved(**given: Any) -> None:
    """Refuses what speaks of a checkpoint where there is none."""
    wrong = next((name for name, value in given.items() if value != UNSAVED[name]), None)
    if wrong is not None:
        raise PlanError(
            f"{wrong}= says something of a checkpoint, and this query has none.",
            remedy=f"Give query(checkpoint=FOLDER) too, or leave {wrong}= out.",
        ).at("query", here())
