"""Functions on text, as Spark SQL has them.

>>> from caesura.expr.nodes import col
>>> plan = RULES["split_part"](col("a").split_part("/", 2), [pa.string()])
>>> plan.kernel(pa.array(["x/y", "x", None])).to_pylist()
['y', '', None]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import ExprError
from caesura.expr.delimited import Delimited, Lacking, is_delimiter
from caesura.expr.nodes import Apply
from caesura.expr.rules import Kernel, Rule, Shared, TypedNode, Types, sharing, want
from caesura.expr.types import kind

_STRING, _BOOLEAN = pa.string(), pa.bool_()
WRITTEN = ("string", "boolean", "integer", "decimal", "float", "date", "timestamp")
"""Kinds of values that have a text of their own."""

_TO_TEXT: dict[str, Kernel] = {
    "lower": lambda a: pc.utf8_lower(a),
    "upper": lambda a: pc.utf8_upper(a),
}
_SEARCHES: dict[str, Any] = {
    "contains": pc.match_substring,
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "like": pc.match_like,
    "rlike": pc.match_substring_regex,
}


def _want_text(node: Apply, types: Types) -> None:
    want(node, types, ("string",), "text", remedy="Cast it: .cast('string').")


def _text_to_text(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    return TypedNode(_STRING, (_STRING,), _TO_TEXT[node.name])


def _length(node: Apply, types: Types) -> TypedNode:
    want(node, types, ("string", "binary"), "text or bytes", remedy="Cast it: .cast('string').")
    if kind(types[0]) == "binary":
        return TypedNode(pa.int32(), (pa.binary(),), lambda a: pc.binary_length(a).cast(pa.int32()))
    return TypedNode(pa.int32(), (_STRING,), lambda a: pc.utf8_length(a).cast(pa.int32()))


def _search(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    (pattern,) = node.options
    search = _SEARCHES[node.name]
    try:
        search(pa.array([""]), pattern)
    except pa.ArrowInvalid as wrong:
        raise ExprError(
            f"in '{node}': {pattern!r} is no regular expression (RE2): {str(wrong).splitlines()[0]}.",
            remedy="Escape special characters with a backslash, or use .contains, .like.",
        ) from wrong
    return TypedNode(_BOOLEAN, (_STRING,), lambda a: search(a, pattern))


def _substring(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    pos, length = (*node.options, None)[:2]
    first = pos - 1 if pos > 0 else pos
    last = None if length is None else first + max(0, length)
    if first < 0 and last is not None and last >= 0:
        last = None
    if length is not None and length <= 0:
        return TypedNode(_STRING, (_STRING,), lambda a: pc.utf8_slice_codeunits(a, 0, 0))
    return TypedNode(_STRING, (_STRING,), lambda a: pc.utf8_slice_codeunits(a, first, last))


def _concat(node: Apply, types: Types) -> TypedNode:
    want(node, types, WRITTEN, "values that have a text", remedy="Cast it: .cast('string').")
    return TypedNode(_STRING, (_STRING,) * len(types), lambda *args: pc.binary_join_element_wise(*args, ""))


def _replace(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    search, replacement = node.options
    if not search:
        return TypedNode(_STRING, (_STRING,), lambda a: a)
    return TypedNode(_STRING, (_STRING,), lambda a: pc.replace_substring(a, search, replacement))


def _split_part(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    delimiter, part = node.options
    if not isinstance(part, int) or part == 0:
        raise ExprError(
            f"in '{node}': wanted a part counted from 1, or from the end as -1, got {part!r}.",
            remedy="Write .split_part('/', 1) for the first part.",
        )

    if is_delimiter(delimiter):
        return _one_piece(delimiter, part - 1 if part > 0 else part, lacking="empty")

    def pieces(array: Any) -> Any:
        return (pc.split_pattern(array, delimiter) if delimiter else _whole(array)), array

    parts = Shared(("split_part", delimiter), pieces, lambda made: _piece(made[0], made[1], part))
    return sharing(_STRING, (_STRING,), parts)


def _one_piece(delimiter: str, number: int, lacking: Lacking) -> TypedNode:
    parts = Shared(
        ("delimited", delimiter),
        lambda texts: Delimited.of(texts, delimiter),
        lambda made: made.piece(number, lacking=lacking),
    )
    return sharing(_STRING, (_STRING,), parts)


def _piece_of_split(node: Apply, types: Types) -> TypedNode:
    """What `delimited.of_split` makes of one element of a split."""
    _want_text(node, types)
    return _one_piece(*node.options)


def _whole(array: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.arange(len(array) + 1), pa.int32()), array)


def _piece(pieces: pa.Array, array: pa.Array, part: int) -> pa.Array:
    offsets = pieces.offsets.to_numpy()
    first, last = offsets[:-1], offsets[1:]
    at = first + part - 1 if part > 0 else last + part
    there = (at >= first) & (at < last)
    found = pc.take(pieces.values, pa.array(np.where(there, at, 0), mask=~there))
    return pc.if_else(pc.is_valid(array), pc.fill_null(found, ""), pa.scalar(None, _STRING))


RULES: dict[str, Rule] = {
    **dict.fromkeys(_TO_TEXT, _text_to_text),
    **dict.fromkeys(_SEARCHES, _search),
    "length": _length,
    "substring": _substring,
    "concat": _concat,
    "replace": _replace,
    "split_part": _split_part,
    "piece": _piece_of_split,
}
