"""Sliding over states that merge: two stacks, so that a window of any length costs a few merges.

The older states lie on a stack, each merged with those behind it; the younger ones have one merged state.
When the stack is used up, the younger ones are moved onto it. Nothing is ever removed from a state.

>>> stacks = TwoStacks(lambda a, b: a + b, lambda a: a)
>>> for number, state in enumerate("abcd"): stacks.push(number, state)
>>> stacks.merged(), stacks.leave(2), stacks.merged()
('abcd', None, 'cd')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class TwoStacks:
    """States in order; the oldest leave, new ones come, and all of them merged can be had."""

    def __init__(self, merge: Callable[[Any, Any], Any], copy: Callable[[Any], Any]) -> None:
        self._merge, self._copy = merge, copy
        self._front: list[tuple[int, Any]] = []
        self._back: list[tuple[int, Any]] = []
        self._total: Any = None
        self.merges = 0

    def __len__(self) -> int:
        return len(self._front) + len(self._back)

    def push(self, number: int, state: Any) -> None:
        """A state with a number above all others comes."""
        self._total = self._joined(self._total, state) if self._back else self._copy(state)
        self._back.append((number, state))

    def leave(self, before: int) -> None:
        """States with lesser numbers leave."""
        while self._front and self._front[-1][0] < before:
            self._front.pop()
        if self._front or not self._back or self._back[0][0] >= before:
            return
        self._back = [pair for pair in self._back if pair[0] >= before]
        self._flip()

    def merged(self) -> Any:
        """All states as one, which nobody else holds."""
        if not self._front:
            self._flip()
        oldest = self._copy(self._front[-1][1])
        return self._joined(oldest, self._total) if self._back else oldest

    def _flip(self) -> None:
        """The younger states become the older ones."""
        below: Any = None
        for number, state in reversed(self._back):
            own = self._copy(state)
            below = self._joined(own, below) if self._front else own
            self._front.append((number, below))
        self._back = []

    def _joined(self, state: Any, other: Any) -> Any:
        self.merges += 1
        new = self._merge(state, other)
        return state if new is None else new
