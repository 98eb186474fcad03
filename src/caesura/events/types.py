"""Which column types a stream can carry, and how their values lie in memory.

>>> check_type("passed", pa.month_day_nano_interval())
Traceback (most recent call last):
...
caesura.errors.PlanError: column 'passed' has the type month_day_nano_interval, which a stream cannot carry.
Leave it out where it is read, or cast it to a string before.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.nested import element_type, is_any_list, is_list

RESERVED = ("time", "LE", "RE", "RE_new")
NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
)


def is_bytes(t: pa.DataType) -> bool:
    """Whether values have no fixed width."""
    return bool(
        pa.types.is_string(t)
        or pa.types.is_large_string(t)
        or pa.types.is_binary(t)
        or pa.types.is_large_binary(t)
    )


def _by_kind(dtype: Any, *types: pa.DataType) -> dict[int, np.dtype[np.generic]]:
    return {t.id: np.dtype(dtype) for t in types}


WORDS: dict[int, np.dtype[np.generic]] = {
    **{t.id: np.dtype(t.to_pandas_dtype()) for t in NUMBERS},
    **_by_kind(np.int32, pa.date32(), pa.time32("s")),
    **_by_kind(np.int64, pa.date64(), pa.time64("us"), pa.timestamp("us"), pa.duration("us")),
}
"""The NumPy types of columns whose memory is one number per row, by the number of the column's kind."""
WIDE = WORDS | _by_kind(np.uint8, pa.bool_()) | _by_kind("V16", pa.decimal128(1))
"""The same with what NumPy knows by its width only."""


def word_type(t: pa.DataType) -> np.dtype[np.generic] | None:
    """The NumPy type of a fixed-width column's memory, or None."""
    return WIDE.get(t.id)


def is_words(t: pa.DataType) -> bool:
    """Whether a column's memory is one number per row, as NumPy has it.

    >>> is_words(pa.timestamp("us")), is_words(pa.bool_()), is_words(pa.string())
    (True, False, False)
    """
    return t.id in WORDS  # a type takes ten times as long to look up


@cache
def supported(t: pa.DataType) -> bool:
    """Whether a stream can carry columns of this type.

    >>> supported(pa.list_(pa.struct([("x", pa.float64())]))), supported(pa.month_day_nano_interval())
    (True, False)
    """
    if is_list(t):
        return supported(element_type(t))
    if pa.types.is_struct(t):
        return all(supported(t.field(i).type) for i in range(t.num_fields))
    return is_bytes(t) or word_type(t) is not None


def check_type(name: str, t: pa.DataType) -> None:
    """Refuses a column that a stream cannot carry."""
    if t.id not in WIDE and not supported(t):
        raise PlanError(
            f"column '{name}' has the type {t}, which a stream cannot carry.",
            remedy="Leave it out where it is read, or cast it to a string before.",
        )


def check_schema(schema: pa.Schema) -> pa.Schema:
    """Refuses schemas with unsupported types, doubled names, or names that the engine keeps."""
    names = schema.names
    for name, type in zip(names, schema.types, strict=True):
        check_type(name, type)
        if name in RESERVED:
            raise PlanError(
                f"a payload column may not be called '{name}': that name is the engine's own.",
                remedy=f"Give it another name: rename={{'{name}': '{name}_'}} where it is read, "
                "or a new one in select.",
            )
    if len(set(names)) != len(names):
        doubled = sorted({n for n in names if names.count(n) > 1})
        raise PlanError(
            f"column names must differ; doubled: {', '.join(doubled)}.",
            remedy="Rename one of each pair with select or alias.",
        )
    return schema if schema.metadata is None else schema.remove_metadata()


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with dictionary columns as their value types and 64-bit offsets as 32-bit."""
    fields = [pa.field(f.name, plain_type(f.type)) for f in schema]
    return pa.schema(fields)


def plain_type(t: pa.DataType) -> pa.DataType:
    """A type as the engine keeps it: no dictionaries, no large or view variants, lists of any length.

    >>> plain_type(pa.list_(pa.large_string(), 3))
    ListType(list<item: string>)
    """
    if pa.types.is_dictionary(t):
        return plain_type(t.value_type)
    if pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return pa.string()
    if pa.types.is_large_binary(t) or pa.types.is_binary_view(t) or pa.types.is_fixed_size_binary(t):
        return pa.binary()
    if pa.types.is_null(t):
        return pa.string()
    if pa.types.is_float16(t):
        return pa.float32()
    if pa.types.is_timestamp(t) and t.unit != "us":
        return pa.timestamp("us", t.tz)
    if is_any_list(t):
        return pa.list_(plain_type(t.value_type))
    if pa.types.is_map(t):
        return pa.map_(plain_type(t.key_type), plain_type(t.item_type))
    if pa.types.is_struct(t):
        return pa.struct(
            [pa.field(t.field(i).name, plain_type(t.field(i).type)) for i in range(t.num_fields)]
        )
    return t
