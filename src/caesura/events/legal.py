"""Whether a physical stream keeps its own promises.

>>> from caesura.punctuation import cti
>>> late = Page.of(pa.record_batch({"id": [1]}), le=[5], re=[6])
>>> [str(v) for v in violations([cti(10), late])]
['+ [5, 6) (1,) came after definite: time < 10']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # noqa: F401  (the example above)

from caesura.events.history import comparable
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.punctuation import Intent, Promises


@dataclass(frozen=True)
class Violation:
    """A row that a stream was not allowed to carry, and why."""

    row: tuple[int, int, int | None, tuple[object, ...]]
    reason: str

    def __str__(self) -> str:
        le, re, new, payload = self.row
        end = f"{re})" if new is None else f"{re} -> {new})"
        return f"{'+' if new is None else '-'} [{le}, {end} {payload} {self.reason}"


def violations(items: Iterable[Item]) -> list[Violation]:
    """Every row that contradicts a definite punctuation before it, retracts nothing, or lives on nothing."""
    promises = Promises()
    live: Counter[tuple[object, ...]] = Counter()
    found: list[Violation] = []
    for item in items:
        if not isinstance(item, Page):
            if item.intent is Intent.DEFINITE:
                promises.add(item.pattern)
            continue
        if item.settled:
            continue
        forbidden = promises.forbids(item.payload, item.sync)
        for place, row in enumerate(item.rows()):
            if forbidden[place]:
                found.append(Violation(row, f"came after {_culprit(promises, item, place)}"))
            reason = _fold_row(live, row)
            if reason:
                found.append(Violation(row, reason))
    return found


def _fold_row(live: Counter[tuple[object, ...]], row: tuple[int, int, int | None, tuple[object, ...]]) -> str:
    le, re, new, payload = row
    key = tuple(map(comparable, payload))
    if re <= le or (new is not None and new < le):
        return "ends before it starts"
    if new is None:
        live[(le, re, key)] += 1
        return ""
    if live[(le, re, key)] <= 0:
        return "retracts an event that is not there"
    live[(le, re, key)] -= 1
    if new > le:
        live[(le, new, key)] += 1
    return ""


def _culprit(promises: Promises, page: Page, place: int) -> str:
    one = page.take(np.array([place]))
    for pattern in promises.patterns():
        if pattern.matches(one.payload, one.sync)[0]:
            return f"definite: {pattern}"
    return "a definite punctuation"
