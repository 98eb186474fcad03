"""Columns known by what they hold: equal keys for equal values, in any process and however they are cut.

>>> whole = pa.chunked_array([[1, 2, None]])
>>> column_key(whole) == column_key(pa.chunked_array([[1], [2, None]]))
True
>>> column_key(whole) == column_key(pa.chunked_array([[1, None, 2]]))
False
>>> column_key(pa.chunked_array([[[1], [None, 2]]])) == column_key(pa.chunked_array([[[1]], [[None, 2]]]))
True
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import raw_parts
from caesura.events.nested import elements, is_any_list


def column_key(column: pa.ChunkedArray) -> str:
    """Equal for columns of one type with the same values in the same order."""
    parts: dict[str, Any] = {}
    rows: dict[str, int] = {}
    for chunk in column.chunks:
        _feed(parts, "", chunk, rows)
    whole = _digest()
    whole.update(f"{column.type}:{len(column)}".encode())
    for name, part in sorted(parts.items()):
        whole.update(name.encode() + part.digest())
    return str(whole.hexdigest())


def _digest() -> Any:
    return hashlib.blake2b(digest_size=16)


def _feed(parts: dict[str, Any], path: str, array: pa.Array, rows: dict[str, int]) -> None:
    """Adds an array to the digests of its parts: which rows are null, how long values are, what they are.

    What lies under a null is nobody's business. Each part has a digest of its own, and nulls are counted from
    the first row on (``rows`` has how many came, by path), so that where one array ends and the next begins
    does not show.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    before = rows.get(path, 0)
    rows[path] = before + len(array)
    if pa.types.is_null(array.type):
        return
    if array.null_count:
        nulls = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
        _add(parts, f"{path}/null", nulls.astype(np.int64) + before)
    if pa.types.is_struct(array.type):
        for field, child in zip(array.type, array.flatten(), strict=True):
            _feed(parts, f"{path}/{field.name}", child, rows)
        return
    array = array.drop_null() if array.null_count else array
    if pa.types.is_map(array.type) or is_any_list(array.type):
        offsets, inner = elements(array)
        _add(parts, f"{path}/length", np.diff(offsets))
        _feed(parts, f"{path}/element", inner, rows)
    elif pa.types.is_boolean(array.type):
        _add(parts, f"{path}/data", array.cast(pa.uint8()).to_numpy())
    elif any(is_(array.type) for is_ in _TEXTS):
        offsets, data = raw_parts(array)
        _add(parts, f"{path}/length", np.diff(offsets).astype(np.int64))
        _add(parts, f"{path}/data", data[offsets[0] : offsets[-1]] if len(offsets) else data)
    else:
        _add(parts, f"{path}/data", _fixed(array))


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def _fixed(array: pa.Array) -> Any:
    """The values of a column of one width; anything else as text, value by value."""
    try:
        width = array.type.byte_width
    except ValueError:
        return repr(array.to_pylist()).encode()
    buffer = array.buffers()[1]
    start = array.offset * width
    return memoryview(buffer)[start : start + len(array) * width] if buffer is not None else b""


def _add(parts: dict[str, Any], name: str, data: Any) -> None:
    parts.setdefault(name, _digest()).update(memoryview(data).cast("B") if len(data) else b"")
