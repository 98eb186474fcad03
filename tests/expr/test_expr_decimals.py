"""Decimals in whole numbers: what Arrow computes, wherever 64 bits are enough, and nothing else."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numba  # noqa: F401 - the kernels run as machine code where it is loaded
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caesura.expr.casts import rescale
from caesura.expr.decimals import added, multiplied, products, scaled, subtracted, whole

EDGES = [0, 1, -1, 10**15 - 1, -(10**15) + 1, 2**32, -(2**32) - 1, 10**18 - 1, -(10**18) + 1]
UNSCALED = st.lists(st.none() | st.sampled_from(EDGES) | st.integers(-(10**18) + 1, 10**18 - 1), min_size=1)
SCALES = st.integers(0, 18)


def column(values: list[int | None], scale: int, digits: int = 18) -> pa.Array:
    made = [None if v is None else Decimal(v).scaleb(-scale) for v in values]
    return pa.array([None, *made], pa.decimal128(digits, scale))[1:]


def exactly(a: Any, b: Any, operation: str) -> list[Decimal | None]:
    with localcontext() as context:
        context.prec = 80
        pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
        return [None if None in pair else getattr(pair[0], operation)(pair[1]) for pair in pairs]


@given(UNSCALED, st.data(), SCALES, SCALES)
def test_products_and_sums_are_exact(values: list[Any], data: Any, s: int, t: int) -> None:
    others = data.draw(
        st.lists(st.sampled_from([*values, *EDGES]), min_size=len(values), max_size=len(values))
    )
    a, b = column(values, s), column(others, t)
    product = multiplied(a, b, pa.decimal128(37, s + t))
    assert product is not None and product.to_pylist() == exactly(a, b, "__mul__")
    for operation, swift in (("__add__", added), ("__sub__", subtracted)):
        total = swift(a, b, pa.decimal128(38, max(s, t)))
        assert total is not None and total.to_pylist() == exactly(a, b, operation)


@given(UNSCALED, SCALES, st.integers(0, 18), st.booleans())
def test_more_digits_are_the_same_values(values: list[Any], scale: int, more: int, wide: bool) -> None:
    a = column(values, scale)
    out = (pa.decimal256 if wide else pa.decimal128)(min(18 + more, 38), scale + more)
    if out.precision - out.scale < 18 - scale:
        assert scaled(a, out) is None
    else:
        assert scaled(a, out).equals(a.cast(out))  # type: ignore[union-attr]
        assert rescale(a, out).equals(a.cast(out))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**37])
def test_what_64_bits_do_not_hold_is_left_to_arrow(value: int) -> None:
    a = column([1, value], 0, 38)
    assert multiplied(a, a, pa.decimal128(38, 0)) is None
    assert added(a, a, pa.decimal128(38, 0)) is None
    assert scaled(a, pa.decimal256(40, 2)) is None
    assert rescale(a, pa.decimal256(40, 2)).equals(a.cast(pa.decimal256(40, 2)))


def test_the_least_number_of_64_bits_is_a_factor() -> None:
    a = column([-(2**63), 2**63 - 1, -(2**63)], 0, 19)
    b = column([-(2**63), -(2**63), 1], 0, 19)
    assert multiplied(a, b, pa.decimal128(38, 0)).to_pylist() == exactly(a, b, "__mul__")  # type: ignore[union-attr]


def test_constants_parts_and_nulls() -> None:
    a = column([None, 150, -25, 7], 2)[1:3]
    two = pa.scalar(Decimal(2), pa.decimal128(1, 0))
    assert multiplied(two, a, pa.decimal128(20, 2)).to_pylist() == [Decimal("3.00"), Decimal("-0.50")]  # type: ignore[union-attr]
    assert subtracted(two, a, pa.decimal128(20, 2)).to_pylist() == [Decimal("0.50"), Decimal("2.25")]  # type: ignore[union-attr]
    assert multiplied(pa.scalar(None, two.type), a, pa.decimal128(20, 2)) is None
    assert added(a[:0], a[:0], pa.decimal128(19, 2)) is None


@pytest.mark.parametrize("type", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64()])
def test_whole_numbers_become_decimals(type: pa.DataType) -> None:
    bits = np.iinfo(type.to_pandas_dtype())
    a = pa.array([5, None, int(bits.min), int(bits.max), 0], type)[1:]
    assert whole(a, pa.decimal128(20, 0)).equals(a.cast(pa.decimal128(20, 0)))


def test_the_twin_multiplies_alike() -> None:
    some = np.array([*EDGES, -(2**63), 2**63 - 1], np.int64)
    words = np.stack([some, some >> 63], 1).reshape(-1)
    for other in (words, np.roll(words, 2)):
        swift, plain = np.ones(len(words), np.uint64), np.ones(len(words), np.uint64)
        with np.errstate(over="ignore"):
            assert products(words, 1, other, 1, swift, 2) == products.twin(words, 1, other, 1, plain, 2)
        assert swift.tolist() == plain.tolist()
