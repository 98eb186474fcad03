"""A window made up to try a module on, and the module's answer for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.udm.adapters import Members
from caesura.udm.calls import Caller
from caesura.udm.values import Window

PLAIN: tuple[Any, ...] = (0, 0.0, "", b"")


@dataclass(frozen=True)
class ModuleTrial:
    """The rows of one window [0, end), their lifetimes, and rows that come and go on the way."""

    rows: list[Any]
    spans: list[tuple[int, int]]
    passing: list[Any]
    end: int

    def but(self, **changes: Any) -> ModuleTrial:
        made = replace(self, **changes)
        return replace(made, spans=made.spans[: len(made.rows)])

    def pick(self, places: list[int]) -> ModuleTrial:
        """Some of the rows."""
        return replace(self, rows=[self.rows[i] for i in places], spans=[self.spans[i] for i in places])

    def until(self, moment: int) -> ModuleTrial:
        """What is known at a moment: events that have begun, without ends to come."""
        begun = [i for i, (start, _) in enumerate(self.spans) if start <= moment]
        some = self.pick(begun)
        return replace(some, spans=[(s, e if e <= moment else self.end) for s, e in some.spans])

    def smaller(self) -> Iterator[ModuleTrial]:
        """Trials with a row less, or with a plainer value."""
        for i in range(len(self.rows)):
            yield self.pick([j for j in range(len(self.rows)) if j != i])
        for i in range(len(self.passing)):
            if len(self.passing) > 1:
                yield replace(self, passing=self.passing[:i] + self.passing[i + 1 :])
        for name in ("rows", "passing"):
            rows = getattr(self, name)
            for i, row in enumerate(rows):
                for plain in PLAIN:
                    if type(row) is type(plain) and row != plain:
                        yield self.but(**{name: [*rows[:i], plain, *rows[i + 1 :]]})


def _members(caller: Caller, trial: ModuleTrial, rows: list[Any], spans: list[tuple[int, int]]) -> Members:
    takes = caller.module.takes or (("value", None),)
    cells = rows if len(takes) > 1 else [(row,) for row in rows]
    values = [pa.array([cell[i] for cell in cells], t) for i, (_, t) in enumerate(takes)]
    n = len(rows)
    none, one = np.zeros(n, np.int64), np.ones(n, np.int64)
    low, high = np.zeros(1, np.int64), np.array([trial.end])
    span = np.array(spans, np.int64).reshape(-1, 2)
    return Members(low, high, low, high, none, span[:, 0], span[:, 1], one, np.arange(n), values)


def given(caller: Caller, trial: ModuleTrial) -> list[Any]:
    """The rows of a trial as the module sees them one by one."""
    return caller.adapter.items(_members(caller, trial, trial.rows, trial.spans))


def result_of(caller: Caller, trial: ModuleTrial, *, detour: bool = False) -> Any:
    """A module's answer; with a detour, other rows are added and removed on the way."""
    module = caller.module
    window = {"window": Window(0, trial.end)}
    arguments = window if caller.reads(caller.compute) else {}
    if not module.incremental:
        members = _members(caller, trial, trial.rows, trial.spans)
        if module.segments:
            return caller.values(members, [])[0].as_py()
        loaded = caller.adapter.part(caller.adapter.load(members), 0, len(trial.rows))
        return _plain(caller, caller.compute(loaded, **arguments))
    steps = [("add", item) for item in given(caller, trial)]
    if detour:
        spans = [(0, trial.end)] * len(trial.passing)
        passing = caller.adapter.items(_members(caller, trial, trial.passing, spans))
        steps = [*(("add", p) for p in passing), *steps, *(("remove", p) for p in reversed(passing))]
    state = caller.target.init()
    for step, item in steps:
        method = getattr(caller.target, step)
        new = method(state, item, **(window if caller.reads(method) else {}))
        state = state if new is None else new
    return _plain(caller, caller.compute(state, **arguments))


def _plain(caller: Caller, result: Any) -> Any:
    return caller.listed(result) if caller.module.kind == "udo" else result
