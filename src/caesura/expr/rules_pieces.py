"""Texts put together, padded, cut and turned round, as Spark's functions have them.

>>> from caesura.expr.nodes import col
>>> plan = RULES["lpad"](col("a").lpad(5, "<>"), [pa.string()])
>>> plan.kernel(pa.array(["ab", "abcdefg", None])).to_pylist()
['<><ab', 'abcde', None]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.expr.arrays import by_value, column, numbers
from caesura.expr.nodes import Apply
from caesura.expr.rules import Datum, Rule, TypedNode, Types, want
from caesura.expr.rules_text import WRITTEN
from caesura.expr.types import kind

_STRING = pa.string()
_INT = pa.int32()


def _want_text(node: Apply, types: Types) -> None:
    want(node, types, ("string",), "text", remedy="Cast it: .cast('string').")


def _padded(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    length, pad = node.options
    left = node.name == "lpad"

    def kernel(array: pa.Array) -> pa.Array:
        have, nulls = numbers(pc.utf8_length(array))
        lacking = np.maximum(length - have, 0) if pad else np.zeros_like(have)
        sizes, at = np.unique(lacking, return_inverse=True)
        fills = pa.array([(pad * (n // len(pad) + 1))[:n] if n else "" for n in sizes.tolist()], _STRING)
        fill = fills.take(column(at, nulls, pa.int64()))
        made = pc.binary_join_element_wise(*((fill, array) if left else (array, fill)), "")
        return pc.utf8_slice_codeunits(made, 0, max(length, 0))

    return TypedNode(_STRING, (_STRING,), kernel)


def _concat_ws(node: Apply, types: Types) -> TypedNode:
    want(node, types, WRITTEN, "texts", remedy="Cast it: .cast('string').")
    (separator,) = node.options

    def kernel(*args: Datum) -> Datum:
        # Arrow's own way to skip nulls drops a row that has nothing else.
        led = [pc.fill_null(pc.binary_join_element_wise(separator, arg, ""), "") for arg in args]
        joined = pc.binary_join_element_wise(*led, "")
        return pc.utf8_slice_codeunits(joined, len(separator), None)

    return TypedNode(_STRING, (_STRING,) * len(types), kernel)


def _position(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    wanted, first = node.options

    def kernel(array: pa.Array) -> pa.Array:
        rest = array if first <= 1 else pc.utf8_slice_codeunits(array, first - 1, None)
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        if first < 1 or not wanted:  # an empty text stands in front of all others
            return column(np.full(len(array), int(first >= 1), np.int32), nulls, _INT)
        before = pc.list_element(pc.split_pattern(rest, wanted, max_splits=1), 0) if len(rest) else rest
        at, _ = numbers(pc.utf8_length(before))
        there, _ = numbers(pc.find_substring(rest, wanted))
        return column(np.where(there >= 0, at + first, 0).astype(np.int32), nulls, _INT)

    return TypedNode(_INT, (_STRING,), kernel)


def _initcap(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)

    def kernel(array: pa.Array) -> pa.Array:
        words = pc.split_pattern(array, " ")
        capital = pa.ListArray.from_arrays(words.offsets, pc.utf8_capitalize(words.values))
        joined = pc.binary_join(capital, " ")
        return pc.if_else(pc.is_valid(array), joined, pa.scalar(None, _STRING))

    return TypedNode(_STRING, (_STRING,), kernel)


def _translate(node: Apply, types: Types) -> TypedNode:
    """Arrow has no such kernel: each distinct value is translated once."""
    _want_text(node, types)
    matching, replacement = node.options
    table: dict[int, str | None] = {}
    for i, c in enumerate(matching):
        table.setdefault(ord(c), replacement[i] if i < len(replacement) else None)
    return TypedNode(_STRING, (_STRING,), lambda a: by_value(a, lambda v: v.translate(table), _STRING))


def _repeat(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    (count,) = node.options
    return TypedNode(_STRING, (_STRING,), lambda a: pc.binary_repeat(a, max(count, 0)))


def _reverse(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    return TypedNode(_STRING, (_STRING,), lambda a: pc.utf8_reverse(a))


_TRIMS: dict[str, Any] = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}


def _trimmed(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    (characters,) = node.options or (" ",)
    cut = _TRIMS[node.name]
    if not characters:
        return TypedNode(_STRING, (_STRING,), lambda a: a)
    return TypedNode(_STRING, (_STRING,), lambda a: cut(a, characters=characters))


def _octets(node: Apply, types: Types) -> TypedNode:
    want(node, types, ("string", "binary"), "text or bytes", remedy="Cast it: .cast('string').")
    operand = pa.binary() if kind(types[0]) == "binary" else _STRING
    return TypedNode(_INT, (operand,), lambda a: pc.binary_length(a).cast(_INT))


def _ascii(node: Apply, types: Types) -> TypedNode:
    """The code of the first character: each distinct first character is looked up once."""
    _want_text(node, types)

    def kernel(array: pa.Array) -> pa.Array:
        return by_value(pc.utf8_slice_codeunits(array, 0, 1), lambda v: ord(v) if v else 0, _INT)

    return TypedNode(_INT, (_STRING,), kernel)


def _right(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    (count,) = node.options
    if count <= 0:
        return TypedNode(_STRING, (_STRING,), lambda a: pc.utf8_slice_codeunits(a, 0, 0))
    return TypedNode(_STRING, (_STRING,), lambda a: pc.utf8_slice_codeunits(a, -count, None))


RULES: dict[str, Rule] = {
    "lpad": _padded,
    "rpad": _padded,
    "concat_ws": _concat_ws,
    "locate": _position,
    "initcap": _initcap,
    "translate": _translate,
    "repeat": _repeat,
    "reverse": _reverse,
    **dict.fromkeys(_TRIMS, _trimmed),
    "octet_length": _octets,
    "ascii": _ascii,
    "right": _right,
}
