"""Claims from definite punctuation at the outputs: what lies before it is that of all that has entered.

For plans with loops, where tokens cannot be aligned: a loop says by itself how far it has got.
"""

from __future__ import annotations

from typing import Any

from caesura.consistency import Synchronised
from caesura.consistency.token import token
from caesura.events import Item, Page
from caesura.plan import ticks
from caesura.punctuation import INFINITY, MIN_TIME, Intent, Promises
from caesura.runtime.claims.claiming import Claiming
from caesura.runtime.claims.views import View


class SettledClaims(Claiming):
    """A claim wherever all outputs have promised a further multiple of the period."""

    def __init__(self, mode: Synchronised, *args: Any) -> None:
        super().__init__(mode, *args)
        self._promised = {name: Promises() for name in self.views}
        self._period = ticks(mode.every, self.graph.cells[0].node.time, "period of synchronised claims")
        self._last = MIN_TIME
        self._number = 0

    def arrived(self, view: View, item: Item) -> None:
        if not isinstance(item, Page) and item.intent is Intent.DEFINITE:
            self._promised[view.name].add(item.pattern)

    def worked(self) -> None:
        reached = min(promises.cti for promises in self._promised.values())
        if reached == MIN_TIME:
            return
        t = reached if reached == INFINITY else reached // self._period * self._period
        if t <= self._last:
            return
        self._last = t
        self._number += 1
        prefix = self.prefixes()
        output = {name: view.rows for name, view in self.views.items()}
        for view in self.views.values():
            view.append(token(self._number, prefix, t))
        self.claim(self._number, prefix, output, t, "before")

    def waiting(self) -> str:
        behind = min(self._promised, key=lambda name: self._promised[name].cti)
        return f"'{behind}' has promised {self._promised[behind]}"
