"""Whole numbers in one pass: what Arrow's checked arithmetic gives, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from caesura.expr.overflow import ALL, WITH_CONSTANT, attempted

EXACT = {"add": pc.add_checked, "subtract": pc.subtract_checked, "multiply": pc.multiply_checked}
EDGES = [0, 1, -1, 5, -7, 2**31, -(2**31), 2**31 - 1, 2**62, -(2**62), 2**63 - 1, -(2**63), None]
numbers = st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)
PAIRS = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6)


@pytest.mark.parametrize("name", EXACT)
def test_one_pass_gives_what_checked_arithmetic_gives_or_nothing(name: str) -> None:
    @settings(max_examples=examples(60), deadline=None)
    @given(
        st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), st.integers(0, 4), st.integers(0, 1)
    )
    def holds(pairs: list[tuple[Any, Any]], form: int, skip: int) -> None:
        a, b = (pa.array([None, *side], pa.int64())[1 - skip :] for side in zip(*pairs, strict=True))
        left, right = [(a, b), (a, b[-1]), (a[0], b), (a[-1:], b[-1:]), (a.drop_null(), a.drop_null())][form]
        made = attempted(name, left, right)
        if made is not None:
            assert made.to_pylist() == EXACT[name](left, right).to_pylist()
            made.validate(full=True)

    holds()


@pytest.mark.parametrize("name", EXACT)
def test_small_numbers_take_the_one_pass(name: str) -> None:
    a = pa.array([1, None, -(2**20)])
    for b in (pa.array([3, 4, 5]), pa.scalar(7)):
        made = attempted(name, a, b)
        assert made is not None and made.to_pylist() == EXACT[name](a, b).to_pylist()


@pytest.mark.parametrize("name", EXACT)
def test_the_compiled_pass_and_its_twin_agree(name: str) -> None:
    some = np.array([n for n in EDGES if n is not None], np.int64)
    for kernel, other in (
        (ALL[name], some[::-1].copy()),
        (WITH_CONSTANT[name], 2**62),
        (ALL[name], some % 9),
    ):
        compiled, plain = np.empty_like(some), np.empty_like(some)
        with np.errstate(over="ignore"):
            wanted = kernel.twin(some, np.int64(other) if isinstance(other, int) else other, plain) < 0
        assert (kernel.compiled()(some, other, compiled) < 0) == wanted
        assert compiled.tolist() == plain.tolist()
