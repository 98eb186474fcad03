"""Sets of any size in a binary column: what a row has visited, made with `set_of` and `set_add`.

A set is its members one behind the other, each once, in the order of their bytes: four bytes of length,
then a letter for the type, then the value. Equal sets are equal bytes.

>>> from caesura.expr.nodes import col
>>> plan = RULES["set_add"](col("s").set_add("n"), [pa.binary(), pa.string()])
>>> one = plan.kernel(pa.array([b"", b""]), pa.array(["x", None]))
>>> two = plan.kernel(one, pa.array(["y", "y"]))
>>> has = RULES["set_has"](col("s").set_has("n"), [pa.binary(), pa.string()])
>>> has.kernel(two, pa.scalar("x")).to_pylist()
[True, None]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import ExprError
from caesura.events.columns import byte_parts
from caesura.events.nested import validity
from caesura.expr.arrays import repeat
from caesura.expr.nodes import Apply
from caesura.expr.rules import Datum, Kernel, Rule, TypedNode, Types, wrong
from caesura.expr.types import kind
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8, Mask

LENGTH = 4
MAX_COLUMN_BYTES = 2**31 - 1
"""So many bytes a binary column holds."""


@kernel
def find_member(offsets: I64, data: U8, one_offsets: I64, one: U8, found: Mask, place: I64) -> int:
    """Per row, whether the set has the member, and where it lies or belongs; the first row with no set."""
    for i in range(len(found)):
        at = offsets[i]
        end = offsets[i + 1]
        first = one_offsets[i]
        size = one_offsets[i + 1] - first
        found[i] = False
        while at < end:
            if at + 4 > end:
                return i
            held = np.int64(0)
            for k in range(3, -1, -1):
                held = held * 256 + np.int64(data[at + k])
            if at + 4 + held > end:
                return i
            j = 0
            while j < size and j < held and data[at + 4 + j] == one[first + j]:
                j += 1
            if j == size and j == held:
                found[i] = True
                break
            if j == size or (j < held and data[at + 4 + j] > one[first + j]):
                break
            at += 4 + held
        place[i] = at
    return -1


@kernel
def put_member(
    offsets: I64, data: U8, one_offsets: I64, one: U8, found: Mask, place: I64, to: I64, out: U8
) -> None:
    """Writes each set with its member in it."""
    for i in range(len(found)):
        at = to[i]
        for k in range(offsets[i], place[i]):
            out[at] = data[k]
            at += 1
        if not found[i]:
            size = one_offsets[i + 1] - one_offsets[i]
            for k in range(4):
                out[at] = (size >> (8 * k)) & 255
                at += 1
            for k in range(one_offsets[i], one_offsets[i + 1]):
                out[at] = one[k]
                at += 1
        for k in range(place[i], offsets[i + 1]):
            out[at] = data[k]
            at += 1


def _members(values: pa.Array) -> pa.Array:
    """Each value as a member of a set: a letter and bytes in the order of the values."""
    if pa.types.is_string(values.type):
        return pc.binary_join_element_wise(pa.scalar(b"s"), values.cast(pa.binary()), b"")
    rows = len(values)
    data = np.empty((rows, 9), np.uint8)
    numbers = values.fill_null(0).to_numpy() ^ np.int64(-(2**63))
    data[:, 0], data[:, 1:] = ord("i"), numbers.astype(">i8").view(np.uint8).reshape(rows, 8)
    return _binary(np.arange(rows + 1) * 9, data.reshape(-1), validity(values))


def _binary(offsets: I64, data: U8, valid: Mask) -> pa.Array:
    if offsets[-1] > MAX_COLUMN_BYTES:
        raise ExprError(
            f"the sets of one page take {offsets[-1]} bytes; a column holds {MAX_COLUMN_BYTES}.",
            remedy="Keep fewer members, or read smaller batches.",
        )
    buffers = [pa.py_buffer(offsets.astype(np.int32).tobytes()), pa.py_buffer(data.tobytes())]
    made = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, *buffers])
    return pc.if_else(pa.array(valid), made, pa.scalar(None, pa.binary())) if len(valid) else made


def _looked_up(node: Apply, sets: Datum, one: Datum) -> tuple[Any, ...]:
    """The sets' parts, the members', which have them, where, and which rows are known."""
    rows = next((len(x) for x in (sets, one) if not isinstance(x, pa.Scalar)), 1)
    whole, values = (repeat(x, rows) if isinstance(x, pa.Scalar) else x for x in (sets, one))
    masks = [mask for mask in (validity(whole), validity(values)) if len(mask)]
    known = np.logical_and.reduce(masks) if masks else np.ones(rows, np.bool_)
    parts = (*byte_parts(whole), *byte_parts(_members(values)))
    found, place = np.zeros(rows, np.bool_), np.zeros(rows, np.int64)
    bad = find_member(*parts, found, place)
    if bad >= 0:
        raise ExprError(
            f"in '{node}': {whole[bad].as_py()!r} is not a set.",
            remedy="Begin with cz.set_of(...) and go on with .set_add(...).",
        )
    return parts, found, place, known


def _has(node: Apply) -> Kernel:
    def has(sets: Datum, one: Datum) -> Any:
        _, found, _, known = _looked_up(node, sets, one)
        return pa.array(found, mask=~known)

    return has


def _add(node: Apply) -> Kernel:
    def add(sets: Datum, one: Datum) -> Any:
        parts, found, place, known = _looked_up(node, sets, one)
        sizes = np.diff(parts[0]) + np.where(found, 0, np.diff(parts[2]) + LENGTH)
        to = np.concatenate([[0], np.cumsum(sizes)])
        out = np.empty(to[-1], np.uint8)
        put_member(*parts, found, place, to, out)  # type: ignore[call-arg]
        return _binary(to, out, known)

    return add


def _rule(node: Apply, types: Types) -> TypedNode:
    held, one = (kind(t) for t in types)
    if held not in ("binary", "null") or one not in ("integer", "string", "null"):
        raise wrong(
            node, "a set and a whole number or text", types, remedy="Make sets with cz.set_of; cast members."
        )
    member = pa.string() if one == "string" else pa.int64()
    made = (pa.bool_(), _has(node)) if node.name == "set_has" else (pa.binary(), _add(node))
    return TypedNode(made[0], (pa.binary(), member), made[1])


RULES: dict[str, Rule] = {"set_has": _rule, "set_add": _rule}
