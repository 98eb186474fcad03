"""The changes of an output folded into bars: each a row's lifetime, and what became of it.

>>> from caesura.events import parse
>>> items = parse(" LE RE | id |\\n 1 9 | 7 | +\\n 1 9->4 | 7 | -\\n 2 3 | 8 | +\\n 2 3->2 | 8 | -\\n-- 5 --")
>>> [(bar.le, bar.re, bar.was, bar.state) for bar in bars(items, definite=5)]
[(1, 4, 9, 'final'), (2, 3, 3, 'gone')]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

from caesura.events.item import Item
from caesura.events.page import Page
from caesura.punctuation import INFINITY

HIDDEN = "\x00"
"""How names of columns begin that only loops know."""
State = Literal["open", "final", "gone", "partial"]


@dataclass
class Bar:
    """One row: its lifetime, where its end was before it was corrected, and how it stands."""

    le: int
    re: int
    was: int
    """The furthest end that it has had."""
    payload: tuple[object, ...]
    state: State = "open"
    lane: int = 0


def bars(items: Iterable[Item], *, definite: int, fixed_ends: bool = False) -> list[Bar]:
    """The rows, in the order in which they came; a retract of a row that came before all of them is one."""
    made: list[Bar] = []
    standing: dict[tuple[int, int, str], list[Bar]] = {}
    for page in (item for item in items if isinstance(item, Page)):
        shown = [at for at, name in enumerate(page.schema.names) if not name.startswith(HIDDEN)]
        for le, re, new, values in page.rows():
            payload = tuple(values[at] for at in shown)
            key = (le, re, repr(payload))
            found = standing.get(key)
            if new is None and page.settled:
                for bar in found or [_added(made, standing, Bar(le, re, re, payload))]:
                    bar.state = "final"
            elif new is None:
                state: State = "partial" if page.partial else "open"
                _added(made, standing, Bar(le, re, re, payload, state))
            else:
                if not found:
                    found = [_added(made, standing, Bar(le, re, re, payload))]
                    standing[key] = found
                bar = found.pop()
                _correct(bar, new, standing)
    for bar in made:
        if bar.state in ("open", "partial") and bar.le < definite and (bar.re < definite or fixed_ends):
            bar.state = "final"
    return made


def _added(made: list[Bar], standing: dict[tuple[int, int, str], list[Bar]], bar: Bar) -> Bar:
    made.append(bar)
    standing.setdefault((bar.le, bar.re, repr(bar.payload)), []).append(bar)
    return bar


def _correct(bar: Bar, new: int, standing: dict[tuple[int, int, str], list[Bar]]) -> None:
    """Gives a bar another end; one that ends where it begins is gone, and keeps the end that it had."""
    if new <= bar.le:
        bar.state = "gone"
        return
    bar.was, bar.re = max(bar.was, new), new
    standing.setdefault((bar.le, bar.re, repr(bar.payload)), []).append(bar)


def laid_out(some: Iterable[Bar], lanes: int) -> tuple[list[Bar], int]:
    """The bars in lanes where they do not cover each other; those that find no room are counted."""
    free: list[tuple[int, int]] = []
    placed: list[Bar] = []
    used = left = 0
    for bar in sorted(some, key=lambda one: (one.le, one.was)):
        end = max(bar.was, bar.le + 1) if bar.was < INFINITY else INFINITY
        if free and free[0][0] <= bar.le:
            bar.lane = heappop(free)[1]
        elif used < lanes:
            bar.lane, used = used, used + 1
        else:
            left += 1
            continue
        heappush(free, (end, bar.lane))
        placed.append(bar)
    return placed, left
