"""Sliding windows as values that never change: inserting gives a new one, so threads may fork.

Three ways, by what the fold can do: take the oldest value out again (whole numbers), two stacks of
partial results (anything that can be combined), or fold the whole window again.
"""

from __future__ import annotations

from typing import Any

from caesura.qre.checking.inference import piece_type, value_type
from caesura.qre.language.folds import CUSTOM
from caesura.qre.language.query import SlidingWindow
from caesura.qre.language.types import INT, Record, ValueType
from caesura.qre.language.whole_numbers import Void


class RefoldingWindow:
    """Folds again from scratch: correct for every fold, and slow for large windows."""

    def __init__(self, node: SlidingWindow) -> None:
        self.size = node.size
        acc, x = value_type(node), piece_type(node)
        self.step = node.fold.step.closure({"acc": acc, "x": x})
        self.init = node.fold.init.closure({})({})
        self.empty: Any = ()

    def insert(self, held: Any, x: Any) -> Any:
        return (*held, x)[-self.size :]

    def value(self, held: Any) -> Any:
        acc = self.init
        for x in held:
            acc = self.step({"acc": acc, "x": x})
        return acc


class TwoStackWindow(RefoldingWindow):
    """(front, back, values of back, back's fold, count): amortised constant time.

    The front is a linked list of (fold of this and all newer front values, rest).
    """

    def __init__(self, node: SlidingWindow) -> None:
        super().__init__(node)
        acc = value_type(node)
        assert node.fold.combine is not None
        self.join = node.fold.combine.closure({"a": acc, "b": acc})
        self.empty = (None, None, self.init, 0)

    def insert(self, held: Any, x: Any) -> Any:
        front, back, folded, count = held
        back, folded, count = (x, back), self.step({"acc": folded, "x": x}), count + 1
        if count <= self.size:
            return front, back, folded, count
        if front is None:
            front, back, folded = self._turned(back), None, self.init
        return front[1], back, folded, count - 1

    def _turned(self, back: Any) -> Any:
        front: Any = None
        while back is not None:
            x, back = back
            one = self.step({"acc": self.init, "x": x})
            front = (one if front is None else self.join({"a": one, "b": front[0]}), front)
        return front

    def value(self, held: Any) -> Any:
        front, _, folded, _ = held
        return folded if front is None else self.join({"a": front[0], "b": folded})


class EvictingWindow(RefoldingWindow):
    """(oldest values, newest values, fold, count): what leaves is taken out of the fold."""

    def __init__(self, node: SlidingWindow) -> None:
        super().__init__(node)
        assert node.fold.evict is not None
        self.evict = node.fold.evict.closure({"acc": value_type(node), "x": piece_type(node)})
        self.empty = (None, None, self.init, 0)

    def insert(self, held: Any, x: Any) -> Any:
        old, new, acc, count = held
        new, acc, count = (x, new), self.step({"acc": acc, "x": x}), count + 1
        if count <= self.size:
            return old, new, acc, count
        if old is None:
            while new is not None:
                y, new = new
                old = (y, old)
        oldest, old = old
        acc = self.evict({"acc": acc, "x": oldest})
        return old, new, acc if not _void(acc) else self._again(old, new), count - 1

    def _again(self, old: Any, new: Any) -> Any:
        """The fold from scratch: what has no value stays in a fold, and may have left the window."""
        earlier, later = [], []
        while old is not None:
            x, old = old
            earlier.append(x)
        while new is not None:
            x, new = new
            later.append(x)
        acc = self.init
        for x in [*earlier, *later[::-1]]:
            acc = self.step({"acc": acc, "x": x})
        return acc

    def value(self, held: Any) -> Any:
        return held[2]


def sliding(node: SlidingWindow) -> RefoldingWindow:
    """The cheapest window that is exact for a fold."""
    if node.fold.evict is not None and exact(value_type(node)):
        return EvictingWindow(node)
    regroups = node.fold.combine is not None and (node.fold.name != CUSTOM or not _whole(value_type(node)))
    return TwoStackWindow(node) if regroups else RefoldingWindow(node)


def _whole(t: ValueType) -> bool:
    """Whether there is a whole number inside: what is multiplied fits or not by how values are grouped."""
    return any(_whole(f) for _, f in t.fields) if isinstance(t, Record) else t == INT


def _void(acc: Any) -> bool:
    return any(map(_void, acc.values())) if isinstance(acc, dict) else isinstance(acc, Void)


def exact(t: ValueType) -> bool:
    """Whether values of this type are whole numbers only, so that adding and taking away cancel."""
    if isinstance(t, Record):
        return all(exact(f) for _, f in t.fields)
    return t == INT
