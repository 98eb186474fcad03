"""Bits of whole numbers, and texts looked for in texts: what a visited set is made and tested with.

>>> from caesura.expr.nodes import col
>>> plan = RULES["bit_or"](col("a").bit_or(8), [pa.int64(), pa.int32()])
>>> plan.type, plan.kernel(pa.array([5, None]), pa.scalar(8, pa.int64())).to_pylist()
(DataType(int64), [13, None])
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.columns import byte_parts
from caesura.events.nested import validity
from caesura.expr.arrays import repeat
from caesura.expr.faults import Attempt
from caesura.expr.nodes import Apply
from caesura.expr.rules import Datum, Kernel, Rule, TypedNode, Types, checking, shared_type, want
from caesura.expr.types import plain
from caesura.expr.whole import shifted
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8, Mask

_BITS: dict[str, Kernel] = {
    "bit_and": pc.bit_wise_and,
    "bit_or": pc.bit_wise_or,
    "bit_xor": pc.bit_wise_xor,
}


def _bitwise(node: Apply, types: Types) -> TypedNode:
    want(node, types, ("integer",), "whole numbers", remedy="Cast them: .cast('bigint').")
    shared = plain(shared_type(node, types))
    return TypedNode(shared, (shared, shared), _BITS[node.name])


def _shift_left(node: Apply, types: Types) -> TypedNode:
    want(node, types, ("integer",), "whole numbers", remedy="Cast them: .cast('bigint').")
    wide = pa.int64()  # 1 << 40 must not fall off the end
    return checking(wide, (wide, wide), Attempt(shifted))


@kernel
def find_each(offsets: I64, data: U8, part_offsets: I64, part: U8, found: Mask) -> None:
    """Per row, whether the part's bytes stand anywhere in the whole's."""
    for i in range(len(found)):
        size = part_offsets[i + 1] - part_offsets[i]
        at = offsets[i]
        found[i] = False
        while at + size <= offsets[i + 1]:
            j = 0
            while j < size and data[at + j] == part[part_offsets[i] + j]:
                j += 1
            if j == size:
                found[i] = True
                break
            at += 1


def _holds(whole: Datum, part: Datum) -> Any:
    rows = len(part) if isinstance(whole, pa.Scalar) else len(whole)
    sides = [repeat(x, rows) if isinstance(x, pa.Scalar) else x for x in (whole, part)]
    found = np.empty(rows, np.bool_)
    find_each(*byte_parts(sides[0]), *byte_parts(sides[1]), found)
    masks = [validity(side) for side in sides]
    known = [mask for mask in masks if len(mask)]
    return pa.array(found, mask=~np.logical_and.reduce(known) if known else None)


def _contains(node: Apply, types: Types) -> TypedNode:
    want(node, types, ("string",), "texts", remedy="Cast it: .cast('string').")
    return TypedNode(pa.bool_(), (pa.string(), pa.string()), _holds)


RULES: dict[str, Rule] = {
    **dict.fromkeys(_BITS, _bitwise),
    "shift_left": _shift_left,
    "contains_each": _contains,
}
