"""`Stream`: what users type. Every method gives a new stream; nothing runs until it is asked to.

>>> import caesura as cz
>>> from caesura import col
>>> speeds = cz.from_rows([{"ts": 3, "seg": 1, "mph": 62}, {"ts": 8, "seg": 1, "mph": 48}], time="ts")
>>> print(speeds.where(col("mph") > 50).select("seg", kmh=col("mph") * 1.6).run())
 LE  RE | seg kmh  |
  3  4  | 1   99.2 | +
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from caesura.api.grids import bucketed, quantised
from caesura.api.grouped import Grouped, Windowed
from caesura.errors import CaesuraError, PlanError, closest
from caesura.expr import Expr, as_column, as_expr, col, name_of
from caesura.feedback.explain import explain_feedback
from caesura.feedback.predicates import patterns_of
from caesura.fixpoint.automaton import Automaton, match
from caesura.ops.aggregate.functions import Aggregate
from caesura.ops.chop import Chop
from caesura.ops.clip import Clip
from caesura.ops.impute import Fill, Impute
from caesura.ops.join import How, Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime, Rule
from caesura.ops.pace import Pace
from caesura.ops.select import Select
from caesura.ops.speak import Deadline, FeedbackFrom, Instrument, Wish
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.plan import Duration, Node, here, ticks, walk
from caesura.plan.cut import cut
from caesura.plan.explain import explain, explain_stages
from caesura.plan.feedback import Switches
from caesura.plan.outline import html, mermaid, outline
from caesura.plan.prune import prune
from caesura.punctuation import Pattern
from caesura.runtime.audit import Audit, audit
from caesura.runtime.running import Output, Preview, Result, delivered, preview, query_of, run
from caesura.runtime.trace import Trace, trace

if TYPE_CHECKING:
    from pathlib import Path

    from plotly.graph_objects import Figure
    from pyspark.sql import DataFrame, SparkSession

    from caesura import qre
    from caesura.consistency import Mode
    from caesura.contracts import Verdict
    from caesura.runtime import Query, Schedule
    from caesura.spark import SparkQuery
    from caesura.spark.sinks import Sink

On = str | Sequence[str] | dict[str, str]


class Stream:
    """A stream of events with lifetimes and corrections."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def schema(self) -> pa.Schema:
        """The payload columns."""
        return self.node.schema

    @property
    def columns(self) -> list[str]:
        """The names of the payload columns."""
        return list(self.node.schema.names)

    def __repr__(self) -> str:
        return f"Stream({', '.join(f'{f.name} {f.type}' for f in self.schema)})"

    def _repr_html_(self) -> str:
        """The plan as a table, with what the contract check says of it."""
        verdict = self.check()
        badge, colour = ("safe", "#1a7f37") if verdict.safe else ("unsafe: see .check()", "#b3261e")
        style = f"border-radius:8px;padding:0 6px;color:white;background:{colour}"
        return f'<p><span style="{style}">{badge}</span></p>{html(outline(self.node))}'

    # Rows and columns.

    def where(self, predicate: Expr | bool, *, name: str = "") -> Stream:
        """Keeps the events whose payload satisfies the predicate."""
        try:
            test = as_expr(predicate)
        except CaesuraError as error:
            raise error.at(name or "where", here()) from None
        return Stream(Where(inputs=(self.node,), predicate=test, name=name))

    filter = where

    def select(self, *columns: str | Expr, name: str = "", **computed: Any) -> Stream:
        """Keeps, renames and computes columns: ``select("id", kmh=col("mph") * 1.6)``."""
        pairs = [(name_of(as_column(c)), as_column(c)) for c in columns]
        pairs += [(output, as_expr(expr)) for output, expr in computed.items()]
        return Stream(Select(inputs=(self.node,), columns=tuple(pairs), name=name))

    def with_columns(self, **computed: Any) -> Stream:
        """All columns, with some computed anew or added."""
        pairs: dict[str, Expr] = {name: col(name) for name in self.columns}
        pairs.update({name: as_expr(expr) for name, expr in computed.items()})
        return Stream(Select(inputs=(self.node,), columns=tuple(pairs.items())))

    def drop(self, *names: str) -> Stream:
        """All columns but these."""
        for name in names:
            self._known(name, "drop")
        pairs = [(name, col(name)) for name in self.columns if name not in names]
        return Stream(Select(inputs=(self.node,), columns=tuple(pairs)))

    def rename(self, **names: str) -> Stream:
        """Renames columns: ``rename(new="old")``."""
        for old in names.values():
            self._known(old, "rename")
        new = {old: output for output, old in names.items()}
        return Stream(
            Select(inputs=(self.node,), columns=tuple((new.get(n, n), col(n)) for n in self.columns))
        )

    def _known(self, name: str, step: str) -> None:
        if name not in self.columns:
            error = PlanError(f"there is no column '{name}'.", remedy=closest(name, self.columns))
            raise error.at(step, here())

    # Several streams.

    def union(self, *others: Stream, name: str = "") -> Stream:
        """All events of this stream and others with the same columns."""
        return Stream(Union(inputs=(self.node, *(o.node for o in others)), name=name))

    def join(
        self,
        other: Stream,
        on: On,
        *,
        how: How = "inner",
        where: Expr | None = None,
        thrifty: bool = False,
        impatient: bool = False,
        name: str = "",
    ) -> Stream:
        """Pairs of events with equal keys that live at the same time; lifetimes intersect.

        ``on`` is a column name, several, or ``{"left": "right"}``; ``where`` is a further predicate
        over both sides' columns. ``how``: inner, left, right, full, semi, anti. A ``thrifty`` inner join says
        to one side where the other is settled and empty; an ``impatient`` one asks first for what would meet.
        """
        node = Join(
            inputs=(self.node, other.node),
            on=_pairs(on),
            how=how,
            residual=where,
            thrifty=thrifty,
            impatient=impatient,
            name=name,
        )
        return Stream(node)

    def difference(self, other: Stream, *, mode: Literal["bag", "set"] = "bag", name: str = "") -> Stream:
        """Events of this stream that the other has not: as bags (copies cancel) or as sets."""
        return Stream(Layers(inputs=(self.node, other.node), count=mode, name=name))

    def distinct(self, *, name: str = "") -> Stream:
        """Each payload once wherever it is alive, on maximal intervals."""
        return Stream(Layers(inputs=(self.node,), count="distinct", name=name))

    def clip(self, by: Stream, on: On = (), *, name: str = "") -> Stream:
        """Ends each event where the next event of ``by`` with the same key begins."""
        return Stream(Clip(inputs=(self.node, by.node), on=_pairs(on), how="semi", name=name))

    # Lifetimes.

    def _lifetime(self, rule: Rule, amount: Duration = 0, per: int = 1) -> Stream:
        try:
            size = ticks(amount, self.node.time, f"amount of {rule}")
        except CaesuraError as error:
            raise error.at(rule, here()) from None
        return Stream(Lifetime(inputs=(self.node,), rule=rule, amount=size, per=per))

    def shift(self, by: Duration) -> Stream:
        """Moves lifetimes, and punctuation with them."""
        return self._lifetime("shift", by)

    def set_duration(self, to: Duration) -> Stream:
        """Every event lives this long from its start."""
        return self._lifetime("set_duration", to)

    def extend(self, by: Duration) -> Stream:
        """Moves ends; an event that loses its whole lifetime vanishes."""
        return self._lifetime("extend", by)

    def scale(self, by: int | float | Fraction) -> Stream:
        """Multiplies lifetimes, starts fixed."""
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
        try:
            size = ticks(period, self.node.time, "period of chop")
        except CaesuraError as error:
            raise error.at("chop", here()) from None
        return Stream(Chop(inputs=(self.node,), period=size))

    # Groups and windows.

    def group_by(self, *keys: str) -> Grouped:
        """Groups the steps behind it by these columns."""
        return Grouped(self.node, keys)

    def tumbling(self, size: Duration, *, offset: Duration = 0) -> Windowed:
        """Windows of one size laid end to end, over all events."""
        return Grouped(self.node, ()).tumbling(size, offset=offset)

    def hopping(self, size: Duration, *, every: Duration, offset: Duration = 0) -> Windowed:
        """Windows of one size, one starting ``every`` so often, over all events."""
        return Grouped(self.node, ()).hopping(size, every=every, offset=offset)

    def snapshot(self) -> Windowed:
        """The longest stretches on which no event starts or ends."""
        return Grouped(self.node, ()).snapshot()

    def count_by_start(self, n: int) -> Windowed:
        """From every distinct start over n of them."""
        return Grouped(self.node, ()).count_by_start(n)

    def count_by_end(self, n: int) -> Windowed:
        """From every distinct end over n of them."""
        return Grouped(self.node, ()).count_by_end(n)

    def session(self, gap: Duration, *, longest: Duration | None = None) -> Windowed:
        """Events with less than ``gap`` of silence between them."""
        return Grouped(self.node, ()).session(gap, longest=longest)

    def bucket(
        self, attr: str, size: Duration, *, slide: Duration | None = None, origin: int = 0, name: str = ""
    ) -> Stream:
        """One row per window of an ordered column, with the window's number in ``wid``."""
        return bucketed(self, attr, size, slide, origin, name)

    def tumbling_lifetimes(self, size: Duration, *, offset: Duration = 0) -> Stream:
        """Trill's tumbling windows: each event from the end of its window on, as long as a window."""
        return quantised(self, size, size, offset)

    def hopping_lifetimes(self, size: Duration, *, every: Duration, offset: Duration = 0) -> Stream:
        """Trill's hopping windows: each event from the end of its hop on, as long as a window."""
        return quantised(self, size, every, offset)

    def totals(self, *, name: str = "", **aggregates: Aggregate) -> Stream:
        """One row over all events, whatever their lifetimes."""
        return Grouped(self.node, ()).totals(name=name, **aggregates)

    def match(
        self,
        query: qre.Query | Automaton,
        *,
        order_by: Sequence[str] = (),
        ticks_every: Duration | None = None,
        lives: Literal["point", "until_next"] = "point",
        name: str = "",
    ) -> Stream:
        """The values of a quantitative regular expression over the events in the order of time.

        See `caesura.qre` for the language. Or the matches of an automaton with registers, made by
        ``cz.automaton``.
        """
        from caesura import qre

        if isinstance(query, Automaton):
            return Stream(match(self.node, query, order_by=tuple(order_by), name=name))

        every = None if ticks_every is None else ticks(ticks_every, self.node.time, "tick period")
        options: dict[str, Any] = {"order_by": order_by, "ticks_every": every, "lives": lives, "name": name}
        return Stream(qre.over(self.node, query, **options))

    # Feedback.

    def feedback(self, *, exploit: bool = True, propagate: bool = True) -> Stream:
        """What the last step may do about feedback: act on it, and tell the steps above."""
        return Stream(replace(self.node, switches=Switches(exploit, propagate)))

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
        return Stream(Pace(inputs=inputs, within=bound, tells=tells, name=name))

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
        return Stream(node)

    def feedback_from(
        self,
        control: Stream,
        intent: Wish = "assumed",
        *,
        on: str | Sequence[str],
        leaving: Wish | None = None,
        name: str = "",
    ) -> Stream:
        """Every row of another stream is feedback on this one, by the columns ``on``, until it is retracted.

        ``leaving`` says something else of a row that is taken back: what enters may be demanded and what
        leaves assumed away.
        """
        names = (on,) if isinstance(on, str) else tuple(on)
        node = FeedbackFrom(
            inputs=(self.node, control.node), intent=intent, on=names, leaving=leaving, name=name
        )
        return Stream(node)

    def impute(
        self,
        column: str,
        by: Fill,
        *,
        missing: Expr | None = None,
        budget: int | None = None,
        name: str = "",
    ) -> Stream:
        """Fills a column where it is null (or ``missing`` is true) by an archive or a slow function.

        ``by`` takes a batch of rows and gives one value for each; ``budget`` rows are worked on whenever an
        item is taken, and the others wait. Rows that will be ignored are struck from the list.
        """
        test = col(column).is_null() if missing is None else missing
        node = Impute(inputs=(self.node,), value=column, by=by, missing=test, budget=budget, name=name)
        return Stream(node)

    def deadline(self, after: Duration, *, name: str = "") -> Stream:
        """Demands what there is when no result came while the source went on for so long."""
        source = next(node for node in walk(self.node) if not node.inputs)
        bound = self._ticks(after, "deadline", "deadline")
        return Stream(Deadline(inputs=(self.node, source), after=bound, name=name))

    def _ticks(self, given: Duration, what: str, step: str) -> int:
        try:
            return ticks(given, self.node.time, what)
        except CaesuraError as error:
            raise error.at(step, here()) from None

    # Looking and running.

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

    def check(
        self,
        output: Output = "changes",
        *,
        schemes: Mapping[str, str] | None = None,
        lifetimes: Mapping[str, int | Literal["finite"]] | None = None,
        few: Mapping[str, Iterable[str]] | None = None,
    ) -> Verdict:
        """Whether state stays bounded and every answer comes out; if not, why, and what to change.

        By source: ``schemes`` says what punctuation lies in its data, ``lifetimes`` how long its events
        live at most, ``few`` which columns have a bounded set of values, where the plan cannot know.
        """
        from caesura.contracts import check

        try:
            return check(delivered(self.node, output), schemes=schemes, lifetimes=lifetimes, few=few)
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
    ) -> Query:
        """The plan as a query in this process, to be fed, stepped and published; its output is 'out'."""
        return query_of(self.node, output, speculate, schedule, claims)

    def trace(self, rows: str | Pattern, *, assume: str | Pattern | None = None, most: int = 10_000) -> Trace:
        """What became of some rows of the sources: ``trace("ts = 18, segment in {1, 3}")``.

        Runs in this process twice, with the rows and without them, over ``most`` rows of each source;
        every step shows what it says because of them. ``assume`` is feedback from the start.
        """
        try:
            return trace(self.node, rows, assume=assume, most=most)
        except CaesuraError as error:
            raise error.at("trace", here()) from None

    # On Spark.

    def start(
        self,
        spark: SparkSession,
        *,
        sink: Sink | str | Path | None = None,
        checkpoint: str | Path | None = None,
        output: Output = "changes",
        speculate: Literal["arrival", "watermark"] | None = None,
        trigger: str = "continuous",
        files_per_epoch: int | None = None,
        feedback: bool = False,
        max_buckets: int | None = None,
        ahead: Duration | None = None,
        allow_unbounded: bool = False,
        lifetimes: Mapping[str, int | Literal["finite"]] | None = None,
        few: Mapping[str, Iterable[str]] | None = None,
    ) -> SparkQuery:
        """Starts the plan on Spark as one streaming query.

        ``sink`` is 'memory', 'console', a folder for Parquet files, or a sink of `caesura.spark`;
        ``trigger`` is 'continuous', 'available' (all there is now, then stop) or a time like '10 seconds'.
        With ``feedback`` the running query can be spoken to: ``query.assume(...)`` and its like.
        A checkpoint can be spread over more partitions later, up to ``max_buckets``: `caesura rescale`.
        No folder of files is read further ``ahead`` of the slowest source, in event time, like '10m'.
        A plan whose state would grow without bound is refused, unless ``allow_unbounded``, which warns
        of what will grow; ``lifetimes`` and ``few`` say what `check` cannot see.
        """
        from caesura.contracts import require_safe
        from caesura.spark import start

        last = delivered(self.node, output)
        require_safe(last, allow_unbounded=allow_unbounded, lifetimes=lifetimes, few=few)

        return start(
            {"out": self.node},
            spark,
            sink=sink,
            checkpoint=checkpoint,
            output=output,
            speculate=speculate,
            trigger=trigger,
            files_per_epoch=files_per_epoch,
            feedback=feedback,
            max_buckets=max_buckets,
            ahead=ahead,
        )

    def run_batch(self, spark: SparkSession, *, output: Output = "changes") -> Result:
        """Runs the plan on Spark over all there is now, as one epoch."""
        from caesura.spark import run_batch

        return run_batch(self.node, spark, output=output)

    def to_spark(
        self, spark: SparkSession, *, output: Output = "changes", loop_log: str | Path | None = None
    ) -> DataFrame:
        """The plan as a DataFrame of changes: kind, LE, RE, RE_new and the payload columns.

        A plan in which something goes backwards needs a ``loop_log``: a folder of this query's own.
        """
        from caesura.spark import to_spark

        return to_spark(self.node, spark, output=output, loop_log=loop_log)

    def audit(self, *said: Pattern | Expr | bool | tuple[int, Pattern | Expr | bool]) -> Audit:
        """Runs twice, without feedback and with it, and says whether only what it covers was left out.

        Each of ``said`` is assumed from the start, or, as a pair, once so many rows have come out.
        """
        return audit(self.node, [s if isinstance(s, tuple) else (0, s) for s in said])

    def preview(self, rows: int = 20) -> Preview:
        """Runs in this process until some rows have come out; they print as a timeline."""
        return preview(self.node, rows)

    def plot(self, rows: int = 200, *, by: str | Sequence[str] = (), value: str | None = None) -> Figure:
        """The first rows' lifetimes and windows, drawn with plotly."""
        try:
            return self.preview(rows).plot(by=by, value=value)
        except CaesuraError as error:
            raise error.at("plot", here()) from None


def _pairs(on: On) -> tuple[tuple[str, str], ...]:
    if isinstance(on, str):
        return ((on, on),)
    if isinstance(on, dict):
        return tuple(on.items())
    return tuple((name, name) for name in on)
