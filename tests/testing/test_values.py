"""An expression is tried over a few rows, without a stream."""

from __future__ import annotations

import pyarrow as pa
import pytest

import caesura as cz
from caesura import col, functions
from caesura.testing import values


def test_the_values_of_an_expression_are_those_that_a_query_gives() -> None:
    given = [3, None, -4]
    asked = functions.abs("a") * 2 + functions.coalesce("a", 7)
    rows = cz.from_rows([{"t": t, "a": a} for t, a in enumerate(given)], time="t")
    assert values(asked, a=given) == rows.select(x=asked).run().table()["x"].to_pylist() == [9, None, 4]


def test_an_expression_without_columns_has_one_value() -> None:
    assert values(cz.lit(3) + 4) == [7]


def test_an_arrow_array_keeps_its_type() -> None:
    small = pa.array([2**31 - 1], pa.int32())
    assert values(col("a").try_add(1), a=small) == [None]
    assert values(col("a").try_add(1), a=[2**31 - 1]) == [2**31]


def test_what_a_query_would_refuse_is_refused() -> None:
    with pytest.raises(cz.CaesuraError, match="is no bigint"):
        values(col("a") * 4, a=[2**62])
