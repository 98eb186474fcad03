"""A join that delays promises of one side until nothing they speak of is held.

     left:   a = 7 is closed   ->   held: (a=7, b=3)    the right may still bring b = 3
     right:  b = 3 is closed   ->   (a=7, b=3) goes     ->   a = 7 is closed behind the join

A plain join passes on what both sides promise together. Rows with a = 7 come from left rows with a = 7
alone: once no more of these come and none is held, no pair of theirs follows, whatever the right says.
(A second implementation with contracts of its own; thesis, sections 5.3.2 and 5.4.3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from caesura.events.item import Item
from caesura.ops.join.node import Join
from caesura.ops.join.physical import JoinOperator
from caesura.plan import definite
from caesura.punctuation import Pattern


class DelayingJoin(JoinOperator):
    """A join that keeps promises of a side until its own rows allow them."""

    def __init__(self, node: Join) -> None:
        super().__init__(node)
        self._delayed: list[list[Pattern]] = [[], []]
        """Per side, what it has promised for good of rows that are still held."""

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "delayed": [[p.to_json() for p in some] for some in self._delayed]}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._delayed = [[Pattern.from_json(p) for p in some] for some in meta["delayed"]]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        items = list(super().definite(port, pattern))
        if self.node.alone(port, pattern) is not None and pattern not in self._delayed[port]:
            self._delayed[port].append(pattern)
        return [*items, *self._ripe(0), *self._ripe(1)]

    def _ripe(self, port: int) -> Iterator[Item]:
        """What a side has promised of rows none of which is held any more."""
        kept = [pattern for pattern in self._delayed[port] if len(self._matching(port, pattern))]
        ripe = [pattern for pattern in self._delayed[port] if pattern not in kept]
        self._delayed[port] = kept
        for pattern in ripe:
            yield from definite(self.node.alone(port, pattern))
