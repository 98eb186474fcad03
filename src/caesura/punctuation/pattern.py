"""Which items a punctuation speaks of: per attribute a set of values, wildcards left out.

`time` is an item's sync time; the other attributes are its payload. No sync time is INFINITY, so
`before(INFINITY)` is the pattern without constraints, which every item matches.

>>> print(Pattern.before(20).intersect(Pattern(id=4)))
time < 20, id = 4
>>> Pattern(id=[1, 2, 3]).covers(Pattern(id=2, speed=lt(20)))
True
>>> [str(piece) for piece in Pattern(id=4).minus(Pattern.before(20))]
['time >= 20, id = 4']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caesura.errors import PatternError, closest
from caesura.misuse import checked
from caesura.punctuation import text
from caesura.punctuation.coercion import fit
from caesura.punctuation.time import INFINITY, MIN_TIME, TIME
from caesura.punctuation.values import ANY, NOT_NULL, Values, lt, one_of, value

Items = tuple[tuple[str, Values], ...]
Columns = Mapping[str, Any]


class Pattern:
    """A conjunction of constraints, one per attribute; frozen and hashable."""

    __slots__ = ("_derived", "_hash", "_items")
    _items: Items
    _hash: int | None
    _derived: tuple[Callable[[Pattern], Pattern], Pattern] | None

    def __init__(self, /, *unnamed: Any, **attributes: Any) -> None:
        if unnamed:
            raise _no_pattern(unnamed[0])
        object.__setattr__(self, "_items", _normal(attributes))
        object.__setattr__(self, "_hash", None)
        object.__setattr__(self, "_derived", None)

    @staticmethod
    @checked
    def of(constraints: Mapping[str, Any]) -> Pattern:
        """A pattern from a mapping.

        Parameters
        ----------
        constraints
            For each attribute a value, a collection of values, or a set such as ``lt(5)``; ``time`` is
            the start of a row.

        Returns
        -------
        Pattern
            The pattern.

        Examples
        --------
        >>> from caesura.punctuation import Pattern
        >>> print(Pattern.of({"id": 3, "kind": ["a", "b"]}))
        id = 3, kind in {'a', 'b'}
        """
        return Pattern(**constraints)

    @staticmethod
    def before(t: int) -> Pattern:
        """Everything that starts or changes before a time: the pattern of a CTI.

        Parameters
        ----------
        t
            The time, in ticks.

        Returns
        -------
        Pattern
            The pattern.

        See Also
        --------
        cti : the promise that nothing of it follows.

        Examples
        --------
        >>> from caesura.punctuation import Pattern
        >>> print(Pattern.before(10))
        time < 10
        """
        try:
            return _before(int(t))
        except (TypeError, ValueError, OverflowError):
            raise PatternError(f"{t!r} is no time.", remedy="Give it in ticks, a whole number.") from None

    def __setattr__(self, name: str, _: Any) -> None:
        raise AttributeError(f"a pattern is frozen; {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self._items == other._items

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(self._items))
        return self._hash  # type: ignore[return-value]

    def __reduce__(self) -> tuple[object, ...]:
        return Pattern.of, (dict(self._items),)

    def __str__(self) -> str:
        ordered = sorted(self._items, key=lambda item: item[0] != TIME)
        return ", ".join(text.constraint(name, values) for name, values in ordered) or "*"

    def __repr__(self) -> str:
        return f"Pattern({self})"

    def __getitem__(self, name: str) -> Values:
        """The values an attribute may have: ANY if it is not constrained (time is never null)."""
        for known, values in self._items:
            if known == name:
                return values
        return NOT_NULL if name == TIME else ANY

    __iter__ = None
    """Asked for one place after the other it would answer for ever."""

    def __contains__(self, name: object) -> bool:
        return any(known == name for known, _ in self._items)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The constrained attributes, by name."""
        return tuple([name for name, _ in self._items])

    def items(self) -> Items:
        """The constraints, by name.

        Returns
        -------
        tuple
            Pairs of an attribute and its values, in order of the names.

        Examples
        --------
        >>> from caesura.punctuation import Pattern
        >>> Pattern(id=3).items()
        (('id', Values(3)),)
        """
        return self._items

    @property
    def is_empty(self) -> bool:
        """Whether no item can match."""
        return any(values.is_empty for _, values in self._items)

    @property
    def time_bound(self) -> int | None:
        """The t of a time constraint `time < t`; INFINITY without one; None for any other."""
        times = self[TIME]
        if times.low:
            return INFINITY if not times.cuts else (times.cuts[0][0] if len(times.cuts) == 1 else None)
        return MIN_TIME if not times.cuts else None

    @checked
    def reach(self, start: int) -> int:
        """How far the pattern holds from a time on.

        Parameters
        ----------
        start
            The first time, in ticks.

        Returns
        -------
        int
            The largest t such that all times from the start up to t, without it, are in the pattern; the
            start itself where it is not in it.

        Examples
        --------
        >>> from caesura.punctuation import Pattern
        >>> Pattern.before(10).reach(4)
        10
        """
        end = self[TIME].reach(start)
        return INFINITY if end is None else end

    def without_time(self) -> Pattern:
        """The same constraints but the one on time.

        Returns
        -------
        Pattern
            The pattern.

        Examples
        --------
        >>> from caesura.punctuation import Pattern, lt
        >>> print(Pattern(id=3, time=lt(10)).without_time())
        id = 3
        """
        return self.replace(TIME, NOT_NULL)

    def replace(self, name: str, values: Values) -> Pattern:
        """The same pattern with another constraint on one attribute.

        Parameters
        ----------
        name
            The attribute.
        values
            What it may be, such as ``lt(5)`` or ``one_of([1, 2])``.

        Returns
        -------
        Pattern
            The pattern; ANY takes the constraint away.

        Examples
        --------
        >>> from caesura.punctuation import Pattern, lt
        >>> print(Pattern(id=3).replace("id", lt(5)))
        id < 5
        """
        if not isinstance(values, Values):
            raise _no_pattern(values)
        kept = _constraint(name, values)
        before = tuple([item for item in self._items if item[0] < name])
        behind = tuple([item for item in self._items if item[0] > name])
        return _made(before + behind if kept is None else (*before, (name, kept), *behind))

    def derived(self, make: Callable[[Pattern], Pattern]) -> Pattern:
        """What a pure function makes of it; the last one asked for is not made again.

        Parameters
        ----------
        make
            A function of the pattern, always the same object.

        Returns
        -------
        Pattern
            What the function gives.

        Examples
        --------
        >>> from caesura.punctuation import Pattern
        >>> print(Pattern(id=3).derived(Pattern.without_time))
        id = 3
        """
        known = self._derived
        if known is None or known[0] is not make:
            if not callable(make):
                raise _no_pattern(make)
            known = make, make(self)
            object.__setattr__(self, "_derived", known)
        return known[1]

    def covers(self, other: Pattern) -> bool:
        """Whether every row that matches the other matches this one.

        Parameters
        ----------
        other
            The other pattern.

        Returns
        -------
        bool
            True or False.

        Examples
        --------
        >>> from caesura.punctuation import Pattern, lt
        >>> Pattern(id=lt(5)).covers(Pattern(id=3))
        True
        """
        if not isinstance(other, Pattern):
            raise _no_pattern(other)
        return other.is_empty or all(values.covers(other[name]) for name, values in self._items)

    def intersects(self, other: Pattern) -> bool:
        """Whether some row matches both.

        Parameters
        ----------
        other
            The other pattern.

        Returns
        -------
        bool
            True or False.

        Examples
        --------
        >>> from caesura.punctuation import Pattern, lt
        >>> Pattern(id=lt(5)).intersects(Pattern(id=7))
        False
        """
        if not isinstance(other, Pattern):
            raise _no_pattern(other)
        if other.is_empty:
            return False
        return all(values.intersects(other[name]) for name, values in self._items)

    def intersect(self, other: Pattern) -> Pattern | None:
        """What matches both.

        Parameters
        ----------
        other
            The other pattern.

        Returns
        -------
        Pattern or None
            The pattern, or None where nothing can.

        Examples
        --------
        >>> from caesura.punctuation import Pattern, lt
        >>> print(Pattern(id=lt(5)).intersect(Pattern(kind=1)))
        id < 5, kind = 1
        """
        if not self.intersects(other):
            return None
        both = dict(self._items)
        for name, values in other._items:
            both[name] = values.intersect(both[name]) if name in both else values
        return Pattern(**both)

    def minus(self, other: Pattern) -> tuple[Pattern, ...]:
        """What matches this pattern and not the other.

        Parameters
        ----------
        other
            The other pattern.

        Returns
        -------
        tuple
            Disjoint patterns that together match it; none where the other covers this one.

        Examples
        --------
        >>> from caesura.punctuation import Pattern, lt
        >>> [str(p) for p in Pattern(id=lt(5)).minus(Pattern(id=3))]
        ['id < 3 or 4']
        """
        if self.is_empty:
            return ()
        if not self.intersects(other):
            return (self,)
        pieces: list[Pattern] = []
        rest = self
        for name, values in other._items:
            outside = rest[name].minus(values)
            if not outside.is_empty:
                pieces.append(rest.replace(name, outside))
                rest = rest.replace(name, rest[name].intersect(values))
        return tuple(pieces)

    @checked
    def matches(
        self, payload: pa.RecordBatch | Columns, times: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.bool_]:
        """Which rows match.

        Parameters
        ----------
        payload
            The rows: a batch, or a mapping of columns.
        times
            When they start, where the pattern constrains time.

        Returns
        -------
        numpy.ndarray
            True or False for each row.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura.punctuation import Pattern
        >>> Pattern(id=3).matches(pa.record_batch({"id": [3, 4]})).tolist()
        [True, False]
        """
        rows = row_count(payload, times)
        result = np.ones(rows, dtype=np.bool_)
        for name, values in self._items:
            column = times if name == TIME and times is not None else _column(payload, name)
            result &= values.mask(column)
        return result

    @checked
    def matches_row(self, row: Mapping[str, Any]) -> bool:
        """Whether one row matches.

        Parameters
        ----------
        row
            The row's values by name, its start as ``time``.

        Returns
        -------
        bool
            True or False.

        Raises
        ------
        PatternError
            Where the row lacks an attribute that is constrained.

        Examples
        --------
        >>> from caesura.punctuation import Pattern
        >>> Pattern(id=3).matches_row({"id": 3, "v": 1})
        True
        """
        for name, values in self._items:
            if name not in row:
                raise _unknown(name, row)
            if not values.contains(row[name]):
                return False
        return True

    @checked
    def check(self, schema: pa.Schema, *, ticks: Iterable[str] = (TIME,)) -> Pattern:
        """The pattern with its constants read as the columns' types.

        Parameters
        ----------
        schema
            The columns.
        ticks
            Attributes that are times in ticks.

        Returns
        -------
        Pattern
            The pattern.

        Raises
        ------
        PatternError
            Where there is no such column, or a constant is none of its type.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura.punctuation import Pattern, lt
        >>> print(Pattern(speed=lt(20)).check(pa.schema([("speed", pa.float64())])))
        speed < 20.0
        """
        reserved = {*ticks, TIME}
        fitted: dict[str, Values] = {}
        for name, values in self._items:
            if name in reserved:
                type_ = pa.int64()
            elif name in schema.names:
                type_ = schema.field(name).type
            else:
                raise _unknown(name, [*schema.names, *reserved])
            checked = fit(values, type_, name)
            fitted[name] = Values(checked.low, checked.cuts, checked.null, checked.kind)
        return Pattern(**fitted)

    def to_json(self) -> dict[str, Any]:
        """The pattern as data that JSON can hold.

        Returns
        -------
        dict
            What `from_json` makes an equal pattern of.

        Examples
        --------
        >>> from caesura.punctuation import Pattern
        >>> Pattern.from_json(Pattern(id=3).to_json()) == Pattern(id=3)
        True
        """
        return {name: values.to_json() for name, values in self._items}

    @staticmethod
    @checked
    def from_json(data: Mapping[str, Any]) -> Pattern:
        """The pattern that `to_json` wrote.

        Parameters
        ----------
        data
            What `to_json` gave.

        Returns
        -------
        Pattern
            The pattern.

        Examples
        --------
        >>> from caesura.punctuation import Pattern
        >>> print(Pattern.from_json(Pattern(id=3).to_json()))
        id = 3
        """
        return Pattern(**{name: Values.from_json(values) for name, values in data.items()})


def _made(items: Items) -> Pattern:
    """A pattern of constraints that are in order and normal."""
    pattern = Pattern.__new__(Pattern)
    object.__setattr__(pattern, "_items", items)
    object.__setattr__(pattern, "_hash", None)
    object.__setattr__(pattern, "_derived", None)
    return pattern


def row_count(payload: pa.RecordBatch | Columns, times: npt.NDArray[np.int64] | None = None) -> int:
    """How many rows a batch, or a mapping of columns, has."""
    if times is not None:
        return len(times)
    if isinstance(payload, Mapping):
        return len(next(iter(payload.values()))) if payload else 0
    return int(payload.num_rows)


def _column(payload: pa.RecordBatch | Columns, name: str) -> Any:
    names = list(payload) if isinstance(payload, Mapping) else payload.schema.names
    if name not in names:
        raise _unknown(name, names)
    return payload[name]


def _no_pattern(given: object) -> PatternError:
    return PatternError(
        f"{given!r} is no pattern.", remedy="Name the columns and their values: cz.Pattern(id=3)."
    )


def _unknown(name: str, among: Iterable[str]) -> PatternError:
    return PatternError(f"the pattern constrains '{name}', which is not there.", remedy=closest(name, among))


@lru_cache(maxsize=256)
def _before(t: int) -> Pattern:
    """The same few times are asked for by every step that a CTI passes."""
    return Pattern(**{TIME: lt(t)})


def _normal(attributes: Mapping[str, Any]) -> Items:
    named = [(name, _constraint(name, _as_values(attributes[name]))) for name in sorted(attributes)]
    return tuple([(name, values) for name, values in named if values is not None])


def _constraint(name: str, values: Values) -> Values | None:
    """What a pattern keeps of a constraint; None where it lets everything pass."""
    if name == TIME:
        values = _ticks(values)
        return None if values == NOT_NULL else values
    return None if values.is_any else values


def _as_values(given: Any) -> Values:
    if isinstance(given, Values):
        return given
    if isinstance(given, set | frozenset | list | tuple):
        return one_of(given)
    return value(given)


def _ticks(values: Values) -> Values:
    """A set of sync times: never null, and without the cuts that no tick lies beyond."""
    if values.kind not in ("", "int"):
        raise PatternError(
            f"'{TIME}' is counted in int64 ticks, but the pattern gives {values.kind} constants: {values}.",
            remedy="Write integers (microseconds for timestamps).",
        )
    low, cuts = values.low, values.cuts
    while cuts and cuts[0][0] <= MIN_TIME:
        low, cuts = not low, cuts[1:]
    while cuts and cuts[-1][0] >= INFINITY:
        cuts = cuts[:-1]
    return Values(low, cuts, False, "int" if cuts else "")
