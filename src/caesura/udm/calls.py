"""Calling a module for windows: recomputing, incrementally, or many windows at once.

Law: a module that raises is reported with its window and rows; one that answers differently the
second time is counted (``nondeterministic``), and survived, because what was sent is remembered.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import numpy as np
import pyarrow as pa

from caesura.errors import RAISED, StreamError
from caesura.expr.arrays import exact_array
from caesura.kernels.hashing import I64
from caesura.udm.adapters import Adapter, Members
from caesura.udm.module import Use
from caesura.udm.stamps import tick
from caesura.udm.values import Event, Window

ASK_TWICE = 64
TICKS = pa.int64()
SHOWN = 5
Stamped = tuple[I64, I64, I64, list[pa.Array]]


@dataclass
class Entry:
    """The state of one window, and the members that are in it."""

    state: Any
    ids: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    le: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    re: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    n: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    items: dict[int, tuple[Any, int]] = field(default_factory=dict)
    window: Window | None = None
    """The window that members were added for, where the module's steps are told of it."""


class Caller:
    """One use of a module in a query."""

    def __init__(self, use: Use, adapter: Adapter, time: pa.DataType = TICKS) -> None:
        self.time = time
        self.use, self.module, self.adapter = use, use.module, adapter
        self.incremental = self.module.incremental
        self.target = self.module.make(use.params)
        self.compute = self.target if not isinstance(self.module.target, type) else self.target.compute
        self.counts: dict[str, int] = {"calls": 0}
        if self.incremental:
            self.counts |= {"adds": 0, "removes": 0, "handed_over": 0}
        self._steps_read_window = any(map(self.reads, self.module.steps))
        self._states: dict[Any, dict[Any, Entry]] = {}
        self._lost = 0
        self._old = 0

    # Results.

    def values(self, members: Members, keys: Sequence[Any]) -> pa.Array:
        """One value per unit."""
        t = self.module.gives.field(0).type
        if self.module.segments:
            return self._segments(members, t)
        return self.column(members, self._results(members, keys))

    def column(self, members: Members, results: list[Any]) -> pa.Array:
        """Results as a column of the type that the module gives."""
        t = self.module.gives.field(0).type
        try:
            return exact_array(results, t)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
            for place, value in enumerate(results):
                try:
                    exact_array([value], t)
                except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError):
                    self.refuse(members, place, f"returned {value!r}, which is no {t}", error)
            raise

    def rows(self, members: Members, keys: Sequence[Any]) -> Stamped:
        """Any number of rows per unit, with stamps."""
        return self.stamped(members, self._results(members, keys))

    def stamped(self, members: Members, results: list[Any]) -> Stamped:
        """Rows of results, each with its unit and its stamps."""
        unit: list[int] = []
        spans: list[tuple[int, int]] = []
        cells: list[list[Any]] = [[] for _ in self.module.gives]
        for place, result in enumerate(results):
            for row in result:
                span, payload = self._stamped(members, place, row)
                unit.append(place)
                spans.append(span)
                for cell, value in zip(cells, self._cells(members, place, payload), strict=True):
                    cell.append(value)
        try:
            columns = [exact_array(c, f.type) for c, f in zip(cells, self.module.gives, strict=True)]
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
            self.refuse(members, unit[0], f"returned a row that does not fit its columns: {error}", error)
        stamps = np.array(spans, np.int64).reshape(-1, 2)
        return np.array(unit, np.int64), stamps[:, 0].copy(), stamps[:, 1].copy(), columns

    def _stamped(self, members: Members, place: int, row: Any) -> tuple[tuple[int, int], Any]:
        if isinstance(row, Event):
            given: tuple[Any, Any] = (row.start, row.end)
            payload = row.payload
        elif self.module.stamps and isinstance(row, dict) and "LE" in row:
            given, payload = (row["LE"], row.get("RE")), row  # one that is missing is no time
        else:
            return (int(members.low[place]), int(members.high[place])), row
        try:
            start, end = (tick(each, self.time) for each in given)
        except ValueError as error:
            self.refuse(members, place, f"stamped a row with a time that cannot be taken: {error}", error)
        if start >= end:
            self.refuse(members, place, f"stamped a row [{given[0]}, {given[1]}), which is empty", None)
        return (start, end), payload

    def _cells(self, members: Members, place: int, row: Any) -> list[Any]:
        names = self.module.gives.names
        try:
            if isinstance(row, dict):
                return [row[name] for name in names]
            if len(names) == 1 and not hasattr(row, names[0]):
                return [row]
            return [getattr(row, name) for name in names]
        except (KeyError, AttributeError) as error:
            self.refuse(members, place, f"returned {row!r} without the column {error}", error)

    # Recomputing.

    def _results(self, members: Members, keys: Sequence[Any]) -> list[Any]:
        if self.incremental:
            return [self._advance(members, place, keys) for place in range(len(members.start))]
        whole = members.copies()
        loaded = self.adapter.load(whole)
        ends = np.searchsorted(whole.owner, np.arange(len(members.start) + 1)).tolist()
        return [
            self._recompute(members, place, self.adapter.part(loaded, ends[place], ends[place + 1]))
            for place in range(len(members.start))
        ]

    def _recompute(self, members: Members, place: int, part: Any) -> Any:
        result = self._call(members, place, self.compute, part)
        self.counts["calls"] += 1
        if self.counts["calls"] % ASK_TWICE == 1 and self.module.traits.deterministic:
            again = self._call(members, place, self.compute, part)
            if repr(again) != repr(result):
                self.counts["nondeterministic"] = self.counts.get("nondeterministic", 0) + 1
        return result

    def _call(self, members: Members, place: int | None, method: Callable[..., Any], *args: Any) -> Any:
        """A step of the module for one window; for all of them at once where no place is given."""
        more = {"window": self.window(members, place)} if self.reads(method) else {}
        try:
            result = method(*args, **more)
            return self.listed(result) if self.module.kind == "udo" and method == self.compute else result
        except RAISED as error:  # whatever the user's code raises is reported alike
            self.refuse(members, place, f"raised {type(error).__name__}: {error}", error)

    def reads(self, method: Callable[..., Any]) -> bool:
        """Whether a step of the module takes its window."""
        from caesura.udm.define import reads_window

        return self.module.reads_window and reads_window(method)

    @staticmethod
    def listed(result: Any) -> list[Any]:
        """The rows that an operator gave, whatever it gave them in."""
        if isinstance(result, pa.RecordBatch):
            return result.to_pylist()  # type: ignore[no-any-return]
        if hasattr(result, "to_dict") and hasattr(result, "columns"):
            return list(result.to_dict("records"))
        return [] if result is None else list(result)

    def _segments(self, members: Members, t: pa.DataType) -> pa.Array:
        whole = members.copies()
        starts = np.searchsorted(whole.owner, np.arange(len(members.start)))
        self.counts["calls"] += 1
        result = self._call(members, None, self.compute, self.adapter.load(whole), starts)
        try:
            made = result if isinstance(result, pa.Array) else pa.array(result)
            column = made.cast(t)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            self.refuse(members, None, f"returned {result!r}, which is no array of {t}", error)
        if len(column) != len(members.start):
            self.refuse(members, None, f"gave {len(column)} values for {len(members.start)} windows", None)
        return column

    def window(self, members: Members, place: int | None) -> Window:
        if place is None:
            return Window(cast(Any, members.start), cast(Any, members.end))
        return Window(int(members.start[place]), int(members.end[place]))

    def refuse(
        self, members: Members, place: int | None, problem: str, cause: BaseException | None
    ) -> NoReturn:
        pairs = np.flatnonzero(members.owner == place) if place is not None else np.arange(len(members.owner))
        listed = self.module.view == "list" and bool(members.values)
        rows = self.adapter.items(members.take(pairs[:SHOWN])) if listed else []
        more = f" and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else ""
        shown = f", with the rows {rows}{more}" if rows else f", with {len(pairs)} rows"
        where = f"Window {self.window(members, place or 0)}"
        if place is None and len(members.start) > 1:
            where = f"{len(members.start)} windows, from {self.window(members, 0)} on"
        raise StreamError(
            f"{self.module.kind} '{self.module.name}' {problem}. {where}{shown}.",
            remedy="Make the module answer for such a window; check_module finds the smallest one.",
        ) from cause

    # Incrementally.

    def _advance(self, members: Members, place: int, keys: Sequence[Any]) -> Any:
        """Brings a window's state up to its members by adding and removing, and computes."""
        group, own = keys[place]
        states = self._states.setdefault(group, {})
        pairs = slice(*np.searchsorted(members.owner, (place, place + 1)))
        order = np.argsort(members.ids[pairs])
        ids, le, re, n = (f[pairs][order] for f in (members.ids, members.le, members.re, members.n))
        entry = states.get(own)
        window = self.window(members, place) if self._steps_read_window else None
        if entry is not None and entry.window != window:  # a session that grew: its steps would tell it apart
            entry = None
        if entry is None:
            near = states.get(keys[place - 1][1]) if place and keys[place - 1][0] == group else None
            entry = states[own] = self._born(near, ids)
            entry.window = window
        removed, came = _difference(entry, ids, le, re, n)
        left = [entry.items.pop(member) for member in removed.tolist()]
        self._change(members, place, entry, "remove", left)
        if len(came):
            whole = np.arange(pairs.start, pairs.stop)[order[came]]
            fresh = list(zip(self.adapter.items(members.take(whole)), n[came].tolist(), strict=True))
            entry.items.update(zip(ids[came].tolist(), fresh, strict=True))
            self._change(members, place, entry, "add", fresh)
        entry.ids, entry.le, entry.re, entry.n = ids, le, re, n
        return self.answer(members, place, entry.state)

    def answer(self, members: Members, place: int, state: Any) -> Any:
        """What is computed from a state."""
        self.counts["calls"] += 1
        return self._call(members, place, self.compute, state)

    def _born(self, near: Entry | None, ids: I64) -> Entry:
        """A new window's state: a copy of its neighbour's where that is nearer than starting anew."""
        if near is not None and not self._steps_read_window:
            shared = len(np.intersect1d(near.ids, ids, assume_unique=True))
            if len(near.ids) + len(ids) - 2 * shared < len(ids):
                copied = getattr(self.target, "copy", copy.deepcopy)(near.state)
                return Entry(copied, near.ids, near.le, near.re, near.n, dict(near.items))
        if (ids < self._old).any():
            self.counts["handed_over"] += 1
        return Entry(self.target.init())

    def _change(
        self, members: Members, place: int, entry: Entry, step: str, some: list[tuple[Any, int]]
    ) -> None:
        """Lets the module add or remove some members, each so many times: one by one, or all at once."""
        given = [item for item, times in some for _ in range(times)]
        if not given:
            return
        method = getattr(self.target, f"{step}_all" if self.module.in_sets else step)
        for each in [given] if self.module.in_sets else given:
            new = self._call(members, place, method, entry.state, each)
            entry.state = entry.state if new is None else new
        self.counts[f"{step}s"] += len(given)

    def retain(self, group: Any, lo: int, hi: int, there: set[Any]) -> None:
        """Lets go of the windows that start in [lo, hi) and are no longer there."""
        states = self._states.get(group, {})
        for own in [own for own in states if lo <= own[0] < hi and own not in there]:
            del states[own]

    def forget(self, done: Sequence[Any]) -> None:
        """Lets go of the windows of each (group, bound on starts)."""
        for group, bound in done:
            states = self._states.get(group)
            if states is None:
                continue
            for own in [own for own in states if own[0] < bound]:
                del states[own]
            if not states:
                del self._states[group]

    def renumber(self, remaining: I64) -> None:
        """Members were renumbered: ``kept`` has the old numbers by new number.

        A member whose end changed goes on under another number; windows that the change did not touch
        still name the old one, which gets a number of its own below zero until they are looked at.
        """
        self._old = int(np.searchsorted(remaining, self._old))
        for entries in self._states.values():
            for entry in entries.values():
                self._rename(entry, remaining)

    @property
    def held(self) -> int:
        """How many states, and members remembered with them, there are."""
        return sum(1 + len(e.items) for entries in self._states.values() for e in entries.values())

    def restored(self, members: int) -> None:
        """So many members came from a snapshot: windows with them are handed over whole, once."""
        self._states, self._old = {}, members

    def _rename(self, entry: Entry, remaining: I64) -> None:
        new = np.searchsorted(remaining, entry.ids)
        known = new < len(remaining)
        known[known] = remaining[new[known]] == entry.ids[known]
        lost = np.flatnonzero(~known & (entry.ids >= 0))
        new[~known] = entry.ids[~known]
        new[lost] = -1 - self._lost - np.arange(len(lost))
        self._lost += len(lost)
        names = dict(zip(entry.ids.tolist(), new.tolist(), strict=True))
        entry.items = {names[i]: item for i, item in entry.items.items()}
        order = np.argsort(new)
        entry.ids = new[order]
        entry.le, entry.re, entry.n = entry.le[order], entry.re[order], entry.n[order]


def _difference(entry: Entry, ids: I64, le: I64, re: I64, n: I64) -> tuple[I64, I64]:
    """The members that must go, and the places of those that must come."""
    place = np.searchsorted(entry.ids, ids)
    known = place < len(entry.ids)
    known[known] = entry.ids[place[known]] == ids[known]
    same = known.copy()
    there = place[known]
    alike = (entry.le[there] == le[known]) & (entry.re[there] == re[known])
    same[known] = alike & (entry.n[there] == n[known])
    stays = np.zeros(len(entry.ids), np.bool_)
    stays[place[same]] = True
    return entry.ids[~stays], np.flatnonzero(~same)
