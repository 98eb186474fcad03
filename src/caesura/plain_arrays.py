"""Arrow arrays of plain numbers and texts, made without pandas.

`pa.array` and `pa.scalar` ask pandas whether a value is one of its own, and import it for that where it is
installed, which takes longer than a first answer. Lists of one plain type and NumPy's numbers need no such
question; everything else goes the usual way, and so does all once somebody has imported pandas.

>>> plain_array([1, None, 3]).to_pylist(), plain_array(["a", "bc"]).type, plain_scalar(True)
([1, None, 3], DataType(string), <pyarrow.BooleanScalar: True>)
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

NUMBERS = {int: "int64", float: "float64", bool: "bool"}
"""The plain types, and what Arrow takes them for."""
NONE = type(None)


def plain_array(values: Any, type: pa.DataType | None = None) -> pa.Array:
    """As `pa.array` makes it."""
    made = None if "pandas" in sys.modules else _plain(values, type)
    return pa.array(values, type) if made is None else made


def plain_scalar(value: Any, type: pa.DataType | None = None) -> pa.Scalar:
    """As `pa.scalar` makes it."""
    made = None if "pandas" in sys.modules else _listed([value], type)
    return pa.scalar(value, type) if made is None else made[0]


def plain_numbers(column: pa.Array) -> np.ndarray[Any, Any]:
    """A column of numbers, times or truth values without nulls as NumPy's numbers; where it lies, if it may.

    >>> plain_numbers(pa.array([1, 2, 3])[1:]), plain_numbers(pa.array([True, False, True])[1:])
    (array([2, 3]), array([False,  True]))
    """
    data, first, count = column.buffers()[1], column.offset, len(column)
    if not pa.types.is_boolean(column.type):
        timed = pa.types.is_temporal(column.type)
        dtype = np.dtype(f"i{column.type.bit_width // 8}" if timed else column.type.to_pandas_dtype())
        return np.zeros(0, dtype) if not count else np.frombuffer(data, dtype, count, first * dtype.itemsize)
    if not count:
        return np.zeros(0, np.bool_)
    bits = np.frombuffer(data, np.uint8)[first // 8 : (first + count + 7) // 8]
    return np.unpackbits(bits, bitorder="little")[first % 8 : first % 8 + count].view(np.bool_)


def _plain(values: Any, type: pa.DataType | None) -> pa.Array | None:
    if isinstance(values, np.ndarray):
        return _numbers(values, type, [None])
    return _listed(values, type) if isinstance(values, list) else None


def _listed(values: list[Any], wanted: pa.DataType | None) -> pa.Array | None:
    """A list of one plain type, with or without nulls; None where Arrow has to look at it."""
    kinds = set(map(type, values)) - {NONE}
    if not kinds:
        return pa.nulls(len(values), wanted)
    kind = kinds.pop() if len(kinds) == 1 else NONE
    null = [value is None for value in values]
    valid = pa.py_buffer(np.packbits(~np.array(null), bitorder="little")) if any(null) else None
    if kind is str and (wanted is None or wanted == pa.string()):
        return _texts(values, valid)
    natural = NUMBERS.get(kind)
    if natural is None or not _takes(kind, natural, wanted):
        return None
    try:
        dtype = natural if wanted is None else wanted.to_pandas_dtype()
        filled = [0 if value is None else value for value in values] if valid else values
        return _numbers(np.array(filled, dtype), None, [valid])
    except OverflowError:  # Arrow says what is wrong
        return None


def _takes(kind: type, natural: str, wanted: pa.DataType | None) -> bool:
    """Whether values of a plain type become this one without a question."""
    if wanted is None or wanted == pa.type_for_alias(natural):
        return True
    return kind is int and pa.types.is_integer(wanted)


def _texts(values: list[str | None], valid: pa.Buffer | None) -> pa.Array | None:
    try:
        written = [(value or "").encode() for value in values]
    except UnicodeEncodeError:
        return None
    ends = np.cumsum([0, *map(len, written)])
    if ends[-1] >= 2**31:
        return None
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.string(), len(values), [valid, offsets, pa.py_buffer(b"".join(written))])


def _numbers(values: np.ndarray[Any, Any], wanted: pa.DataType | None, valid: list[Any]) -> pa.Array | None:
    """NumPy's numbers as they lie; None where they are of another kind, or another type is wanted."""
    if values.ndim != 1 or values.dtype.kind not in "iufb" or not values.dtype.isnative:
        return None
    made = pa.from_numpy_dtype(values.dtype)
    if wanted is not None and wanted != made:
        return None
    bits = np.packbits(values, bitorder="little") if values.dtype.kind == "b" else values
    held = pa.py_buffer(np.ascontiguousarray(bits))
    return pa.Array.from_buffers(made, len(values), [*valid, held])
