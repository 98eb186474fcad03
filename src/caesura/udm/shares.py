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

States travel as plain data: numbers, texts, times, Python's containers, NumPy arrays, and dataclasses or
named tuples of them that `init` gives or that annotations name. A module whose state is anything else has
``to_state(state)``, which gives such data, and ``from_state(data)``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_type_hints

import pyarrow as pa

from caesura.errors import PlanError, StreamError
from caesura.events.plain import Codec, classes_of
from caesura.expr import col
from caesura.udm.module import Module, Traits, Use

ModuleParameters = tuple[tuple[str, Any], ...]
REMEDY = (
    "Hold numbers, texts, times, lists, tuples, dicts, sets, arrays or dataclasses of them; or give the "
    "module to_state(state), which gives such data, and from_state(data)."
)


class StateCodec:
    """Writes and reads the states of a module."""

    def __init__(self, own: Any) -> None:
        self._to, self._from = getattr(own, "to_state", None), getattr(own, "from_state", None)
        steps = [getattr(own, step) for step in ("init", "add", "remove", "merge", "compute")]
        hints = [
            t for step in steps for name, t in _hints(step).items() if name in ("state", "other", "return")
        ]
        self._codec = Codec(classes_of(own.init(), *hints), remedy=REMEDY)

    def write(self, state: Any) -> bytes:
        return self._codec.write(state if self._to is None else self._to(state))

    def read(self, data: bytes) -> Any:
        state = self._codec.read(data)
        return state if self._from is None else self._from(state)


def _hints(step: Any) -> dict[str, Any]:
    try:
        return get_type_hints(step)
    except NameError:  # a type that only checkers know
        return {}


class ModuleShare:
    """A module that gives its state instead of its result."""

    def __init__(self, module: Module, given: ModuleParameters) -> None:
        self.own = module.make(given)
        self.codec = StateCodec(self.own)

    def init(self) -> Any:
        return self.own.init()

    def add(self, state: Any, value: Any) -> Any:
        return self.own.add(state, value)

    def remove(self, state: Any, value: Any) -> Any:
        return self.own.remove(state, value)

    def merge(self, state: Any, other: Any) -> Any:
        return self.own.merge(state, other)

    def compute(self, state: Any) -> bytes:
        return self.codec.write(state)


class Meeting:
    """The result of a module from the states of all shares."""

    def __init__(self, module: Module, given: ModuleParameters) -> None:
        self.own = module.make(given)
        self.codec = StateCodec(self.own)

    def compute(self, states: list[bytes]) -> Any:
        first, *others = map(self.codec.read, states)
        for other in others:
            merged = self.own.merge(first, other)
            first = first if merged is None else merged
        return self.own.compute(first)


def share_of(use: Use) -> Use:
    """The use of a mergeable module, in each bucket; refuses one whose states cannot travel."""
    own = use.module
    made_once = own.make(use.params)
    try:
        StateCodec(made_once).write(made_once.init())
    except StreamError as error:
        problem = f"the states of {own.kind} '{own.name}' cannot go from bucket to bucket: {error.problem}"
        raise PlanError(problem, remedy=error.remedy) from None
    made = replace(
        own,
        target=ModuleShare,
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
