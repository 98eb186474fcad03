"""Adding to numbered places.

>>> import numpy as np
>>> total = np.zeros(2, np.int64)
>>> add_weights(np.array([1, 0, 1]), np.array([5, 7, -1]), total); total.tolist()
[7, 4]
"""

from __future__ import annotations

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask

STRETCH = 13
"""The slots of 2**13 groups, in as many words as most have, fit the fast memory of a core."""


@kernel
def add_weights(at: I64, weights: I64, total: I64) -> None:
    """Adds each weight to its place."""
    for i in range(len(at)):
        total[at[i]] += weights[i]


@kernel
def add_weights_to_both(at: I64, weights: I64, total: I64, other: I64) -> None:
    """Adds each weight to its place in two totals."""
    for i in range(len(at)):
        total[at[i]] += weights[i]
        other[at[i]] += weights[i]


@kernel
def begin_stretches(at: I64, shift: int, begins: I64) -> None:
    """Where each stretch of 2**shift places begins, once the rows are in that order; starts as zeros."""
    for i in range(len(at)):
        begins[at[i] >> shift] += 1
    first = 0
    for stretch in range(len(begins)):
        count = begins[stretch]
        begins[stretch] = first
        first += count


@kernel
def order_stretches(at: I64, shift: int, begins: I64, order: I64) -> None:
    """The rows by stretches of 2**shift places, in their order within each; ``begins`` starts as zeros."""
    begin_stretches(at, shift, begins)
    for i in range(len(at)):
        stretch = at[i] >> shift
        order[begins[stretch]] = i
        begins[stretch] += 1


@kernel
def sort_stretches(at: I64, shift: int, begins: I64, order: I64, places: I64) -> None:
    """What `order_stretches` does, with the place of each row so ordered."""
    begin_stretches(at, shift, begins)
    for i in range(len(at)):
        stretch = at[i] >> shift
        to = begins[stretch]
        order[to] = i
        places[to] = at[i]
        begins[stretch] = to + 1


def in_stretches(at: I64, places: int) -> tuple[I64, I64]:
    """Rows so ordered that those of places near each other are, those of a place as they were; their places.

    >>> [part.tolist() for part in in_stretches(np.array([9000, 3, 9001, 2]), 10_000)]
    [[1, 3, 0, 2], [3, 2, 9000, 9001]]
    """
    order, ordered = np.empty(len(at), np.int64), np.empty(len(at), np.int64)
    begins = np.zeros((places >> STRETCH) + 1, np.int64)
    sort_stretches(at, STRETCH, begins, order, ordered)
    return order, ordered


@kernel
def mark(at: I64, touched: Mask) -> None:
    """Marks each place."""
    for i in range(len(at)):
        touched[at[i]] = True


@kernel
def least_at(at: I64, values: I64, least: I64) -> None:
    """Lowers each place to the least of its values."""
    for i in range(len(at)):
        if values[i] < least[at[i]]:
            least[at[i]] = values[i]


def same_in_groups(group: I64, values: I64, groups: int) -> bool:
    """Whether all rows of a group have the same value.

    >>> some = np.array([0, 1, 0])
    >>> same_in_groups(some, np.array([5, 6, 5]), 2), same_in_groups(some, np.array([5, 6, 7]), 2)
    (True, False)
    """
    one = np.zeros(groups, np.int64)
    one[group] = values
    return bool((one[group] == values).all())


def each_once(numbers: I64) -> I64:
    """Numbers, each once, ascending: sorted, which takes a tenth of what `np.unique` takes to hash them.

    >>> each_once(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    if len(numbers) < 2:
        return numbers
    ordered = np.sort(numbers)
    first = np.empty(len(ordered), np.bool_)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def distinct(numbers: I64, size: int) -> I64:
    """Numbers below ``size``, each once, ascending; by marking where that is cheaper than sorting."""
    if 64 * len(numbers) < size:
        return each_once(numbers)
    there = np.zeros(size, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there)


def least_of(numbers: I64, values: I64, size: int) -> tuple[I64, I64]:
    """Numbers below ``size``, each once, ascending, and the least of the values of each.

    >>> [part.tolist() for part in least_of(np.array([1, 0, 1]), np.array([5, 7, 4]), 2)]
    [[0, 1], [7, 4]]
    """
    some = distinct(numbers, size)
    place = np.searchsorted(some, numbers) if 64 * len(numbers) < size else _places(some, size)[numbers]
    least = np.full(len(some), np.iinfo(np.int64).max, np.int64)
    least_at(place, values, least)
    return some, least


def _places(some: I64, size: int) -> I64:
    places = np.empty(size, np.int64)
    places[some] = np.arange(len(some))
    return places
