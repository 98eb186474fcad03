"""States that are kept by adding and removing: one per window, or one per group that slides.

Law: a member is handed over once for each window that it enters or leaves; a whole window only when
states are made again after a restore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from caesura.errors import RAISED
from caesura.kernels.hashing import I64
from caesura.udm.adapters import Members
from caesura.udm.calls import Caller
from caesura.udm.values import Window

ENTER, LEAVE, GIVE, RESET = 0, 1, 2, 3


class SteppedStates:
    """A state, and how many members are in it."""

    __slots__ = ("past", "size", "state")

    def __init__(self, state: Any) -> None:
        self.state, self.size, self.past = state, 0, False


class Steps(NamedTuple):
    """What happens to the sliding states of groups, in order: a member, or a window, each time."""

    kind: I64
    group: I64
    which: I64


class Stepping:
    """The states of one use of a module."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        target = caller.target
        self._init, self._add, self._remove = target.init, target.add, target.remove
        self._takes_window = {
            step: caller.reads(getattr(target, step)) for step in ("add", "remove", "compute")
        }
        self.states: dict[Any, dict[int, SteppedStates]] = {}
        """By group, then by window start; a sliding state lies under the group's name alone."""

    def change(self, members: Members, weights: I64, groups: Sequence[Any]) -> None:
        """Adds and removes members, as often as their weight says, in the windows that own them."""
        caller, items = self.caller, self.caller.adapter.items(members)
        starts, ends = members.start.tolist(), members.end.tolist()
        bounds = np.searchsorted(members.owner, np.arange(len(starts) + 1)).tolist()
        weight, adds, removes, place = weights.tolist(), 0, 0, 0
        try:
            for place, start in enumerate(starts):
                states = self.states.setdefault(groups[place], {})
                entry = states.get(start)
                if entry is None:
                    entry = states[start] = SteppedStates(self._init())
                if entry.past:  # nobody asks for it any more
                    continue
                window = Window(start, ends[place])
                more = {
                    step: {"window": window} if reads else {} for step, reads in self._takes_window.items()
                }
                span = range(bounds[place], bounds[place + 1])
                for step, name, given in self._changes(items, weight, span):
                    new = step(entry.state, given, **more[name])
                    if new is not None:
                        entry.state = new
                entry.size += sum(weight[i] for i in span)
                adds += sum(max(weight[i], 0) for i in span)
                removes -= sum(min(weight[i], 0) for i in span)
                if entry.size == 0:
                    del states[start]
        except RAISED as error:  # whatever the user's code raises is reported alike
            caller.refuse(members, place, f"raised {type(error).__name__}: {error}", error)
        caller.counts["adds"] += adds
        caller.counts["removes"] += removes

    def _changes(
        self, items: list[Any], weight: list[int], span: range
    ) -> Iterator[tuple[Callable[..., Any], str, Any]]:
        """The calls that bring members into a state and out of it: what comes may be what goes at once."""
        if not self.caller.module.in_sets:
            for i in span:
                step, name = (self._add, "add") if weight[i] > 0 else (self._remove, "remove")
                for _ in range(abs(weight[i])):
                    yield step, name, items[i]
            return
        came = [items[i] for i in span for _ in range(max(weight[i], 0))]
        left = [items[i] for i in span for _ in range(max(-weight[i], 0))]
        target = self.caller.target
        if came:
            yield target.add_all, "add", came
        if left:
            yield target.remove_all, "remove", left

    def results(self, members: Members, groups: Sequence[Any]) -> list[Any]:
        """What the module computes for windows that have members."""
        starts = members.start.tolist()
        return [
            self.caller.answer(members, place, self.states[groups[place]][start].state)
            for place, start in enumerate(starts)
        ]

    def slide(self, members: Members, steps: Steps, groups: Sequence[Any]) -> list[Any]:
        """Lets one state per group slide over its windows; gives what is computed on the way."""
        caller, items = self.caller, self.caller.adapter.items(members)
        times, out = members.n.tolist(), []
        add, remove, compute = self._add, self._remove, caller.compute
        takes_window, listed = self._takes_window["compute"], caller.module.kind == "udo"
        counts = [0, 0]
        now, state = -1, None
        kinds, owners, which = steps.kind.tolist(), steps.group.tolist(), steps.which.tolist()
        i = 0
        try:
            for i, kind in enumerate(kinds):
                if owners[i] != now:
                    self._leave(groups, now, state)
                    now = owners[i]
                    state = self._enter(groups[now])
                if kind == GIVE:
                    more = {"window": caller.window(members, which[i])} if takes_window else {}
                    result = compute(state, **more)
                    out.append(caller.listed(result) if listed else result)
                elif kind == RESET:
                    state = self._init()
                else:
                    step, item = (add if kind == ENTER else remove), items[which[i]]
                    for _ in range(times[which[i]]):
                        new = step(state, item)
                        if new is not None:
                            state = new
                        counts[kind] += 1
        except RAISED as error:  # whatever the user's code raises is reported alike
            place, inside = _where(steps, i)
            there = np.where(np.isin(np.arange(len(items)), inside), place, -1)
            culprits = members._replace(owner=there)
            caller.refuse(culprits, place, f"raised {type(error).__name__}: {error}", error)
        self._leave(groups, now, state)
        caller.counts["adds"] += counts[ENTER]
        caller.counts["removes"] += counts[LEAVE]
        caller.counts["calls"] += len(out)
        return out

    def _enter(self, group: Any) -> Any:
        states = self.states.get(group)
        return self._init() if states is None else states[0].state

    def _leave(self, groups: Sequence[Any], number: int, state: Any) -> None:
        if number >= 0:
            self.states.setdefault(groups[number], {0: SteppedStates(None)})[0].state = state

    def drop(self, groups: Sequence[Any]) -> None:
        """Groups without members need no sliding state."""
        for group in groups:
            self.states.pop(group, None)

    def forget(self, group: Any, bound: int) -> None:
        """Lets go of the windows of a group that start before the bound."""
        states = self.states.get(group)
        if states is None:
            return
        for start in [start for start in states if start < bound]:
            del states[start]
        if not states:
            del self.states[group]

    def clear(self) -> None:
        """Lets all states go."""
        self.states.clear()

    @property
    def count(self) -> int:
        """How many states there are."""
        return sum(map(len, self.states.values()))


def _where(steps: Steps, at: int) -> tuple[int, list[int]]:
    """The window that a step leads to, and the members that have come for it."""
    given = np.flatnonzero(steps.kind[at:] == GIVE)
    place = int(steps.which[at:][given[0]]) if len(given) else int(steps.which[steps.kind == GIVE][-1])
    inside: list[int] = []
    for kind, group, which in zip(*(f[: at + 1].tolist() for f in steps), strict=True):
        if group != steps.group[at] or kind == RESET:
            inside = []
        elif kind == ENTER:
            inside.append(which)
        elif kind == LEAVE and which in inside:
            inside.remove(which)
    return place, inside
