"""A subset of one attribute's ordered domain: disjoint intervals, and whether null is in it.

The sets are closed under union, intersection, difference and complement, and equal sets are equal values.
Integer sets are sets of integers: `lt(10) == le(9)`. Since a literal such as `lt(20)` may turn out to speak
of a float column, it remembers how it was spelled until a schema is known.

>>> str(lt(20)), str(one_of([1, 3])), str(between(1.0, 5.0, closed="left")), str(value(4).complement())
('< 20', '{1, 3}', '[1.0..5.0)', '!= 4 or null')
>>> one_of([1, 2]).union(value(3)) == between(1, 3)
True
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from caesura.errors import PatternError
from caesura.punctuation import cuts as line
from caesura.punctuation import kinds, masks, text
from caesura.punctuation.cuts import Cut, Cuts

Closed = Literal["both", "left", "right", "neither"]


class Interval(NamedTuple):
    """One stretch of a domain; None is an end without bound."""

    lo: Any
    lo_closed: bool
    hi: Any
    hi_closed: bool

    @property
    def is_point(self) -> bool:
        """Whether it holds one value only."""
        return self.lo_closed and self.hi_closed and bool(self.lo == self.hi)


@dataclass(frozen=True, repr=False)
class Values:
    """A set of values: where it starts (`low`), its cuts, and whether null belongs to it."""

    low: bool
    cuts: Cuts
    null: bool
    kind: str
    spelled: Cuts | None = field(default=None, compare=False)
    memo: dict[Any, Any] = field(default_factory=dict, init=False, compare=False)

    def __hash__(self) -> int:
        few = (self.cuts[:4], self.cuts[-4:])  # a growing set is hashed at every step: keep it cheap
        return hash((self.low, self.null, self.kind, len(self.cuts), few))

    def __reduce__(self) -> tuple[object, ...]:
        return Values, (self.low, self.cuts, self.null, self.kind, self.spelled)

    def __str__(self) -> str:
        return text.describe(self)

    def __repr__(self) -> str:
        return f"Values({self})"

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it, not even null."""
        return not (self.low or self.cuts or self.null)

    @property
    def is_any(self) -> bool:
        """Whether everything is in it, null too: the wildcard."""
        return self.low and self.null and not self.cuts

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """The disjoint intervals in order; those of integers are closed."""
        known: tuple[Interval, ...] | None = self.memo.get("intervals")
        if known is None:
            known = self.memo["intervals"] = tuple(self._intervals())
        return known

    def _intervals(self) -> Iterator[Interval]:
        for start, end in line.spans(self.low, self.cuts):
            if self.kind == "bool":
                yield Interval(start is not None, True, start is not None, True)
                continue
            lo, lo_closed = (None, False) if start is None else (start[0], start[1] == 0)
            hi, hi_closed = (None, False) if end is None else (end[0], end[1] == 1)
            if end is not None and self.kind == "int":
                hi, hi_closed = end[0] - 1, True
            yield Interval(lo, lo_closed, hi, hi_closed)

    @property
    def last(self) -> Any:
        """The greatest integer in it; None where there is none, or no end.

        >>> lt(20).last, ge(20).last
        (19, None)
        """
        if not self.cuts or self.kind != "int" or self.low ^ bool(len(self.cuts) & 1):
            return None
        return self.cuts[-1][0] - 1

    @property
    def is_point(self) -> bool:
        """Whether exactly one value is in it (null counts as a value)."""
        if not self.cuts:
            return self.null and not self.low
        if self.null or len(self.cuts) > 2:
            return False
        if self.kind == "int":  # the most asked for
            return len(self.cuts) == 2 and not self.low and bool(self.cuts[1][0] - self.cuts[0][0] == 1)
        return next(self._intervals()).is_point

    @property
    def point(self) -> Any:
        """The one value of a set that `is_point`; None is null."""
        if not self.cuts:
            return None
        return self.cuts[0][0] if self.kind == "int" else next(self._intervals()).lo

    def members(self, limit: int) -> list[Any] | None:
        """The values one by one.

        Parameters
        ----------
        limit
            How many at most.

        Returns
        -------
        list or None
            The values, null as None; None where they are more than so many, or without end.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> between(3, 5).members(10)
        [3, 4, 5]
        """
        if self.low or len(self.cuts) & 1 or len(self.cuts) > 2 * limit:
            return None
        parts = self.intervals
        null = [None] if self.null else []
        if self.kind == "int":
            size = sum(part.hi - part.lo + 1 for part in parts)
            return None if size > limit else [n for part in parts for n in range(part.lo, part.hi + 1)] + null
        return [part.lo for part in parts] + null if all(part.is_point for part in parts) else None

    def contains(self, item: Any) -> bool:
        """Whether a value is in the set.

        Parameters
        ----------
        item
            The value; None is null.

        Returns
        -------
        bool
            True or False.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> lt(5).contains(3)
        True
        """
        item = kinds.constant(item)
        if item is None:
            return self.null
        if not self.cuts:
            return self.low
        kind = kinds.kind_of(item)
        if kind == self.kind:
            return line.member(self.low, self.cuts, item)
        return self.covers(value(item))

    def covers(self, other: Values) -> bool:
        """Whether every value of the other set is in this one.

        Parameters
        ----------
        other
            The other set.

        Returns
        -------
        bool
            True or False.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> lt(5).covers(one_of([1, 2]))
        True
        """
        if other.null and not self.null:
            return False
        a, b = _alike(self, other)
        return line.covers(a.low, a.cuts, b.low, b.cuts)

    def intersects(self, other: Values) -> bool:
        """Whether the two sets share a value.

        Parameters
        ----------
        other
            The other set.

        Returns
        -------
        bool
            True or False.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> lt(5).intersects(between(5, 7))
        False
        """
        if self.null and other.null:
            return True
        a, b = _alike(self, other)
        return line.intersects(a.low, a.cuts, b.low, b.cuts)

    def union(self, other: Values) -> Values:
        """The values in either.

        Parameters
        ----------
        other
            The other set.

        Returns
        -------
        Values
            A set.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> lt(5).union(one_of([7]))
        Values(< 5 or 7)
        """
        a, b = _alike(self, other)
        return _made(*line.union(a.low, a.cuts, b.low, b.cuts), a.null or b.null, a.kind or b.kind)

    def intersect(self, other: Values) -> Values:
        """The values in both.

        Parameters
        ----------
        other
            The other set.

        Returns
        -------
        Values
            A set, perhaps an empty one.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> lt(5).intersect(between(3, 9))
        Values([3..4])
        """
        a, b = _alike(self, other)
        return _made(*line.intersect(a.low, a.cuts, b.low, b.cuts), a.null and b.null, a.kind or b.kind)

    def minus(self, other: Values) -> Values:
        """The values of this set that are not in the other.

        Parameters
        ----------
        other
            The other set.

        Returns
        -------
        Values
            A set, perhaps an empty one.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> between(1, 9).minus(between(3, 4))
        Values([1..2] or [5..9])
        """
        return self.intersect(other.complement())

    def complement(self) -> Values:
        """Every value that is not in it, null among them.

        Returns
        -------
        Values
            A set.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> lt(5).complement()
        Values(>= 5 or null)
        """
        return Values(not self.low, self.cuts, not self.null, self.kind, self.spelled)

    def shift(self, by: int) -> Values:
        """The set moved along the whole numbers.

        Parameters
        ----------
        by
            How far.

        Returns
        -------
        Values
            A set.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> between(3, 5).shift(10)
        Values([13..15])
        """
        if by == 0 or not self.cuts:
            return self
        if self.kind != "int":
            raise PatternError(f"{self} cannot be shifted by {by}.", remedy="Only integers and time shift.")
        return _made(self.low, tuple((at + by, side) for at, side in self.cuts), self.null, "int")

    def with_cuts(self, cuts: Cuts, kind: str = "") -> Values:
        """A set that changes at other places, in the same order.

        Parameters
        ----------
        cuts
            As many places as this set has, each a value and the side that the change lies on.
        kind
            What the values are, where that differs: ``"int"``, ``"float"``, ``"str"`` and so on.

        Returns
        -------
        Values
            A set.

        Examples
        --------
        >>> from caesura.punctuation import between
        >>> some = between(3.0, 5.0)
        >>> some.with_cuts(tuple((2 * at, side) for at, side in some.cuts))
        Values([6.0..10.0])
        """
        return _made(self.low, cuts, self.null, kind or self.kind)

    def reach(self, start: int) -> int | None:
        """Where the run of whole numbers from a start leaves the set.

        Parameters
        ----------
        start
            The first number.

        Returns
        -------
        int or None
            The first number outside, the start itself where it is outside; None where that is never.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> between(3, 5).reach(3)
        6
        """
        at = bisect_right(self.cuts, (start, 0))
        if not self.low ^ bool(at & 1):
            return start
        return int(self.cuts[at][0]) if at < len(self.cuts) else None

    def as_kind(self, kind: str) -> Values:
        """The same set among numbers of another kind.

        Parameters
        ----------
        kind
            ``"int"``, ``"float"`` or ``"decimal"``.

        Returns
        -------
        Values
            A set.

        Examples
        --------
        >>> from caesura.punctuation import between, lt, one_of
        >>> lt(5).as_kind("float")
        Values(< 5.0)
        """
        if kind == self.kind or not self.cuts:
            return _made(self.low, self.cuts, self.null, self.kind)
        source = self.spelled if self.kind == "int" else self.cuts
        if source is None:
            raise PatternError(
                f"'{self}' was computed on integers, and cannot be read as a set of {kind} any more.",
                remedy=f"Write its constants as {kind} where they are first named.",
            )
        moved = [kinds.translate(self.kind, kind, cut) for cut in source]
        return _made(*kinds.settle(kind, self.low, moved), self.null, kind)

    def mask(self, array: Any) -> npt.NDArray[np.bool_]:
        """Which items of an array are in the set.

        Parameters
        ----------
        array
            An array of Arrow or NumPy.

        Returns
        -------
        numpy.ndarray
            True or False for each.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura.punctuation import between, lt, one_of
        >>> lt(5).mask(pa.array([3, 7, None])).tolist()
        [True, False, False]
        """
        return masks.mask(self, array)

    def to_json(self) -> dict[str, Any]:
        """The set as data that JSON can hold.

        Returns
        -------
        dict
            What `from_json` makes an equal set of.

        Examples
        --------
        >>> from caesura.punctuation import Values, lt
        >>> Values.from_json(lt(5).to_json()) == lt(5)
        True
        """
        data: dict[str, Any] = {"low": self.low, "null": self.null, "kind": self.kind}
        data["cuts"] = [[kinds.to_json(at), side] for at, side in self.cuts]
        if self.spelled is not None:
            data["spelled"] = [[kinds.to_json(at), side] for at, side in self.spelled]
        return data

    @staticmethod
    def from_json(data: dict[str, Any]) -> Values:
        """The set that `to_json` wrote.

        Parameters
        ----------
        data
            What `to_json` gave.

        Returns
        -------
        Values
            The set.

        Examples
        --------
        >>> from caesura.punctuation import Values, lt
        >>> Values.from_json(lt(5).to_json())
        Values(< 5)
        """
        spelled = _cuts_from(data["spelled"]) if "spelled" in data else None
        return Values(data["low"], _cuts_from(data["cuts"]), data["null"], data["kind"], spelled)


def _cuts_from(data: list[list[Any]]) -> Cuts:
    return tuple((kinds.from_json(at), side) for at, side in data)


def _made(low: bool, cuts: Cuts, null: bool, kind: str) -> Values:
    return Values(low, cuts, null, kind if cuts else "")


def _alike(a: Values, b: Values) -> tuple[Values, Values]:
    if a.kind == b.kind or not a.kind or not b.kind:
        return a, b
    if a.kind == "int":
        return a.as_kind(b.kind), b
    if b.kind == "int":
        return a, b.as_kind(a.kind)
    raise kinds.mixed(a.kind, b.kind)


def _literal(low: bool, cuts: Iterable[Cut], null: bool, kind: str) -> Values:
    if kind != "int":
        return _made(*kinds.settle(kind, low, cuts), null, kind)
    spelled = tuple(cuts)
    low, settled = kinds.settle(kind, low, spelled)
    return Values(low, settled, null, kind if settled else "", spelled if settled else None)


def _half(low: bool, at: Any, side: int) -> Values:
    at = kinds.constant(at)
    return _literal(low, ((at, side),), False, kinds.kind_of(at))


def value(v: Any) -> Values:
    """Only this value.

    Parameters
    ----------
    v
        The value.

    Returns
    -------
    Values
        A set for a pattern; ``value(None)`` is null alone.

    Examples
    --------
    >>> from caesura.punctuation import Pattern, value
    >>> print(Pattern(id=value(3)))
    id = 3
    """
    return NULL if v is None else one_of((v,))


def one_of(items: Iterable[Any]) -> Values:
    """Only these values.

    Parameters
    ----------
    items
        The values; None is null.

    Returns
    -------
    Values
        A set for a pattern.

    Examples
    --------
    >>> from caesura.punctuation import Pattern, one_of
    >>> print(Pattern(id=one_of([1, 2, 7])))
    id in [1..2] or 7
    """
    items = list(items)
    if set(map(type, items)) == {int}:  # most sets are of these, and need no look at each
        return _integers(sorted(set(items)))
    constants = [kinds.constant(item) for item in items]
    named = [item for item in constants if item is not None]
    null = len(named) < len(constants)
    kind = kinds.common_kind(named)
    cuts: list[Cut] = [(v, side) for v in sorted(set(named)) for side in (0, 1)]
    if kind in ("float", "decimal"):
        cuts = [kinds.translate("int", kind, cut) if isinstance(cut[0], int) else cut for cut in cuts]
    return _literal(False, cuts, null, kind)


def _integers(some: list[int]) -> Values:
    """These integers, sorted and each once: neighbours make one stretch."""
    cuts: list[Cut] = []
    if some[-1] - some[0] == len(some) - 1:
        cuts = [(some[0], 0), (some[-1] + 1, 0)]
    else:
        for v in some:
            if cuts and cuts[-1][0] == v:
                cuts[-1] = (v + 1, 0)
            else:
                cuts += ((v, 0), (v + 1, 0))
    spelled = tuple([cut for v in some for cut in ((v, 0), (v, 1))])
    return Values(False, tuple(cuts), False, "int", spelled)


def union_of(sets: Iterable[Values]) -> Values:
    """The values in any of some sets; many are joined in pairs, so that none is walked for each other.

    >>> str(union_of([lt(3), value(5), ge(9)]))
    '< 3 or 5 or >= 9'
    """
    some = list(sets)
    while len(some) > 1:
        odd = some[-1:] if len(some) % 2 else []
        some = [a.union(b) for a, b in zip(some[::2], some[1::2], strict=False)] + odd
    return some[0] if some else NOTHING


def lt(v: Any) -> Values:
    """The values below one.

    Parameters
    ----------
    v
        The bound.

    Returns
    -------
    Values
        A set for a pattern, without null.

    Examples
    --------
    >>> from caesura.punctuation import Pattern, lt
    >>> print(Pattern(id=lt(5)))
    id < 5
    """
    return _half(True, v, 0)


def le(v: Any) -> Values:
    """The values up to one, with it.

    Parameters
    ----------
    v
        The bound.

    Returns
    -------
    Values
        A set for a pattern, without null.

    Examples
    --------
    >>> from caesura.punctuation import Pattern, le
    >>> print(Pattern(v=le(2.5)))
    v <= 2.5
    """
    return _half(True, v, 1)


def gt(v: Any) -> Values:
    """The values above one.

    Parameters
    ----------
    v
        The bound.

    Returns
    -------
    Values
        A set for a pattern, without null.

    Examples
    --------
    >>> from caesura.punctuation import Pattern, gt
    >>> print(Pattern(v=gt(2.5)))
    v > 2.5
    """
    return _half(False, v, 1)


def ge(v: Any) -> Values:
    """The values from one on, with it.

    Parameters
    ----------
    v
        The bound.

    Returns
    -------
    Values
        A set for a pattern, without null.

    Examples
    --------
    >>> from caesura.punctuation import Pattern, ge
    >>> print(Pattern(id=ge(5)))
    id >= 5
    """
    return _half(False, v, 0)


def between(lo: Any, hi: Any, closed: Closed = "both") -> Values:
    """The values between two.

    Parameters
    ----------
    lo, hi
        The bounds.
    closed
        Which bounds belong to it: ``"both"``, ``"left"``, ``"right"`` or ``"neither"``.

    Returns
    -------
    Values
        A set for a pattern, without null.

    Examples
    --------
    >>> from caesura.punctuation import Pattern, between
    >>> print(Pattern(id=between(3, 7)))
    id in [3..7]
    """
    lower = ge(lo) if closed in ("both", "left") else gt(lo)
    upper = le(hi) if closed in ("both", "right") else lt(hi)
    lower, upper = _alike(lower, upper)
    both = lower.intersect(upper)
    if both.kind != "int" or lower.spelled is None or upper.spelled is None:
        return both
    spelled = line.intersect(False, lower.spelled, True, upper.spelled)[1]
    return Values(both.low, both.cuts, both.null, both.kind, spelled)


NULL = Values(False, (), True, "")
NOT_NULL = Values(True, (), False, "")
ANY = Values(True, (), True, "")
NOTHING = Values(False, (), False, "")
