"""Running a plan in this process, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from caesura.events import History, Item, Page, draw, pages
from caesura.io.sink import rows_table
from caesura.ops.deliver import Deliver
from caesura.plan import Counters, Node
from caesura.plan.prune import prune
from caesura.runtime.query import Query
from caesura.runtime.schedule import Schedule

if TYPE_CHECKING:
    import pandas as pd

Output = Literal["changes", "final", "marked"]


@dataclass(frozen=True)
class Result:
    """The items that left a plan, and what its steps counted."""

    items: list[Item]
    node: Node
    late: dict[str, pa.Table]
    counters: dict[str, Counters]

    @property
    def history(self) -> History:
        """What the items say in the end."""
        return History.of(self.items, self.node.schema)

    def table(self) -> pa.Table:
        """The history as an Arrow table, times as the stream has them; a null RE never ends."""
        return rows_table([self.history.page], self.node.schema, self.node.time).drop_columns(
            ["kind", "RE_new"]
        )

    def changes(self) -> pa.Table:
        """The items as rows: kind, LE, RE, RE_new, payload."""
        return rows_table(self.items, self.node.schema, self.node.time)

    def to_pandas(self) -> pd.DataFrame:
        """The history as a pandas frame."""
        frame: pd.DataFrame = self.table().to_pandas()
        return frame

    def __str__(self) -> str:
        rows = History.from_rows(self.history.rows(), self.node.schema).page
        return draw([rows], schema=self.node.schema, time=self.node.time)

    __repr__ = __str__

    def draw(self) -> str:
        """Every item as it came: inserts, retracts, punctuation."""
        return draw(self.items, schema=self.node.schema, time=self.node.time)


def delivered(node: Node, output: Output) -> Node:
    """A plan with the step that holds or marks its output."""
    return node if output == "changes" else Deliver(inputs=(node,), mode=output, place=node.place)


def query_of(
    node: Node,
    output: Output,
    speculate: Literal["arrival", "watermark"] | None,
    schedule: Schedule | None,
) -> Query:
    """A query with one output; who takes final rows only need not be told guesses."""
    chosen = speculate or ("watermark" if output == "final" else "arrival")
    return Query(prune({"out": delivered(node, output)}), speculate=chosen, schedule=schedule)


def run(
    node: Node,
    *,
    output: Output = "changes",
    speculate: Literal["arrival", "watermark"] | None = None,
    schedule: Schedule | None = None,
) -> Result:
    """Runs a plan until every source is at its end."""
    query = query_of(node, output, speculate, schedule)
    query.run()
    return Result(query.take("out"), node, query.late(), query.counters())


def preview(node: Node, rows: int) -> Result:
    """Runs a plan until some rows have come out; final ones, so that none is taken back."""
    query = query_of(node, "final", None, None)
    items: list[Item] = []
    seen = 0
    while seen < rows and query.step():
        fresh = query.take("out")
        items += fresh
        seen += sum(len(page) for page in pages(fresh))
    return Result(_first(items, rows), node, query.late(), query.counters())


def _first(items: list[Item], rows: int) -> list[Item]:
    kept: list[Item] = []
    for item in items:
        if isinstance(item, Page):
            item = item.slice(0, min(rows, len(item)))
            rows -= len(item)
        kept.append(item)
    return kept
