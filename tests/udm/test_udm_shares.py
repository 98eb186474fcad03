"""The states of mergeable modules go from bucket to bucket as plain data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from caesura.errors import PlanError
from caesura.udm import uda
from caesura.udm.module import Module
from caesura.udm.shares import meeting, share_of


@dataclass
class Stats:
    n: int = 0
    seen: set[int] = field(default_factory=set)
    sums: np.ndarray[Any, Any] = field(default_factory=lambda: np.zeros(2))


class Digest:
    """An object of a library, which nobody can take apart."""

    def __init__(self, total: int = 0) -> None:
        self.total = total


class Summing:
    def remove(self, state: Any, value: int) -> None:
        raise NotImplementedError


@uda(mergeable=True)
class Distinct(Summing):
    def init(self) -> Stats:
        return Stats()

    def add(self, state: Stats, value: int) -> None:
        state.n += 1
        state.seen.add(value)
        state.sums += value

    def merge(self, state: Stats, other: Stats) -> None:
        state.n += other.n
        state.seen |= other.seen
        state.sums += other.sums

    def compute(self, state: Stats) -> int:
        return 100 * int(state.sums[1]) + 10 * state.n + len(state.seen)


@uda(mergeable=True)
class ByName(Summing):
    """A dataclass that only an annotation names."""

    def init(self) -> dict[str, Stats]:
        return {}

    def add(self, state: dict[str, Stats], value: int) -> None:
        state.setdefault("all", Stats()).n += value

    def merge(self, state: dict[str, Stats], other: dict[str, Stats]) -> None:
        for name, stats in other.items():
            state.setdefault(name, Stats()).n += stats.n

    def compute(self, state: dict[str, Stats]) -> int:
        return state["all"].n


@uda(mergeable=True)
class Commonest(Summing):
    def init(self) -> Any:
        return Counter()

    def add(self, state: Any, value: int) -> None:
        state[value] += 1

    def merge(self, state: Any, other: Any) -> Any:
        return state + other

    def compute(self, state: Any) -> int:
        return int(state.most_common(1)[0][0])


class Digesting(Summing):
    def init(self) -> Any:
        return Digest()

    def add(self, state: Any, value: int) -> None:
        state.total += value

    def merge(self, state: Any, other: Any) -> None:
        state.total += other.total

    def compute(self, state: Any) -> int:
        return int(state.total)


class Told(Digesting):
    def to_state(self, state: Digest) -> int:
        return state.total

    def from_state(self, data: int) -> Digest:
        return Digest(data)


@pytest.mark.parametrize(
    ("module", "wanted"),
    [(Distinct, 1453), (ByName, 14), (Commonest, 5), (uda(mergeable=True)(Told), 14)],
)
def test_states_meet_as_they_were(module: Module, wanted: int) -> None:
    share, met = share_of(module("v")), meeting(module("v"), "v")
    made = share.module.make(share.params)
    states = []
    for values in ([5, 1], [5, 2, 1]):
        state = made.init()
        for value in values:
            made.add(state, value)
        states.append(made.compute(state))
    assert met.module.make(met.params).compute(states) == wanted


def test_a_state_that_cannot_travel_is_refused_when_the_plan_is_made() -> None:
    with pytest.raises(
        PlanError, match=r"states of uda 'Digesting' cannot go from bucket to bucket: .*Digest"
    ):
        share_of(uda(mergeable=True)(Digesting)("v"))
