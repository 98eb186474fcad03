"""Arrays of plain values made without pandas are those that Arrow makes; a first answer needs no others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caesura.plain_arrays import plain_array, plain_numbers, plain_scalar

VALUES = st.one_of(
    *(
        st.lists(one | st.none() if nulls else one, max_size=20)
        for one in (
            st.integers(-(2**70), 2**70),
            st.integers(-200, 300),
            st.floats(),
            st.booleans(),
            st.text(),
            st.one_of(st.integers(0, 3), st.floats(0, 3), st.booleans(), st.text(max_size=1)),
        )
        for nulls in (False, True)
    )
)
TYPES = st.sampled_from(
    [None, pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string()]
)


@contextmanager
def without_pandas() -> Iterator[None]:
    """As in a process that has not imported it."""
    with patch.dict(sys.modules):
        sys.modules.pop("pandas", None)
        yield


def outcome(make: Any, *args: Any) -> Any:
    try:
        return make(*args)
    except (pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError) as error:
        return type(error)


@given(VALUES, TYPES)
def test_a_list_becomes_what_arrow_makes_of_it(values: list[Any], type: pa.DataType | None) -> None:
    wanted = outcome(pa.array, values, type)
    with without_pandas():
        got = outcome(plain_array, values, type)
    if isinstance(wanted, pa.Array):
        got.validate(full=True)
        assert got.type == wanted.type
        assert repr(got.to_pylist()) == repr(wanted.to_pylist())  # NaN and -0.0 too
    else:
        assert got == wanted


@given(VALUES.filter(bool), TYPES)
def test_a_value_becomes_the_scalar_that_arrow_makes_of_it(
    values: list[Any], type: pa.DataType | None
) -> None:
    wanted = outcome(pa.scalar, values[0], type)
    with without_pandas():
        got = outcome(plain_scalar, values[0], type)
    assert repr(got) == repr(wanted)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8", "f4", "f8", "?"])
@given(st.lists(st.integers(0, 1) | st.integers(0, 100), max_size=20), st.integers(1, 3))
def test_numbers_of_numpy_become_an_array_and_come_back(dtype: str, values: list[int], step: int) -> None:
    given_numbers = np.array(values, dtype)[::step]
    with without_pandas():
        got = plain_array(given_numbers)
        wider = outcome(plain_array, given_numbers, pa.float64())
    assert got.equals(pa.array(given_numbers))
    assert wider == outcome(pa.array, given_numbers, pa.float64())
    back = plain_numbers(got[1:])
    assert back.dtype == given_numbers.dtype
    assert back.tolist() == given_numbers[1:].tolist()


def test_times_are_numbers_of_their_unit() -> None:
    column = pa.array([5, 6, 7], pa.timestamp("us"))
    assert plain_numbers(column[1:]).tolist() == [6, 7]


FIRST = """
import sys
import caesura as cz
from caesura import col, qre
rows = [{"ts": t, "seg": t % 3, "mph": 1.0 * t} for t in range(100)]
speeds = cz.from_rows(rows, time="ts")
QUERY
assert "pandas" not in sys.modules
"""
MEANS = """
means = speeds.where(col("mph") > 3).group_by("seg").tumbling(10).agg(mph=cz.avg("mph"), n=cz.count())
print(means.preview())
"""
PATTERN = """
items = qre.items(speeds.schema)
fast = qre.atom(col("mph") > 50, col("mph"), items=items)
slow = qre.atom(~(col("mph") > 50), col("mph"), items=items)
print(speeds.match(qre.split(qre.iter(slow, qre.max()), qre.iter1(fast, qre.max()), op=col("_1"))).preview())
"""


@pytest.mark.parametrize("query", [MEANS, PATTERN])
def test_a_first_answer_does_not_import_pandas(query: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST.replace("QUERY", query)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
