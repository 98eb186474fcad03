"""What a user sees without claims: every state that goes by, and how many are those of no prefix.

All views are looked at after every piece of work. A state is right if draining the same input, row by
row, passes through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caesura.consistency import Draining
from caesura.events import Item, Page
from caesura.plan import Node
from caesura.plan.prune import prune
from caesura.runtime.graph.schedule import LongestQueue, Schedule, ScheduleName
from caesura.runtime.query.query import Query

WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Eager:
    """How many states of a run without claims were wrong."""

    states: int
    wrong: int

    def __str__(self) -> str:
        share = f" ({100 * self.wrong / self.states:.0f} %)" if self.states else ""
        return f"of {self.states} states {self.wrong}{share} are those of no prefix of the input"


class Mark:
    """A number for the state of all views, changed as rows come and go."""

    def __init__(self) -> None:
        self.number = 0

    def take(self, view: str, items: Iterable[Item]) -> bool:
        """Takes items of a view; True where rows came."""
        came = False
        for item in items:
            if not isinstance(item, Page) or item.settled:
                continue
            for le, re, new, row in item.rows():
                came = True
                if new is None:
                    self.number += _weigh(view, le, re, row)
                    continue
                self.number -= _weigh(view, le, re, row)
                if new > le:
                    self.number += _weigh(view, le, new, row)
        self.number &= WORD
        return came


def _weigh(view: str, le: int, re: int, row: tuple[object, ...]) -> int:
    return hash((view, le, re, repr(row))) & WORD


def eager(nodes: Mapping[str, Node], schedule: Schedule | ScheduleName | None = None) -> Eager:
    """Runs all views twice: drained, for what is right, and as a scheduler likes it, for what is seen."""
    right = _drained(nodes)
    query = Query(prune(nodes), schedule=schedule or LongestQueue())
    mark, states, wrong = Mark(), 0, 0
    while query.step():
        came = [mark.take(name, query.take(name)) for name in nodes]
        if any(came):
            states += 1
            wrong += mark.number not in right
    return Eager(states, wrong)


def _drained(nodes: Mapping[str, Node]) -> set[int]:
    query = Query(prune(nodes), claims=Draining())
    mark, right = Mark(), {0}
    done = 0
    while query.step():
        for name in nodes:
            mark.take(name, query.take(name))
        if len(query.claims) > done:
            done = len(query.claims)
            right.add(mark.number)
    right.add(mark.number)
    return right
