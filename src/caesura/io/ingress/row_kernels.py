"""Loops over raw rows: their kind, what is wrong with them, and whether they are late.

>>> offsets, data = np.array([0, 1, 2, 8]), np.frombuffer(b"+-insert", np.uint8)
>>> codes = np.empty(3, np.int8)
>>> kind_codes(offsets, data, np.zeros(0, np.bool_), *spelled(("+", "insert"), ("-", "retract")), codes)
>>> codes.tolist()
[0, 1, 0]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8, Mask
from caesura.punctuation import INFINITY, MIN_TIME

I8 = npt.NDArray[np.int8]

INSERT, RETRACT, UNKNOWN = 0, 1, 2
SOUND, NO_TIME, NO_KIND, EMPTY, BACKWARDS, SAME, NO_END = 0, 1, 2, 3, 4, 5, 6
NO_RETRACT, NO_POINT, ALIGNED, TOO_LONG = 7, 8, 9, 10
NO_NEW_END = MIN_TIME
NO_LETTER = 255
"""A byte that no text has."""


def spelled(inserts: tuple[str, ...], retracts: tuple[str, ...]) -> tuple[I64, U8, I64, I8, U8]:
    """Which word begins with each byte (-1: none), the words' bytes, where each ends, and its code.

    At last the words of one byte, for an insert and for a retract; NO_LETTER where there is none.
    """
    words = [word.encode() for word in (*inserts, *retracts)]
    first = np.full(256, -1, np.int64)
    first[[word[0] for word in words]] = np.arange(len(words))
    ends = np.cumsum([0, *(len(word) for word in words)])
    codes = np.array([INSERT] * len(inserts) + [RETRACT] * len(retracts), np.int8)
    letters = np.full(2, NO_LETTER, np.uint8)
    for word, code in zip(words, codes, strict=True):
        if len(word) == 1:
            letters[code] = word[0]
    return first, np.frombuffer(b"".join(words), np.uint8), ends, codes, letters


@kernel
def kind_codes(
    offsets: I64, data: U8, valid: Mask, first: I64, words: U8, ends: I64, codes: I8, letters: U8, out: I8
) -> None:
    """The code of each text; UNKNOWN for null and for words that are not there."""
    longer = len(valid)
    for i in range(len(out)):
        longer |= offsets[i + 1] - offsets[i] != 1
    if longer == 0 and letters[INSERT] != NO_LETTER and letters[RETRACT] != NO_LETTER:
        bytes_, insert, retract = data[offsets[0] : offsets[0] + len(out)], letters[INSERT], letters[RETRACT]
        for i in range(len(bytes_)):  # sums in the place of branches, so that many are done at once
            out[i] = RETRACT * (bytes_[i] != insert) + (bytes_[i] != insert) * (bytes_[i] != retract)
        return
    for i in range(len(out)):
        out[i] = UNKNOWN
        size = offsets[i + 1] - offsets[i]
        if size == 0 or (len(valid) > 0 and not valid[i]):
            continue
        word = first[data[offsets[i]]]
        if word < 0 or ends[word + 1] - ends[word] != size:
            continue
        same = True
        for j in range(1, size):
            same = same and data[offsets[i] + j] == words[ends[word] + j]
        if same:
            out[i] = codes[word]


@kernel
def find_flaws(codes: I8, le: I64, re: I64, new: I64, re_new: I64, flaw: I8, edge: bool) -> int:
    """What is wrong with each row, 0 for nothing; sets ``re_new``; gives how many rows are flawed."""
    bad = 0
    for i in range(len(le)):
        retract = codes[i] == RETRACT
        re_new[i] = new[i] if retract else NO_NEW_END
        f = SOUND
        if retract and re_new[i] == INFINITY and edge:
            f = NO_END
        elif retract and re_new[i] == re[i]:
            f = SAME
        elif retract and re_new[i] < le[i]:
            f = BACKWARDS
        if re[i] <= le[i]:
            f = EMPTY
        if codes[i] == UNKNOWN:
            f = NO_KIND
        if le[i] == MIN_TIME or le[i] == INFINITY:
            f = NO_TIME
        flaw[i] = f
        bad += f != SOUND
    return bad


@kernel
def span_points(le: I64) -> tuple[int, int, int]:
    """The first start of points, the last, and how often they fall."""
    if len(le) == 0:
        return MIN_TIME, MIN_TIME, 0
    first = le[0]
    last = first
    falls = 0
    for i in range(1, len(le)):
        first = min(first, le[i])
        last = max(last, le[i])
        falls += le[i] < le[i - 1]
    return first, last, falls


@kernel
def count_late(le: I64, re: I64, re_new: I64, advance: I64, top: int, lag: int, floor: int) -> int:
    """How many rows are below the floor, or below the running maximum before them minus the lag.

    A lag below zero means that there is none.
    """
    late = 0
    inserts = len(re_new) == 0
    top = max(top, MIN_TIME + lag) if lag >= 0 else MIN_TIME
    bound = max(floor, top - lag) if lag >= 0 else floor
    for i in range(len(le)):
        sync = le[i] if inserts or re_new[i] == NO_NEW_END else min(re[i], re_new[i])
        late += sync < bound
        if lag >= 0:
            top = max(top, advance[i])
            bound = max(bound, top - lag)
    return late


@kernel
def lane_bounds(advance: I64, top: int, lag: int, low: int, high: int, out: I64) -> None:
    """The running maximum before each row, minus the lag (none if below zero), from ``low`` to ``high``."""
    for i in range(len(advance)):
        bound = top - lag if lag >= 0 and top > MIN_TIME + lag else MIN_TIME
        out[i] = max(low, min(high, bound))
        top = max(top, advance[i])


@kernel
def find_references(times: I64, recent: I64, ring: I64, ordered: I64, out: I64) -> None:
    """What each row's time is held against: the lower quartile of the rows before it in its lane.

    ``recent`` are the times of the last rows before these, at most as many as ``ring`` holds; INFINITY
    where there is none. Three rows in four may lie in the future, or one in four in the past.
    """
    room, count, oldest = len(ring), 0, 0
    for i in range(-len(recent), len(times)):
        time = recent[i + len(recent)] if i < 0 else times[i]
        if i >= 0:
            out[i] = ordered[count // 4] if count > 0 else INFINITY
        place = count
        if count == room:
            place = 0
            while ordered[place] != ring[oldest]:
                place += 1
            while place < room - 1:
                ordered[place] = ordered[place + 1]
                place += 1
        while place > 0 and ordered[place - 1] > time:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = time
        ring[oldest] = time
        oldest = (oldest + 1) % room
        count = min(count + 1, room)
