"""Running a plan in this process, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from caesura.consistency import Claim, Mode
from caesura.consistency.token import is_token, number_of
from caesura.errors import StreamError
from caesura.events import History, Item, Page, draw, pages
from caesura.events.show import plot, timeline, timeline_html
from caesura.io.sinks.rows import history_table, rows_table
from caesura.misuse import checked_methods
from caesura.ops.deliver import Deliver
from caesura.plan import Counters, Node, walk
from caesura.plan.node import rebuilt
from caesura.plan.prune import prune
from caesura.runtime.graph.schedule import Schedule
from caesura.runtime.query.query import Query

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

Output = Literal["changes", "final", "marked"]


@checked_methods
@dataclass(frozen=True)
class Result:
    """The items that left a plan, and what its steps counted."""

    items: list[Item]
    node: Node
    late: dict[str, pa.Table]
    counters: dict[str, Counters]
    claims: list[Claim] = field(default_factory=list)
    """What the query claimed of its output, where it was asked to."""

    def at(self, claim: Claim) -> History:
        """The output state that a claim is about."""
        return History.of(_up_to(self.items, claim), self.node.schema)

    def marked(self) -> pa.Table:
        """The items as rows, with the first claim that covers each; null where none does yet."""
        covers: list[pa.Array] = []
        waiting = 0
        for item in self.items:
            if isinstance(item, Page):
                waiting += len(item)
            elif is_token(item):
                covers.append(pa.array([number_of(item)] * waiting, pa.int64()))
                waiting = 0
        covers.append(pa.nulls(waiting, pa.int64()))
        return self.changes().add_column(0, "claim", pa.chunked_array(covers))

    @property
    def history(self) -> History:
        """What the items say in the end."""
        return History.of(self.items, self.node.schema)

    def table(self) -> pa.Table:
        """The history as an Arrow table, times as the stream has them; a null RE never ends."""
        return history_table(self.items, self.node.schema, self.node.time)

    def changes(self) -> pa.Table:
        """The items as rows: kind, LE, RE, RE_new, payload."""
        return rows_table(self.items, self.node.schema, self.node.time)

    def to_pandas(self) -> pd.DataFrame:
        """The history as a pandas frame."""
        frame: pd.DataFrame = self.table().to_pandas()
        return frame

    def __str__(self) -> str:
        return draw([self.history.ordered()], schema=self.node.schema, time=self.node.time)

    __repr__ = __str__

    def draw(self) -> str:
        """Every item as it came: inserts, retracts, punctuation."""
        return draw(self.items, schema=self.node.schema, time=self.node.time)

    def timeline(self, width: int = 40) -> str:
        """The history with a bar for each lifetime."""
        return timeline(self.history.ordered(), schema=self.node.schema, time=self.node.time, width=width)

    def _repr_html_(self) -> str:
        return timeline_html(self.history.ordered(), self.node.schema, self.node.time)

    def plot(self, *, by: str | Sequence[str] = (), value: str | None = None) -> Figure:
        """Lifetimes and windows, drawn with plotly: ``plot(by="segment", value="speed")``."""
        return plot(self.history.ordered(), self.node.schema, self.node.time, by=by, value=value)


@checked_methods
class Preview(Result):
    """The first rows of a stream; printed, they are a timeline."""

    def __str__(self) -> str:
        return self.timeline()

    __repr__ = __str__


def delivered(node: Node, output: Output) -> Node:
    """A plan with the step that holds or marks its output."""
    if output == "changes":
        return node
    first = _in_front_of_final(node) if output == "final" else node
    return Deliver(inputs=(first,), mode=output, place=node.place)


def _in_front_of_final(last: Node) -> Node:
    """A plan whose steps know that only final rows of it are wanted."""
    made: dict[str, Node] = {}
    for node in walk(last):
        inputs = tuple(made[child.fingerprint] for child in node.inputs)
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        made[node.fingerprint] = (rebuilt(node, inputs) if changed else node).in_front_of_final()
    return made[last.fingerprint]


def query_of(
    node: Node,
    output: Output,
    speculate: Literal["arrival", "watermark"] | None,
    schedule: Schedule | None,
    claims: Mode | None = None,
) -> Query:
    """A query with one output; who takes final rows only needs no guesses."""
    chosen = speculate or ("watermark" if output == "final" else "arrival")
    return Query(prune({"out": delivered(node, output)}), speculate=chosen, schedule=schedule, claims=claims)


def run(
    node: Node,
    *,
    output: Output = "changes",
    speculate: Literal["arrival", "watermark"] | None = None,
    schedule: Schedule | None = None,
    claims: Mode | None = None,
) -> Result:
    """Runs a plan until every source is at its end."""
    query = query_of(node, output, speculate, schedule, claims)
    query.run()
    return Result(query.take("out"), node, query.late(), query.counters(), query.claims)


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
    query = query_of(node, "final", None, None)
    items: list[Item] = []
    seen = 0
    while seen < rows and query.step():
        fresh = query.take("out")
        items += fresh
        seen += sum(len(page) for page in pages(fresh))
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
