"""The rows of a page by some columns, without a hash of every row: small codes are places in a table.

Whole numbers that lie close together are their own codes, texts that repeat are looked up once each. Where
codes would be too many it says so, and rows are told apart by their identities.

>>> found = grouped([pa.array([7, 9, 7]), pa.array([1, 1, 1])], 3)
>>> found.number.tolist(), found.first.tolist()
([0, 1, 0], [0, 1])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import raw_parts, taken, words
from caesura.events.types import is_bytes
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, frozen

SPARE = 1 << 16
SPREAD = 4
"""Codes may be so many times as many as rows, and SPARE more."""
SAMPLE = 1024
"""So many texts tell whether they repeat."""


class PageGroups(NamedTuple):
    """The number of each row's group, in order of their first rows, and these."""

    number: I64
    first: I64


@kernel
def number_codes(code: I64, low: int, known: Any, number: I64, first: I64) -> int:
    """Numbers codes in the order in which they come; ``known`` has a place for each, at first -1."""
    count = 0
    for i in range(len(code)):
        at = code[i] - low
        if known[at] < 0:
            known[at] = count
            first[count] = i
            count += 1
        number[i] = known[at]
    return count


@kernel
def follows(code: I64, number: I64, first: I64) -> bool:
    """Whether all rows of a group have the code of its first."""
    i = 0
    while i < len(code) and code[i] == code[first[number[i]]]:
        i += 1
    return i == len(code)


def grouped(columns: Sequence[pa.Array], count: int) -> PageGroups | None:
    """Rows by these columns; None where their codes are too many, or unknown."""
    limit = SPREAD * count + SPARE
    if not columns or count == 0:
        return None
    found = _numbered(columns[0], limit)
    for column in columns[1:]:
        if found is not None and _is_whole(column) and follows(_codes(column), found.number, found.first):
            continue  # a column that goes with the others, as what a join added to its key
        if found is not None and 2 * len(found.first) > count:
            return None  # hardly any two rows are alike already
        other = None if found is None else _numbered(column, limit)
        if found is None or other is None or len(found.first) * len(other.first) > limit:
            return None
        if len(other.first) == 1:
            continue
        size = len(other.first)
        found = _by_code(found.number * size + other.number, 0, len(found.first) * size)
    return found


def grouped_apart(groups: PageGroups, rows: I64, part: I64) -> PageGroups | None:
    """Some rows by their groups and a whole number each; None where these would be too many.

    >>> two = PageGroups(np.array([0, 1]), np.array([0, 1]))
    >>> found = grouped_apart(two, np.array([0, 0, 1]), np.array([5, 5, 5]))
    >>> found.number.tolist(), found.first.tolist()
    ([0, 0, 1], [0, 2])
    """
    if len(rows) == 0:
        return None
    low, limit = int(part.min()), SPREAD * len(rows) + SPARE
    span = int(part.max()) - low + 1
    if span * len(groups.first) > limit:
        return None
    code = taken(groups.number, rows)
    code *= span
    code += part
    code -= low
    return _by_code(code, 0, span * len(groups.first))


def _numbered(column: pa.Array, limit: int) -> PageGroups | None:
    if column.null_count:
        return None
    if is_bytes(column.type):
        if not repeats(column):
            return None
        if _all_alike(column):
            return PageGroups(np.zeros(len(column), np.int64), np.zeros(1, np.int64))
        encoded = column.dictionary_encode()
        return _by_code(encoded.indices.to_numpy().astype(np.int64), 0, len(encoded.dictionary))
    if not _is_whole(column):
        return None
    code = _codes(column)
    low, high = int(code.min()), int(code.max())
    return None if high - low >= limit else _by_code(code, low, high - low + 1)


def _is_whole(column: pa.Array) -> bool:
    whole = pa.types.is_signed_integer(column.type) or pa.types.is_timestamp(column.type)
    return bool(whole) and column.null_count == 0


def _codes(column: pa.Array) -> I64:
    code: I64 = frozen(words(column).astype(np.int64, copy=False))
    return code


def _by_code(code: I64, low: int, size: int) -> PageGroups:
    number, first = np.empty(len(code), np.int64), np.empty(min(size, len(code)), np.int64)
    count = number_codes(frozen(code), low, np.full(size, -1, np.int32), number, first)
    return PageGroups(number, first[:count])


def _all_alike(texts: pa.Array) -> bool:
    """Whether texts, of which none is null, are all the same, by their bytes.

    >>> [_all_alike(pa.array(texts)) for texts in (["ab", "ab"], ["a", "aa"], ["a", "b"], ["", ""])]
    [True, False, False, True]
    """
    offsets, data = raw_parts(texts)
    size = int(offsets[1] - offsets[0])
    if (offsets[1:] - offsets[:-1] != size).any():
        return False
    own = data[offsets[0] : offsets[-1]]
    return size == 0 or bool((own[size:] == own[:-size]).all())


def repeats(texts: pa.Array) -> bool:
    """Whether texts seem to come four times each or more."""
    if len(texts) < 4 * SAMPLE:
        return False
    sample = texts.take(pa.array(np.arange(SAMPLE) * (len(texts) // SAMPLE)))
    equal = SAMPLE - len(sample.unique())
    return bool(len(texts) * equal >= 2 * SAMPLE * SAMPLE)
