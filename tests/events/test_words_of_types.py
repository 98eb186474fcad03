"""Which columns are one number per row, beside what Arrow says of their types."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from caesura.events.types import is_words, word_type

NUMBERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NUMBERS += ["float16", "float32", "float64"]
TIMES = {
    pa.date32(): np.int32,
    pa.date64(): np.int64,
    pa.time32("ms"): np.int32,
    pa.time64("ns"): np.int64,
    pa.timestamp("s"): np.int64,
    pa.timestamp("ns", "UTC"): np.int64,
    pa.duration("ms"): np.int64,
}
WIDE = {pa.bool_(): np.uint8, pa.decimal128(38, 3): "V16"}
OTHERS = [pa.string(), pa.binary(), pa.binary(4), pa.null(), pa.decimal256(50, 2), pa.list_(pa.int64())]
OTHERS += [pa.struct([("x", pa.int8())]), pa.dictionary(pa.int32(), pa.string()), pa.large_string()]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_lie_as_numpy_has_them(name: str) -> None:
    t = pa.type_for_alias(name)
    assert is_words(t) and word_type(t) == np.dtype(name)


@pytest.mark.parametrize("t", [*TIMES, *WIDE, *OTHERS], ids=str)
def test_other_types_lie_as_their_width_says(t: pa.DataType) -> None:
    wanted = {**TIMES, **WIDE}.get(t)
    assert word_type(t) == (None if wanted is None else np.dtype(wanted))
    assert is_words(t) == (t in TIMES)
