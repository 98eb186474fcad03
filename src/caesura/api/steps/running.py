"""Looking at a plan, and running it in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from caesura.api.planned import Planned
from caesura.errors import CaesuraError, PlanError
from caesura.feedback.predicates import Meant, patterns_of
from caesura.misuse import renamed, shown
from caesura.plan import here, ticks
from caesura.plan.cut import cut
from caesura.plan.explain import explain, explain_stages
from caesura.plan.outline import html, mermaid, outline
from caesura.plan.prune import prune
from caesura.printable import printable
from caesura.punctuation import Pattern
from caesura.runtime.query.result import Output, Preview, Result, delivered, preview, query_of, run

if TYPE_CHECKING:
    from pathlib import Path

    from plotly.graph_objects import Figure

    from caesura.consistency import Mode
    from caesura.contracts import Bound, SourceRate, Verdict
    from caesura.io.sinks.protocol import Sink
    from caesura.plan import Duration, Speculate
    from caesura.runtime import Query, Schedule, ScheduleName
    from caesura.runtime.durable.change import OnChange
    from caesura.runtime.inspect.feedback_audit import FeedbackAudit
    from caesura.runtime.inspect.trace import Trace
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
        """The plan: per step its columns, its properties, and the punctuation it carries.

        ``explain("spark")`` shows the stages that it runs in on Spark, the exchanges and why they are there;
        ``explain("feedback", pattern=...)`` what each step would do if such rows were assumed away;
        "mermaid" and "html" give the plan to be drawn.
        """
        if what == "feedback":
            return self._explain_feedback(pattern)
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
        lifetimes: Mapping[str, int | Literal["finite"]] | None = None,
        bounded_columns: Mapping[str, Iterable[str]] | None = None,
        fix: bool = False,
    ) -> Verdict:
        """Whether state stays bounded and every answer comes out; if not, why, and what to change.

        With ``fix`` an unsafe plan is shown mended too, by the first remedy that needs no more to be said:
        ``cz.Stream(verdict.mended.plan)`` is that plan.

        By source: ``schemes`` says what punctuation lies in its data, ``lifetimes`` how long its events
        live at most, ``bounded_columns`` which columns have a bounded set of values, where the plan cannot
        know.
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
        lifetimes: Mapping[str, int | Literal["finite"]] | None = None,
        widths: Mapping[str, int] | None = None,
    ) -> list[Bound]:
        """Per step, how many rows and bytes it holds at most, and how far its output is behind.

        ``rates`` says of each source (events, per, within): at most so many events start within any such
        time, and each is covered by punctuation so soon; and of each loop, by its name, how many rows go
        around it. ``widths`` gives the bytes of columns of any length.

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
                name: rate
                if isinstance(rate, SourceRate)
                else SourceRate(rate[0], *(ticks(d, self.node.time, "rate") for d in rate[1:]))
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

        With ``claims`` (`cz.tokens()`, `cz.heeding()`, ...) the output names the input prefix that each of
        its consistent states answers for. With ``threads`` the rows of different keys are worked on at once,
        and another thread reads; what comes out is the same. Claims, loops, feedback between steps and
        modules of your own keep to one thread.
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
        threads: int = 1,
    ) -> Query | ThreadedQuery:
        """The plan as a query in this process, to be fed, stepped and published; its output is 'out'.

        With a ``checkpoint``, a folder or an object store, it is saved ``every`` so often and at its end, and
        goes on from there when it is made again, in whatever process. Its output goes to the ``sink`` when it
        is saved: a folder for Parquet files, or a sink as Spark takes it; without, `take` gives it. A
        checkpoint that another process goes on with is refused, unless you ``take_over``.

        Where the checkpoint is of another plan, ``on_change`` may be "continue": state that fits is kept, and
        the new plan holds from here on; or "rebuild": the sources are read again as far as they were, and the
        output is corrected to what the new plan would have given.

        With ``threads``, as in `run`, a query is run or stepped and its output taken; what else queries do
        is refused by name.
        """
        if threads != 1 or isinstance(threads, bool):
            return self._query_on_threads(
                threads,
                saved=checkpoint is not None or sink is not None,
                output=output,
                speculate=speculate,
                schedule=schedule,
                claims=claims,
            )
        if checkpoint is None and sink is None:
            return query_of(self.node, output, speculate, schedule, claims)
        from caesura.runtime.durable.making import durable_query

        try:
            return durable_query(
                delivered(self.node, output),
                checkpoint,
                sink,
                every=every,
                claims=claims,
                schedule=schedule,
                speculate=speculate or ("watermark" if output == "final" else "arrival"),
                take_over=take_over,
                on_change=on_change,
            )
        except CaesuraError as error:
            raise error.at("query", here()) from None

    def _query_on_threads(self, threads: int, *, saved: bool, **options: Any) -> Query | ThreadedQuery:
        from caesura.runtime.threads.running import check_threads, query_on_threads

        try:
            count = check_threads(threads)
            if saved:
                raise PlanError(
                    f"a query on {threads} threads has no checkpoint, and no sink that goes with one.",
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
        """What became of some rows of the sources: ``trace("ts = 18, segment in {1, 3}")``.

        Runs in this process twice, with the rows and without them, over ``limit`` rows of each source;
        every step shows what it says because of them. ``assume`` is feedback from the start. With a
        ``recording`` of a query (`query.record()`) the rows are those that it took in.
        """
        from caesura.runtime.inspect.trace import trace

        node, fed = (self.node, ()) if recording is None else (recording.plan(), recording.fed)
        try:
            return trace(node, rows, assume=assume, limit=limit, fed=fed)
        except CaesuraError as error:
            raise error.at("trace", here()) from None

    def audit(self, *feedback: Meant | tuple[int, Meant]) -> FeedbackAudit:
        """Runs twice, without feedback and with it, and says whether only what it covers was left out.

        Each is assumed from the start, or, as a pair, once so many rows have come out.
        """
        from caesura.runtime.inspect.feedback_audit import audit_feedback

        return audit_feedback(self.node, [s if isinstance(s, tuple) else (0, s) for s in feedback])

    def preview(self, rows: int = 20) -> Preview:
        """Runs in this process until some rows have come out; they print as a timeline."""
        return preview(self.node, rows)

    def plot(self, rows: int = 200, *, by: str | Sequence[str] = (), value: str | None = None) -> Figure:
        """The first rows' lifetimes and windows, drawn with plotly."""
        try:
            return self.preview(rows).plot(by=by, value=value)
        except CaesuraError as error:
            raise error.at("plot", here()) from None
