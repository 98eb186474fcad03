"""Texts cut at a delimiter of one byte: where it stands is found once, and each piece is cut out by itself.

>>> found = Delimited.of(pa.array(["a/b", None, "c"]), "/")
>>> found.piece(1).to_pylist(), found.piece(-1).to_pylist()
(['b', None, None], ['b', None, 'c'])
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import raw_parts
from caesura.events.nested import bitmap, validity
from caesura.expr.faults import Fault
from caesura.expr.nodes import Apply, Constant, Expr, apply
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8, Mask, frozen

Lacking = Literal["null", "empty", "fault"]
"""What stands for a piece that a text does not have."""


@kernel
def count_marks(marks: I64, offsets: Any, first: I64) -> None:
    """How many marks lie in front of each text, and of the end."""
    m = 0
    for i in range(len(offsets)):
        while m < len(marks) and marks[m] < offsets[i]:
            m += 1
        first[i] = m


@kernel
def piece_spans(marks: I64, offsets: Any, first: I64, piece: int, starts: I64, ends: Any, there: Mask) -> int:
    """Where a piece of each text begins, and where it ends when all are put together; how many there are.

    Pieces count from 0, or from the end as -1.
    """
    total = 0
    found = 0
    ends[0] = 0
    for i in range(len(first) - 1):
        inside = first[i + 1] - first[i]
        k = piece if piece >= 0 else inside + 1 + piece
        there[i] = 0 <= k <= inside
        if there[i]:
            starts[i] = marks[first[i] + k - 1] + 1 if k > 0 else offsets[i]
            total += (marks[first[i] + k] if k < inside else offsets[i + 1]) - starts[i]
            found += 1
        ends[i + 1] = total
    return found


@kernel
def copy_spans(starts: I64, ends: Any, data: U8, out: U8) -> None:
    """The spans, one behind the other."""
    for i in range(len(starts)):
        begin = ends[i]
        for j in range(ends[i + 1] - begin):
            out[begin + j] = data[starts[i] + j]


class Delimited(NamedTuple):
    """Texts, and where a delimiter stands in them."""

    texts: pa.Array
    offsets: np.ndarray[Any, Any]
    data: U8
    marks: I64
    first: I64
    """How many delimiters stand in front of each text, and of the end."""

    @staticmethod
    def of(texts: pa.Array, delimiter: str) -> Delimited:
        offsets, data = raw_parts(texts)
        begin, end = int(offsets[0]), int(offsets[-1])
        marks = np.flatnonzero(data[begin:end] == ord(delimiter)) + begin
        first = np.empty(len(offsets), np.int64)
        count_marks(marks, frozen(offsets), first)
        return Delimited(texts, offsets, data, marks, first)

    def piece(self, number: int, *, lacking: Lacking = "null") -> pa.Array:
        """One piece of each text, counted from 0 or, as -1, from the end."""
        count = len(self.texts)
        starts, there = np.empty(count, np.int64), np.empty(count, np.bool_)
        ends = np.empty(count + 1, self.offsets.dtype)
        offsets = frozen(self.offsets)
        found = piece_spans(self.marks, offsets, self.first, number, starts, ends, there)
        out = np.empty(int(ends[-1]), np.uint8)
        copy_spans(starts, ends, frozen(self.data), out)
        valid = validity(self.texts)
        if found < count and lacking != "empty":
            if lacking == "fault" and not (there[valid] if len(valid) else there).all():
                raise Fault
            valid = there & valid if len(valid) else there
        parts = [bitmap(valid), pa.py_buffer(ends), pa.py_buffer(out)]
        return pa.Array.from_buffers(self.texts.type, count, parts)


def is_delimiter(text: str) -> bool:
    """Whether texts are cut at it by its one byte."""
    return len(text) == 1 and text.isascii()


def of_split(expr: Expr) -> Expr:
    """One piece of a split at a plain delimiter, without the list of all pieces; all else as it is."""
    if not isinstance(expr, Apply) or expr.name not in ("get", "item"):
        return expr
    pieces, place = expr.args
    if not isinstance(place, Constant) or not isinstance(place.value, int) or place.value < 0:
        return expr
    if not isinstance(pieces, Apply) or pieces.name != "split":
        return expr
    pattern, limit = pieces.options
    plain = is_delimiter(pattern) and pattern not in r".^$*+?{}[]\|()"
    if not plain or limit > 0:
        return expr
    lacking: Lacking = "null" if expr.name == "get" else "fault"
    return apply("piece", *pieces.args, options=(pattern, place.value, lacking))
