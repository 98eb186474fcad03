"""Claims of the two weaker levels, by labels: every event's rows have left, or none of them.

Only active labels count: those of the items that set rows off. A state is update-complete where no item that
has set off a row of it is in flight (definition 1), and input-prefix update-complete where moreover no item
in front of those is (definition 2). Labels bound an active item from above and floors from below, so that
some such states are passed over, and none is claimed that is not.
"""

from __future__ import annotations

from typing import Any

from caesura.consistency import Heeding, Level
from caesura.events import Item, Page
from caesura.events.labels import Labels, Vector
from caesura.runtime.claims.heeding import HeedClaims, labels_of
from caesura.runtime.claims.views import View

Span = tuple[int, int]
"""From an item's number to another's, both among them."""


class UpdateClaims(HeedClaims):
    """Heeding where rows that are missing on account of others do not matter."""

    def __init__(self, mode: Heeding, *args: Any) -> None:
        super().__init__(mode, *args)
        self.level = mode.level
        self.seen = {}
        self._left: dict[int, list[Span]] = {k: [] for k in self.order.values()}
        """Per source the items that have set off rows of the output, as far as some may be in flight."""

    def label(self, made: Item, labels: Labels, greatest: Vector) -> Labels:
        own = super().label(made, labels, greatest)
        return Labels(own.cols, own.active, labels.least)

    def arrived(self, view: View, item: Item) -> None:
        if not isinstance(item, Page) or not isinstance(item.tags, Labels):
            return
        self._fresh = True
        for k, span in spans(item.tags).items():
            self.reached[k] = max(self.reached.get(k, 0), span[1])
            if self.level is Level.UPDATE_COMPLETE:
                self._left[k].append(span)

    def ends(self) -> dict[str, int] | None:
        if self.level is not Level.UPDATE_COMPLETE:
            return super().ends()
        for k, left in self._left.items():
            least = self.least(k)
            self._left[k] = [span for span in left if least is not None and span[1] >= least]
        flying = [spans(labels_of(item)) for edge in self.graph.edges for item in edge.items]
        flying += [{k: (n, n) for k, n in least.items()} for some in self.pending.values() for least in some]
        if any(self._meets(some) for some in flying):
            return None
        return {label: emitter.items for label, emitter in self.emitters.items()}

    def _meets(self, flying: dict[int, Span]) -> bool:
        """Whether something in flight may belong to an item that has set off rows of the output."""
        return any(
            low <= last and first <= high
            for k, (low, high) in flying.items()
            for first, last in self._left[k]
        )


def spans(labels: Labels) -> dict[int, Span]:
    """Of each active source the items that rows with these labels may have been set off by."""
    return {k: (low, labels.greatest.get(k, low)) for k, low in labels.least.items()}
