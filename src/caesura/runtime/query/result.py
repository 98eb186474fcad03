"""Running a plan in this process, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa

from caesura.consistency import Claim, Mode
from caesura.consistency.token import is_token, number_of
from caesura.errors import PlanError, StreamError, looked_up
from caesura.events import History, Item, Page, draw, pages
from caesura.events.show import drawn_svg, plot, timeline, timeline_html, timeline_svg
from caesura.io.sinks.rows import history_table, rows_table
from caesura.io.sources.source import Source
from caesura.misuse import checked_methods
from caesura.ops.deliver import Deliver
from caesura.plan import Counters, Duration, Node, Speculate, ticks, walk
from caesura.plan.node import rebuilt, unchecked
from caesura.plan.prune import prune
from caesura.plan.step_log import StepLog, observed_by
from caesura.plan.tally import Number
from caesura.runtime.claims.views import marked_rows
from caesura.runtime.graph.schedule import Schedule, ScheduleName
from caesura.runtime.graph.utility import Utility
from caesura.runtime.metrics.waiting_line import watched
from caesura.runtime.query.query import Query
from caesura.runtime.query.remarks import remarks, shown

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

Output = Literal["changes", "final", "marked"]
Drawing = Literal["text", "svg"]
BATCH_RUN_ROWS = 1 << 20
"""About how many rows are read at once where nobody looks before the end, and no step says what to leave out.

What is replaced within a page leaves no trace, and state is swept once for each.
"""


@checked_methods
@dataclass(frozen=True)
class Result:
    """What came out of a run: the items, late rows, what steps counted, and claims where they were asked for.

    Printed it is the history, a row for each event, and a line for what was late or refused; in a notebook, a
    timeline.

    Parameters
    ----------
    items
        Pages and punctuation, as they left.
    node
        The last step of the plan.
    late
        Rows that were turned away, with the reason, by source or step.
    counters
        What each step counted, by step.
    claims
        What the query claimed of its output.
    """

    items: list[Item]
    node: Node
    late: dict[str, pa.Table]
    counters: dict[str, Counters]
    claims: list[Claim] = field(default_factory=list)
    """What the query claimed of its output, where it was asked to."""

    def at(self, claim: Claim) -> History:
        """The output state that a claim is about.

        Parameters
        ----------
        claim
            One of ``claims``.

        Returns
        -------
        History
            What the items in front of the claim say.

        Examples
        --------
        >>> import caesura as cz
        >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
        >>> result = moves.run(claims=cz.tokens(every=1))
        >>> [len(result.at(claim)) for claim in result.claims]
        [1, 2, 2]
        """
        return History.of(_up_to(self.items, claim), self.node.schema)

    def marked(self) -> pa.Table:
        """The items as rows, with the first claim that covers each; null where none does yet.

        Returns
        -------
        pyarrow.Table
            ``kind``, ``LE``, ``RE``, ``RE_new``, the payload and ``claim``.

        Examples
        --------
        >>> import caesura as cz
        >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
        >>> marked = moves.run(claims=cz.tokens(every=1)).marked()
        >>> marked.select(["n", "claim"]).to_pylist()
        [{'n': 2, 'claim': 1}, {'n': 3, 'claim': 2}]
        """
        return marked_rows(self.items, self.node.schema, self.node.time).drop_columns(["row"])

    def utility(self, within: Duration) -> Utility:
        """How many rows came in time: at most so far behind the furthest start that came before them.

        Parameters
        ----------
        within
            How far behind a row may be.

        Returns
        -------
        Utility
            How many rows came, and how many of them in time.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 9, "id": 7}, {"ts": 1, "id": 8}], time="ts")
        >>> print(clicks.run().utility(5))
        1 of 2 rows (50 %) in time
        """
        seen = Utility(ticks(within, self.node.time, "bound of utility"))
        for item in self.items:
            seen.append(item)
        return seen

    @property
    def observed(self) -> dict[str, dict[str, Number | None]]:
        """What `Stream.observe` counted, by its names."""
        return observed_by(self.counters)

    def log(self, *steps: str) -> StepLog:
        """What steps counted, with the keys that your own functions `cz.note`.

        Parameters
        ----------
        *steps
            Names of steps; without any, all.

        Returns
        -------
        StepLog
            Counts by step; printed, a table.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts")
        >>> clicks.where("id > 7").run().log()["where"]["rows out"]
        1
        """
        return StepLog(self.counters, steps)

    @property
    def history(self) -> History:
        """What the items say in the end, when all corrections are applied; a `History`."""
        return History.of(self.items, self.node.schema)

    def table(self) -> pa.Table:
        """The history as an Arrow table.

        Returns
        -------
        pyarrow.Table
            ``LE`` and ``RE``, with times as the stream has them, and the payload; a null RE never ends.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts")
        >>> clicks.run().table().to_pylist()
        [{'LE': 1, 'RE': 2, 'id': 7}]
        """
        return history_table(self.items, self.node.schema, self.node.time)

    def changes(self) -> pa.Table:
        """The items as rows.

        Returns
        -------
        pyarrow.Table
            ``kind``, ``LE``, ``RE``, ``RE_new`` and the payload, as they left.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts")
        >>> clicks.run().changes().to_pylist()
        [{'kind': '+', 'LE': 1, 'RE': 2, 'RE_new': None, 'id': 7}]
        """
        return rows_table(self.items, self.node.schema, self.node.time)

    def to_pandas(self) -> pd.DataFrame:
        """The history as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            The columns of ``table``.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts")
        >>> clicks.run().to_pandas()["id"].tolist()
        [7, 9]
        """
        frame: pd.DataFrame = self.table().to_pandas()
        return frame

    @cached_property
    def remarks(self) -> list[str]:
        """What its rows do not show: what came too late or was refused, what waits, why there is nothing."""
        empty = not any(len(page) for page in pages(self.items))
        return remarks(self.node, self.late, self.counters, empty=empty)

    def _remarked(self, drawn: str) -> str:
        return "\n".join([drawn, *shown(self.remarks)])

    def __str__(self) -> str:
        return self._remarked(draw([self.history.ordered()], schema=self.node.schema, time=self.node.time))

    __repr__ = __str__

    def draw(self, *, format: Drawing = "text") -> str:
        """Every item as it came: inserts, retracts, punctuation.

        Parameters
        ----------
        format
            ``"text"``, or ``"svg"`` for a picture.

        Returns
        -------
        str
            The drawing.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 9, "id": 9}], time="ts", punctuate=cz.delay(5))
        >>> print(clicks.run().draw())
         LE  RE | id |
          1  2  | 7  | +
          9  10 | 9  | +
        -- definite: time < 4 --
        -- definite: * --
        """
        form = drawn_svg if _is_picture(format) else draw
        return form(self.items, schema=self.node.schema, time=self.node.time)

    def timeline(self, width: int = 40, *, format: Drawing = "text") -> str:
        """The history with a bar for each lifetime.

        Parameters
        ----------
        width
            How many characters wide the bars are; in a picture each takes ten pixels.
        format
            ``"text"``, or ``"svg"`` for a picture.

        Returns
        -------
        str
            The drawing.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").set_duration(5)
        >>> print(visits.run().timeline(16))
         LE  RE | id |    1              9
          1  6  | 7  | +  [========)
          4  9  | 9  | +        [========)
        """
        form = timeline_svg if _is_picture(format) else timeline
        return form(self.history.ordered(), schema=self.node.schema, time=self.node.time, width=width)

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(line)}</p>" for line in shown(self.remarks))
        return timeline_html(self.history.ordered(), self.node.schema, self.node.time) + said

    def plot(self, *, by: str | Sequence[str] = (), value: str | None = None) -> Figure:
        """Lifetimes and windows, drawn with plotly.

        Parameters
        ----------
        by
            The columns that tell lines of the picture apart.
        value
            A column of numbers that is drawn as heights.

        Returns
        -------
        plotly.graph_objects.Figure
            The picture. Needs the extra ``plot``.

        Examples
        --------
        >>> import caesura as cz
        >>> visits = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").set_duration(5)
        >>> len(visits.run().plot(by="id").data) > 0
        True
        """
        return plot(self.history.ordered(), self.node.schema, self.node.time, by=by, value=value)


def _is_picture(format: Drawing) -> bool:
    if format not in get_args(Drawing):
        raise PlanError(f"'{format}' is no form of a drawing.", remedy='Give format="text" or "svg".')
    return format == "svg"


@checked_methods
class Preview(Result):
    """The first rows of a stream; printed, they are a timeline."""

    def __str__(self) -> str:
        return self._remarked(self.timeline())

    __repr__ = __str__


def delivered(node: Node, output: Output) -> Node:
    """A plan with the step that holds or marks its output."""
    looked_up(dict.fromkeys(get_args(Output)), output, "form of output")
    if output == "changes":
        return node
    first = _in_front_of_final(node) if output == "final" else node
    return Deliver(inputs=(first,), mode=output, place=node.place)


def _in_front_of_final(last: Node) -> Node:
    """A plan whose steps know that only final rows of it are wanted."""
    if all(node.in_front_of_final() is node for node in walk(last)):
        return last
    made: dict[str, Node] = {}
    for node in walk(last):
        inputs = tuple(made[child.fingerprint] for child in node.inputs)
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        made[node.fingerprint] = (rebuilt(node, inputs) if changed else node).in_front_of_final()
    return made[last.fingerprint]


def query_of(
    node: Node,
    output: Output,
    speculate: Speculate | None,
    schedule: Schedule | ScheduleName | None,
    claims: Mode | None = None,
    state_memory: int | str | None = None,
) -> Query:
    """A query with one output."""
    outputs = prune({"out": delivered(node, output)})
    pace = pace_of(output, speculate)
    return Query(
        outputs,
        speculate=pace,
        schedule=schedule,
        claims=claims,
        patient=True,
        state_memory=state_memory,
    )


def pace_of(output: Output, speculate: Speculate | None) -> Speculate:
    """When windows leave: who takes final rows only needs no guesses."""
    if speculate is not None:
        looked_up(dict.fromkeys(get_args(Speculate)), speculate, "way to speculate")
    return speculate or ("watermark" if output == "final" else "arrival")


def run(
    node: Node,
    *,
    output: Output = "changes",
    speculate: Speculate | None = None,
    schedule: Schedule | ScheduleName | None = None,
    claims: Mode | None = None,
) -> Result:
    """Runs a plan until every source is at its end."""
    plan = node if claims is not None else for_one_run(node)
    query = query_of(plan, output, speculate, schedule, claims)
    if claims is None:
        enlarge(query)
    watched(query).run()
    return Result(query.take("out"), node, query.late(), query.counters(), query.claims)


def enlarge(query: Query, rows: int = BATCH_RUN_ROWS) -> None:
    """Lets a query that nobody looks at before its end read in large batches."""
    if not any(cell.node.sends_feedback for cell in query.graph.cells):
        for reader in query.parts.readers.values():
            reader.enlarge(rows)


def for_one_run(last: Node) -> Node:
    """A plan for a query that is not saved: sources need not be known by their rows."""
    made: dict[Node, Node] = {}
    stack = [last]
    while stack:
        node = stack[-1]
        waiting = [child for child in node.inputs if child not in made]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if node in made:
            continue
        inputs = tuple(made[child] for child in node.inputs)
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        made[node] = own = unchecked(node, inputs=inputs) if changed else node
        if isinstance(own, Source):
            made[node] = own.for_one_run
    return made[last]


def _up_to(items: list[Item], claim: Claim) -> list[Item]:
    """The items in front of a claim's token."""
    for place, item in enumerate(items):
        if is_token(item) and number_of(item) == claim.number:
            return items[:place]
    raise StreamError(
        f"claim {claim.number} is not in this output.", remedy="Take one of the claims that came with it."
    )


def preview(node: Node, rows: int) -> Preview:
    """Runs a plan until some rows have come out; final ones, so that none is taken back."""
    query = watched(query_of(node, "final", None, None))
    items: list[Item] = []
    seen = 0
    while seen < rows and query.step():
        fresh = query.take("out")
        items += fresh
        seen += sum(len(page) for page in pages(fresh))
    query.runner.rest()
    query.close()
    return Preview(_first(items, rows), node, query.late(), query.counters())


def _first(items: list[Item], rows: int) -> list[Item]:
    first: list[Item] = []
    for item in items:
        if isinstance(item, Page):
            item = item.slice(0, min(rows, len(item)))
            rows -= len(item)
        first.append(item)
    return first
