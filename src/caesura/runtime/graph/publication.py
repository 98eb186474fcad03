"""A running query's output that later queries can read: what still counts, then all that follows.

The publication keeps the rows that are not final and the promises so far. Who subscribes gets those
first, rows before promises, and then every item as it leaves. What was final before that is history.

>>> import pyarrow as pa
>>> from caesura.events import draw, parse
>>> from caesura.ops.input import Input
>>> from caesura.runtime import Query
>>> first = Query({"out": Input(label="clicks", payload=pa.schema([("id", pa.int64())]))})
>>> published = first.publish("out")
>>> for item in parse(" LE RE | id |\\n 1 2 | 7 | +\\n 4 9 | 8 | +\\n-- 5 --"):
...     first.feed("clicks", item)
>>> first.run()
>>> later = Query({"out": subscription(published)})
>>> later.run()
>>> print(draw(later.take("out")))
 LE  RE | id |
  4  9  | 8  | +
-- definite: time < 5 --
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from caesura.errors import PlanError
from caesura.events import Item, Page
from caesura.events.chunks import Chunks
from caesura.ops.deliver import Deliver, Hold
from caesura.ops.input import Input
from caesura.plan import Node
from caesura.punctuation import Intent, Punctuation

if TYPE_CHECKING:
    from caesura.runtime.graph.edge import Edge


class Publication:
    """One output of a running query, open to subscribers."""

    def __init__(self, advance: Callable[[], bool], output: str, node: Node, name: str = "") -> None:
        self.advance = advance
        """Lets the query take a step; False when there is nothing to do."""
        self.name = name
        self.output = output
        self.node = node
        self._kept = Hold(Deliver(inputs=(node,), mode="marked", place=node.place))
        self._edges: WeakSet[Edge] = WeakSet()
        """Those of queries that are gone go too."""

    @property
    def key(self) -> str:
        """Equal in every process for an output of a plan; the user's name tells two of one plan apart."""
        return f"publication:{self.name}:{self.output}:{self.node.fingerprint}"

    @property
    def rows(self) -> int:
        """How many rows are not final, and so are kept for those who come later."""
        return self._kept.side.rows.live

    def append(self, item: Item) -> None:
        """Takes an item that leaves the query, as its taps do."""
        if isinstance(item, Page):
            if item.settled:
                return  # it repeats a row
            list(self._kept.page(0, item))
        elif item.intent is Intent.DEFINITE:
            list(self._kept.punctuation(0, item))
        for edge in self._edges:
            edge.push(item)

    def attach(self, edge: Edge) -> None:
        """Lets a later query's edge have what counts now, and all that follows."""
        for item in self.so_far():
            edge.push(item)
        self._edges.add(edge)

    def so_far(self) -> Iterator[Item]:
        """The rows that are not final yet, then the promises."""
        rows = self._kept.side.rows
        live = np.flatnonzero(rows.alive)
        if len(live):
            yield Page(rows.get("le")[live], rows.get("re")[live], rows.payload.take(live))
        for pattern in self._kept.promises[0].patterns():
            yield Punctuation(pattern, Intent.DEFINITE)

    def snapshot(self) -> Chunks:
        return self._kept.snapshot()

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        self._kept.restore(chunks)


@dataclass(frozen=True, eq=False, kw_only=True)
class Subscribed(Input):
    """The stream that a publication gives; it is fed from when a query with it is made."""

    publication: Publication

    kind = "subscription"

    def refuse_twin(self, other: Node) -> None:
        if isinstance(other, Subscribed) and other.publication is not self.publication:
            output = self.publication.output
            raise PlanError(
                f"two queries publish the same output '{output}' of the same plan under the same name, so "
                "after a restart nothing would tell which state belongs to which.",
                remedy=f"Name each: query.publish('{output}', name='{output}-1'), the other '{output}-2'.",
            ).at(self.step, self.place)


def subscription(publication: Publication) -> Subscribed:
    """The start of a plan that reads a publication."""
    node = publication.node
    return Subscribed(
        label=publication.key,
        payload=node.schema,
        time_type=node.time,
        known=node.properties,
        publication=publication,
    )
