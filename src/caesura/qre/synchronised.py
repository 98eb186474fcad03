"""A map whose synchronisation items are events, in several buckets: keyed items by key, the others to all.

     id day |                      bucket of 1: 1, end        1 -> 5
     1  -   |      map_collect     bucket of 2: 2, end        2 -> 7
     2  -   |
     -  end |

Law: every bucket sees every synchronisation item and all items of its keys, in the stream's order, so its
part of each map is what the map has of its keys; the maps are the unions of their parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from caesura.events.item import Item
from caesura.events.page import Page
from caesura.expr import compile_predicate
from caesura.ops.where import Where
from caesura.plan import Node, Operator, definite
from caesura.punctuation import INFINITY, MIN_TIME, Pattern
from caesura.qre.collect import core, ends
from caesura.qre.columns import asks_for_times
from caesura.qre.node import Over, columns_of
from caesura.qre.operator import QueryOperator
from caesura.qre.query import MapCollect


@dataclass(frozen=True, eq=False, kw_only=True)
class OverSynchronised(Over):
    """A map-collect over a stream (by key) and its synchronisation items (a copy for every bucket)."""

    kind = "qre"
    partitioning = "key"

    @property
    def mapped(self) -> MapCollect:
        found = core(self.query)
        assert found is not None
        return found[0]

    def keys(self, port: int) -> tuple[str, ...]:
        return columns_of(self.mapped.by) or ()

    def copied(self, port: int) -> bool:
        return port == 1

    def combined(self) -> Node | None:
        return None

    def operator(self) -> Operator:
        return SynchronisedOperator(self)

    def describe(self) -> str:
        return f"{super().describe()}; items with {self.mapped.sync} in every bucket"


def spread(node: Over) -> OverSynchronised | None:
    """The same maps, a part of each in every bucket; None where they come by ticks, or have to meet."""
    found = core(node.query)
    if found is None or node.lives != "point" or node.every is not None or len(node.inputs) != 1:
        return None
    mapped = found[0]
    if columns_of(mapped.by) is None or asks_for_times(mapped.sync) or ends(*found):
        return None
    own = {f.name: getattr(node, f.name) for f in fields(node) if f.name != "inputs"}
    (source,) = node.inputs
    synced = Where(inputs=(source,), predicate=mapped.sync, place=node.place)
    return OverSynchronised(inputs=(source, synced), **own)


class SynchronisedOperator(QueryOperator):
    """Reads both inputs as one stream, as far as both have come."""

    def __init__(self, node: OverSynchronised) -> None:
        super().__init__(node, ports=2)
        self._is_sync = compile_predicate(node.mapped.sync, self.source, time=node.time)
        self._said = MIN_TIME

    def page(self, port: int, page: Page) -> Iterable[Item]:
        """Synchronisation items come by the other input; here they were sent by a key they may not have."""
        if port == 0:
            page = page.filter(~self._is_sync(page.payload, page.le, page.re))
        return super().page(port, page)

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        bound = min(p.cti for p in self.promises)
        if bound <= self._said:
            return []
        self._said = bound
        items = self._advance(bound)
        if bound == INFINITY:
            self._end()
        return [*items, *definite(Pattern.before(bound))]

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._said = min(p.cti for p in self.promises)
