"""Looking at a plan, and running it in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from caesura.api.planned import Planned
from caesura.errors import CaesuraError, PlanError
from caesura.expr import Expr
from caesura.feedback.explain import explain_feedback
from caesura.feedback.predicates import patterns_of
from caesura.misuse import renamed
from caesura.plan import here
from caesura.plan.cut import cut
from caesura.plan.explain import explain, explain_stages
from caesura.plan.outline import html, mermaid, outline
from caesura.plan.prune import prune
from caesura.punctuation import Pattern
from caesura.runtime.durable.making import durable_query
from caesura.runtime.inspect.feedback_audit import FeedbackAudit, audit_feedback
from caesura.runtime.inspect.trace import Trace, trace
from caesura.runtime.query.result import Output, Preview, Result, delivered, preview, query_of, run

if TYPE_CHECKING:
    from pathlib import Path

    from plotly.graph_objects import Figure

    from caesura.consistency import Mode
    from caesura.contracts import Verdict
    from caesura.io.sinks.protocol import Sink
    from caesura.plan import Duration
    from caesura.runtime import Query, Schedule


class RunSteps(Planned):
    """Looking at a plan, and running it in this process."""

    def explain(
        self,
        what: Literal["plan", "spark", "feedback", "mermaid", "html"] = "plan",
        *,
        pattern: Pattern | Expr | bool | None = None,
    ) -> str:
        """The plan: per step its columns, its properties, and the punctuation it carries.

        ``explain("spark")`` shows the stages that it runs in on Spark, the exchanges and why they are there;
        ``explain("feedback", pattern=...)`` what each step would do if such rows were assumed away;
        "mermaid" and "html" give the plan to be drawn.
        """
        if what == "feedback":
            return self._explain_feedback(pattern)
        if what == "spark":
            return explain_stages(cut(prune({"out": self.node})))
        if what == "mermaid":
            return mermaid(outline(self.node))
        if what == "html":
            return html(outline(self.node))
        return explain(self.node)

    def _explain_feedback(self, pattern: Pattern | Expr | bool | None) -> str:
        if pattern is None:
            error = PlanError(
                "explain('feedback') wants to know which rows.",
                remedy="Say so: explain('feedback', pattern=col('id') == 4).",
            )
            raise error.at("explain", here())
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
    ) -> Verdict:
        """Whether state stays bounded and every answer comes out; if not, why, and what to change.

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
            )
        except CaesuraError as error:
            raise error.at("check", here()) from None

    def run(
        self,
        *,
        output: Output = "changes",
        speculate: Literal["arrival", "watermark"] | None = None,
        schedule: Schedule | None = None,
        claims: Mode | None = None,
    ) -> Result:
        """Runs in this process until every source is at its end, and gives what came out.

        With ``claims`` (`cz.tokens()`, `cz.heeding()`, ...) the output names the input prefix that each of
        its consistent states answers for.
        """
        return run(self.node, output=output, speculate=speculate, schedule=schedule, claims=claims)

    def query(
        self,
        *,
        output: Output = "changes",
        speculate: Literal["arrival", "watermark"] | None = None,
        schedule: Schedule | None = None,
        claims: Mode | None = None,
        checkpoint: str | Path | None = None,
        every: Duration = "10s",
        sink: Sink | str | Path | None = None,
    ) -> Query:
        """The plan as a query in this process, to be fed, stepped and published; its output is 'out'.

        With a ``checkpoint``, a folder or an object store, it is saved ``every`` so often and at its end, and
        goes on from there when it is made again, in whatever process. Its output goes to the ``sink`` when it
        is saved: a folder for Parquet files, or a sink as Spark takes it; without, `take` gives it.
        """
        if checkpoint is None and sink is None:
            return query_of(self.node, output, speculate, schedule, claims)
        try:
            return durable_query(
                delivered(self.node, output),
                checkpoint,
                sink,
                every=every,
                claims=claims,
                schedule=schedule,
                speculate=speculate or ("watermark" if output == "final" else "arrival"),
            )
        except CaesuraError as error:
            raise error.at("query", here()) from None

    @renamed(most="limit")
    def trace(
        self, rows: str | Pattern, *, assume: str | Pattern | None = None, limit: int = 10_000
    ) -> Trace:
        """What became of some rows of the sources: ``trace("ts = 18, segment in {1, 3}")``.

        Runs in this process twice, with the rows and without them, over ``limit`` rows of each source;
        every step shows what it says because of them. ``assume`` is feedback from the start.
        """
        try:
            return trace(self.node, rows, assume=assume, limit=limit)
        except CaesuraError as error:
            raise error.at("trace", here()) from None

    def audit(self, *feedback: Pattern | Expr | bool | tuple[int, Pattern | Expr | bool]) -> FeedbackAudit:
        """Runs twice, without feedback and with it, and says whether only what it covers was left out.

        Each is assumed from the start, or, as a pair, once so many rows have come out.
        """
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
