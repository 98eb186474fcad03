"""Mergeable modules in two parts: every bucket gives the state of its share, and the states merge.

>>> from caesura.udm import uda
>>> @uda(mergeable=True)
... class Total:
...     def init(self): return [0]
...     def add(self, state, value: int): state[0] += value
...     def remove(self, state, value: int): state[0] -= value
...     def merge(self, state, other): state[0] += other[0]
...     def compute(self, state) -> int: return state[0]
>>> share, met = share_of(Total("n")), meeting(Total("n"), "n")
>>> one, other = (share.module.make(share.params).compute([n]) for n in (3, 4))
>>> met.module.make(met.params).compute([one, other])
7
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caesura.expr import col
from caesura.udm.module import Module, Traits, Use

Given = tuple[tuple[str, Any], ...]


class Share:
    """A module that gives its state instead of its result."""

    def __init__(self, module: Module, given: Given) -> None:
        self.own = module.make(given)

    def init(self) -> Any:
        return self.own.init()

    def add(self, state: Any, value: Any) -> Any:
        return self.own.add(state, value)

    def remove(self, state: Any, value: Any) -> Any:
        return self.own.remove(state, value)

    def merge(self, state: Any, other: Any) -> Any:
        return self.own.merge(state, other)

    def compute(self, state: Any) -> bytes:
        return pickle.dumps(state, protocol=5)


class Meeting:
    """The result of a module from the states of all shares."""

    def __init__(self, module: Module, given: Given) -> None:
        self.own = module.make(given)

    def compute(self, states: list[bytes]) -> Any:
        first, *others = (pickle.loads(state) for state in states)
        for other in others:
            merged = self.own.merge(first, other)
            first = first if merged is None else merged
        return self.own.compute(first)


def share_of(use: Use) -> Use:
    """The use of a mergeable module, in each bucket."""
    own = use.module
    made = replace(
        own,
        target=Share,
        gives=pa.schema([pa.field(own.gives.names[0], pa.binary())]),
        params=("given", "module"),
        traits=Traits(mergeable=True),
        token=f"share:{own.token}",
    )
    return Use(made, use.mapping, (("given", use.params), ("module", own)))


def meeting(use: Use, column: str) -> Use:
    """The use of a module over the states that lie in a column."""
    own = use.module
    made = replace(
        own,
        target=Meeting,
        view="list",
        incremental=False,
        takes=((column, pa.binary()),),
        row=None,
        params=("given", "module"),
        traits=Traits(),
        token=f"meeting:{own.token}",
    )
    return Use(made, (col(column),), (("given", use.params), ("module", own)))
