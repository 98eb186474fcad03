"""Small pages wait in front of windows of which only final rows are wanted, until one of them can close.

Before punctuation reaches the end of the earliest open window nothing can leave the windows, whatever comes.
So pages and punctuation wait together where the steps in front of them begin, and are taken as one page and
one punctuation: the work of a page is done once for many. Nothing leaves any later for it.

Law: what leaves, and when, is what would without this; pages may be joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from caesura.events.item import Item
from caesura.events.page import Page, concat
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.aggregate.tumbling_operator import TumblingOperator
from caesura.ops.select import Select
from caesura.ops.where import Where
from caesura.plan import Operator
from caesura.punctuation import INFINITY, MIN_TIME, Intent, Punctuation

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell
    from caesura.runtime.graph.edge import Edge

MAX_WAITING = 1 << 14
"""So many rows are worth being taken."""


class Patience:
    """What waits at an edge that leads to windows."""

    def __init__(self, edge: Edge, windows: Tumbling) -> None:
        self._edge, self._grid = edge, windows.grid
        self._pages: list[Page] = []
        self._rows = 0
        self._last: Punctuation | None = None
        self._due = MIN_TIME
        """Where the earliest open window ends."""

    def holds(self, item: Item) -> bool:
        """Whether an item waits, or was taken with what waited; else it is to follow that now."""
        if isinstance(item, Page):
            if item.has_retracts or item.tags is not None or item.settled or item.partial:
                self.release()
                return False
            self._pages.append(item)
            self._rows += len(item)
            if self._rows >= MAX_WAITING:
                self.release()
            return True
        bound = item.pattern.time_bound
        timely = item.intent is Intent.DEFINITE and item.pattern.attributes in ((), ("time",))
        if bound is None or not timely:
            self.release()
            return False
        if bound < self._due:
            self._last = item
            return True
        if bound < INFINITY:  # else events without end are given up to the last time before it
            self._last = None
        self.release()
        self._due = self._grid.end(self._grid.first(bound))
        return False

    def release(self) -> None:
        """Lets what waits be taken now."""
        pages, last = self._pages, self._last
        self._pages, self._rows, self._last = [], 0, None
        if pages:
            self._edge.items.append(pages[0] if len(pages) == 1 else concat(pages, pages[0].schema))
        if last is not None:
            self._edge.items.append(last)


def wait_for_windows(cells: Iterable[Cell]) -> list[Edge]:
    """Lets pages wait in front of windows where nobody looks at the steps between; gives the edges."""
    every = list(cells)
    if any(cell.node.sends_feedback for cell in every):
        return []
    found: list[Edge] = []
    for cell in every:
        if isinstance(cell.node, Tumbling) and _only_final(cell.node, cell.operator):
            edge = _first_edge(cell)
            edge.patience = Patience(edge, cell.node)
            found.append(edge)
    return found


def _only_final(node: Tumbling, operator: Operator) -> bool:
    """Whether nothing leaves windows before they close; where rows are taken back their order counts."""
    waits = isinstance(operator, TumblingOperator) and operator.speculate == "watermark"
    return waits and not operator.rings and node.inputs[0].properties.insert_only


def _first_edge(cell: Cell) -> Edge:
    """The edge from which rows pass one by one, unseen, to some windows."""
    edge = cell.inputs[0]
    while (above := edge.source) is not None and above.inputs and len(above.outputs) == 1 and not above.taps:
        plain = above.node.fed or (isinstance(above.node, (Select, Where)) and above.node.on_error != "late")
        if not plain:
            break
        edge = above.inputs[0]
    return edge
