"""The definite punctuation that one edge has given: what can never come any more.

Patterns that differ in one attribute are one pattern with the union there, and patterns that others cover
are dropped, so that id = 1, id = 2, id = 3, ... cost one range.

>>> promised = Promises()
>>> [promised.add(Pattern(id=n)) for n in (1, 2, 3, 2)], promised.size
([True, True, True, False], 1)
>>> promised.add(Pattern.before(20)), promised.cti
(True, 20)
>>> promised.effective_cti(columns={"id": pa.array([2, 9])}).tolist() == [INFINITY, 20]
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from caesura.punctuation.index import PatternIndex
from caesura.punctuation.pattern import Columns, Pattern, row_count
from caesura.punctuation.time import INFINITY, MIN_TIME, TIME
from caesura.punctuation.values import NOTHING, Values

Ticks = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_Counted = tuple[dict[str, list[Pattern]], list[Pattern]]  # one-value promises by column, and the others

LOOKUP_FROM = 8  # from so many one-value promises on one column on, a lookup is built instead of masks


class Promises:
    """Accumulated promises: an unconditional `cti`, and the patterns that say more.

    Where what they forbid counts, and not their form, a tidy set keeps of each what others do not say:

    >>> tidy = Promises([Pattern(id=[1, 2], x=7), Pattern(id=[2, 3])], tidy=True)
    >>> tidy
    Promises(id in [2..3]; id = 1, x = 7)
    """

    def __init__(self, patterns: Iterable[Pattern] = (), *, tidy: bool = False) -> None:
        self._tidy = tidy
        self.cti: int = MIN_TIME
        self._index = PatternIndex()
        self._lookups: dict[Any, tuple[pa.Array, Ticks]] = {}
        self._plans: dict[tuple[str, ...], _Counted] = {}
        for pattern in patterns:
            self.add(pattern)

    def __repr__(self) -> str:
        return f"Promises({'; '.join(str(pattern) for pattern in self.patterns())})"

    @property
    def size(self) -> int:
        """How many patterns there are besides the cti."""
        return len(self._index)

    def patterns(self) -> tuple[Pattern, ...]:
        """All promises; the cti, if there is one, comes first."""
        first = () if self.cti == MIN_TIME else (Pattern.before(self.cti),)
        return (*first, *self._index)

    def others(self) -> tuple[Pattern, ...]:
        """The promises besides the cti."""
        return tuple(self._index)

    def add(self, pattern: Pattern) -> bool:
        """Take a promise; False when those before it said as much already."""
        bound = _unconditional(pattern)
        if bound is not None:
            return self.advance(bound)
        if self._index.each_on_one and len(pattern.items()) == 1 and pattern.attributes != (TIME,):
            return self._widen(pattern)
        if self.covers(pattern):
            return False
        self._forget()
        self._file(pattern)
        return True

    def _widen(self, pattern: Pattern) -> bool:
        """Take a promise on one column where each is on one: what `_file` comes to, without its search."""
        name, values = pattern.items()[0]
        held = self._index.alone(name)
        known = NOTHING if held is None else held[name]
        if self.cti == INFINITY or known.covers(values):
            return False
        self._forget()
        if held is not None:
            self._index.discard(held)
            pattern = pattern.replace(name, known.union(values))
        if pattern.items():
            self._index.add(pattern)
        else:
            self.advance(INFINITY)
        return True

    def _file(self, pattern: Pattern) -> None:
        """Keep a promise, as one with others where that can be said, and without what others say for good."""
        todo = [pattern]
        while todo:
            pattern = self._merged(todo.pop())
            bound = _unconditional(pattern)
            if bound is not None:
                self.advance(bound)
                continue
            for other in self._index.near(pattern):
                if pattern.covers(other):
                    self._index.discard(other)
                elif self._tidy and (rest := _trimmed(other, pattern)) is not None:
                    self._index.discard(other)
                    todo.append(rest)
            self._index.add(pattern)
            todo = [rest for rest in todo if not self.covers(rest)]
            if pattern.attributes == (TIME,):
                self.advance(pattern.reach(self.cti))

    def _merged(self, pattern: Pattern) -> Pattern:
        """A pattern with those that differ from it in one attribute, which are kept no longer."""
        pattern = self._without_known(pattern)
        while (found := self._index.partner(pattern)) is not None:
            name, other = found
            self._index.discard(other)
            pattern = self._without_known(pattern.replace(name, pattern[name].union(other[name])))
        return pattern

    def _without_known(self, pattern: Pattern) -> Pattern:
        return self.rest_of(pattern) if self._tidy else pattern

    def advance(self, t: int) -> bool:
        """Take the promise `time < t`, without any pattern algebra when no other promise is there."""
        if t <= self.cti:
            return False
        alone = self._index.alone(TIME)
        self.cti = t if alone is None else alone.reach(t)
        for held in [held for held in self._index if self._below_cti(held)]:
            self._index.discard(held)
            self._forget()
        return True

    def covers(self, pattern: Pattern) -> bool:
        """Whether the promises, alone or together, forbid everything that matches."""
        if pattern.is_empty or self._below_cti(pattern):
            return True
        near = [held for held in self._index.near(pattern) if held.intersects(pattern)]
        if any(held.covers(pattern) for held in near):
            return True
        if not near or not _plausible(near, pattern):
            return False
        rest = pattern.minus(Pattern.before(self.cti))
        for held in near:
            rest = tuple(piece for part in rest for piece in part.minus(held))
            if not rest:
                return True
        return False

    def effective_cti(
        self, payload: pa.RecordBatch | None = None, *, columns: Columns | None = None
    ) -> int | Ticks:
        """Per row, the largest t such that nothing with its payload and a sync time below t can come.

        Promises on attributes that are not among the columns do not count; the plain cti is the answer when
        no other promise does.
        """
        rows = _columns(payload, columns)
        simple, others = self._counted(rows)
        if not simple and not others:
            return self.cti
        count = row_count(rows if payload is None else payload)
        bounds = np.full(count, self.cti, dtype=np.int64)
        rest = list(others)
        for name, some in simple.items():
            rest.extend(self._look_up(name, some, rows[name], bounds))
        gaps: list[tuple[Pattern, Mask]] = []
        for held in rest:
            matching = held.without_time().matches(rows)
            bound = held.reach(self.cti)
            np.maximum(bounds, bound, out=bounds, where=matching)
            if not _is_prefix(held):
                gaps.append((held, matching))
        _climb(bounds, gaps)
        return bounds

    def forbids(self, payload: pa.RecordBatch | Columns, times: Ticks) -> Mask:
        """Per row, whether it contradicts a promise."""
        rows = _columns(payload, None)
        forbidden: Mask = np.less(times, self.effective_cti(columns=rows))
        for held in self._index:
            if not _is_prefix(held) and _is_about(held, rows):
                forbidden |= held.matches(rows, times)
        return forbidden

    def drop_covered(self, by: Promises) -> None:
        """Forget what other promises say as well: patterns, besides the cti, and parts of them."""
        for held in list(self._index):
            if by.covers(held):
                self._index.discard(held)
                self._forget()
            elif (rest := by.rest_of(held)) != held:
                self._index.discard(held)
                self._forget()
                self._file(rest)

    def rest_of(self, pattern: Pattern) -> Pattern:
        """A pattern without the values of single attributes for which these promises say as much already."""
        for held in self._index.near(pattern):
            pattern = _trimmed(pattern, held) or pattern
        return pattern

    def forget(self, patterns: Iterable[Pattern]) -> None:
        """Forget some of the patterns besides the cti."""
        for held in patterns:
            self._index.discard(held)
            self._forget()

    def copy(self) -> Promises:
        """Promises that grow on their own from here."""
        same = Promises(tidy=self._tidy)
        same.cti = self.cti
        for held in self._index:
            same._index.add(held)
        return same

    def to_json(self) -> dict[str, Any]:
        """The promises as JSON-able data."""
        return {"cti": self.cti, "patterns": [held.to_json() for held in self._index]}

    @staticmethod
    def from_json(data: Mapping[str, Any], *, tidy: bool = False) -> Promises:
        """The promises that `to_json` wrote."""
        promises = Promises(tidy=tidy)
        promises.cti = data["cti"]
        for held in data["patterns"]:
            promises._index.add(Pattern.from_json(held))
        return promises

    def _forget(self) -> None:
        self._lookups.clear()
        self._plans.clear()

    def _below_cti(self, pattern: Pattern) -> bool:
        if self.cti == INFINITY:
            return True
        times = pattern[TIME]
        return bool(times.cuts) and len(times.cuts) % 2 == int(times.low) and times.cuts[-1][0] <= self.cti

    def _counted(self, rows: Columns) -> _Counted:
        key = tuple(rows)
        if key not in self._plans:
            self._plans[key] = self._split([held for held in self._index if _is_about(held, rows)])
        return self._plans[key]

    def _split(self, counted: list[Pattern]) -> _Counted:
        simple: dict[str, list[Pattern]] = {}
        rest: list[Pattern] = []
        for held in counted:
            names = [name for name in held.attributes if name != TIME]
            values = held[names[0]] if len(names) == 1 else None
            if values is not None and values.is_point and values.kind in ("int", "str") and _is_prefix(held):
                simple.setdefault(names[0], []).append(held)
            else:
                rest.append(held)
        for name in [name for name, some in simple.items() if len(some) < LOOKUP_FROM]:
            rest.extend(simple.pop(name))
        return simple, rest

    def _look_up(self, name: str, some: list[Pattern], column: Any, bounds: Ticks) -> list[Pattern]:
        """Raise the bounds by promises on one value each; gives back those it could not look up."""
        array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
        if not _can_look_up(array.type, {held[name].kind for held in some}):
            return some
        key = (name, array.type)
        if key not in self._lookups:
            try:
                points = pa.array([held[name].point for held in some], type=array.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                return some
            ticks = np.array([held.time_bound for held in some], dtype=np.int64)
            self._lookups[key] = (points, ticks)
        points, ticks = self._lookups[key]
        at = pc.fill_null(pc.index_in(array, value_set=points), -1).to_numpy()
        np.maximum(bounds, np.where(at >= 0, ticks[at], MIN_TIME), out=bounds)
        return []


def _climb(bounds: Ticks, gaps: list[tuple[Pattern, Mask]]) -> None:
    """Promises such as 10 <= time < 20 raise a row's bound once others have brought it there."""
    moving = bool(gaps)
    while moving:
        moving = False
        for held, matching in gaps:
            for start in np.unique(bounds[matching]).tolist():
                end = held.reach(start)
                if end > start:
                    bounds[matching & (bounds == start)] = end
                    moving = True


def _plausible(near: list[Pattern], pattern: Pattern) -> bool:
    """A cheap necessary condition for promises to cover a pattern that is not below the cti.

    Where those on an attribute do not have all of its values together, they do not help with the values
    they lack, and the others must do without them; the cti helps with none. The latest times must be covered
    too, and only those promises help there that reach so far.
    """
    last = pattern[TIME].last
    left = [held for held in near if TIME not in held or _reaches(held[TIME], last)]
    if not left:
        return False
    for name in dict.fromkeys(name for held in near for name in held.attributes if name != TIME):
        sets = [held[name] for held in left if name in held]
        while len(sets) > 1:
            pairs = zip_longest(sets[::2], sets[1::2], fillvalue=NOTHING)
            sets = [a.union(b) for a, b in pairs]
        if sets and not sets[0].covers(pattern[name]):
            left = [held for held in left if name not in held]
            if not left:
                return False
    return True


def _trimmed(pattern: Pattern, by: Pattern) -> Pattern | None:
    """A pattern without the values of one attribute that another has as well; None where that is no shorter.

    Where `id >= 0` is promised, of `id < 1, x = 1` and `id < 2, x = 2` only `id < 0, x = 1` and
    `id < 0, x = 2` remain, and they are one.
    """
    wider = ""
    for name, values in by.items():
        own = pattern[name]
        if values.covers(own):
            continue
        if wider or name == TIME or name not in pattern or not values.intersects(own):
            return None
        wider = name
    rest = pattern[wider].minus(by[wider])
    return pattern.replace(wider, rest) if len(rest.cuts) <= len(pattern[wider].cuts) else None


def _reaches(times: Values, last: int | None) -> bool:
    """Whether a set of times has the last one in it; None for a set that goes on."""
    end = times.last
    return end is None or (last is not None and end >= last)


def _unconditional(pattern: Pattern) -> int | None:
    items = pattern.items()
    plain = not items or (len(items) == 1 and items[0][0] == TIME)
    return pattern.time_bound if plain else None


def _can_look_up(type_: pa.DataType, kinds: set[str]) -> bool:
    if pa.types.is_integer(type_):
        return kinds == {"int"}
    return kinds == {"str"} and (pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_about(pattern: Pattern, rows: Columns) -> bool:
    return all(name in rows or name == TIME for name in pattern.attributes)


def _is_prefix(pattern: Pattern) -> bool:
    return pattern.time_bound is not None


def _columns(payload: pa.RecordBatch | Columns | None, columns: Columns | None) -> Columns:
    if columns is not None:
        return columns
    if payload is None:
        return {}
    if isinstance(payload, Mapping):
        return payload
    return dict(zip(payload.schema.names, payload.columns, strict=True))
