"""Sets of values against plain Python sets of what is in them."""

from __future__ import annotations

import json
import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from punctuation_domains import PROBES, Drawn, sets

from caesura.errors import PatternError
from caesura.punctuation import ANY, NULL, Values, between, ge, gt, le, lt, one_of, value

few = settings(max_examples=60, deadline=None)
pairs = st.sampled_from(["int", "float", "str"]).flatmap(
    lambda kind: st.tuples(st.just(kind), sets(kind), sets(kind))
)
Pair = tuple[str, Drawn, Drawn]


def held(values: Values, kind: str) -> frozenset[int]:
    return frozenset(at for at, item in enumerate(PROBES[kind]) if values.contains(item))


@pytest.mark.slow
@few
@given(pairs)
def test_the_operations_are_those_of_sets(pair: Pair) -> None:
    kind, (a, in_a), (b, in_b) = pair
    whole = frozenset(range(len(PROBES[kind])))
    assert held(a, kind) == in_a
    assert held(a.union(b), kind) == in_a | in_b
    assert held(a.intersect(b), kind) == in_a & in_b
    assert held(a.minus(b), kind) == in_a - in_b
    assert held(a.complement(), kind) == whole - in_a


@few
@given(pairs)
def test_the_questions_are_those_of_sets(pair: Pair) -> None:
    _, (a, in_a), (b, in_b) = pair
    assert a.covers(b) == (in_a >= in_b)
    assert a.intersects(b) == bool(in_a & in_b)
    assert a.is_empty == (not in_a)
    assert a.union(a.complement()).is_any
    assert (a.is_point and len(in_a) == 1) or not a.is_point


@few
@given(pairs)
def test_equal_sets_are_equal_values(pair: Pair) -> None:
    _, (a, in_a), (b, in_b) = pair
    assert (a == b) == (in_a == in_b)
    assert a != b or hash(a) == hash(b)
    assert a.minus(b).union(a.intersect(b)) == a


@few
@given(pairs)
def test_a_mask_says_for_a_column_what_contains_says_for_an_item(pair: Pair) -> None:
    kind, (a, _), (b, _) = pair
    type_ = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}[kind]
    column = pa.array(PROBES[kind], type=type_)
    for values in (a, a.union(b), a.minus(b)):
        assert values.mask(column).tolist() == [values.contains(item) for item in PROBES[kind]]


@few
@given(pairs)
def test_a_set_survives_json_and_pickle(pair: Pair) -> None:
    _, (a, _), _ = pair
    assert Values.from_json(json.loads(json.dumps(a.to_json()))) == a
    assert pickle.loads(pickle.dumps(a)) == a


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (ANY, "*"),
        (value(4), "4"),
        (lt(20), "< 20"),
        (ge(50), ">= 50"),
        (one_of([3, 1]), "{1, 3}"),
        (between(1.0, 5.0, closed="left"), "[1.0..5.0)"),
        (NULL, "null"),
        (le("b"), "<= 'b'"),
        (value(True), "True"),
        (gt(date(2024, 5, 1)), "> 2024-05-01"),
        (between(1, 0), "nothing"),
    ],
)
def test_a_set_reads_as_in_the_thesis(values: Values, text: str) -> None:
    assert str(values) == text


def test_integers_are_discrete_and_neighbours_are_one_range() -> None:
    assert one_of([1, 2, 3]) == between(1, 3) == gt(0).intersect(lt(4))
    assert lt(10) == le(9)


def test_there_are_two_booleans_only() -> None:
    assert value(True).complement() == value(False).union(NULL)
    assert one_of([True, False, None]).is_any
    assert value(False).mask(pa.array([True, False, None])).tolist() == [False, True, False]


def test_nan_is_the_greatest_float_and_equals_itself() -> None:
    column = pa.array([1.0, math.inf, math.nan, -0.0])
    assert gt(math.inf).mask(column).tolist() == [False, False, True, False]
    assert value(float("nan")).mask(column).tolist() == [False, False, True, False]
    assert value(0.0) == value(-0.0)
    assert value(0.0).contains(-0.0)
    assert le(math.nan).union(NULL).is_any


MOMENTS: list[Any] = [
    ([date(2024, 5, 1), date(2024, 5, 2), None], pa.date32()),
    ([date(2024, 5, 1), date(2024, 5, 2), None], pa.date64()),
    ([datetime(2024, 5, 1), datetime(1960, 5, 1, 7), None], pa.timestamp("s")),
    ([datetime(2024, 5, 1), datetime(2024, 5, 1, 7), None], pa.timestamp("ns")),
    ([datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 2, tzinfo=UTC)], pa.timestamp("us", tz="UTC")),
    ([Decimal("1.25"), Decimal("-7.50"), None], pa.decimal128(5, 2)),
    ([b"a", b"\x00", b"", None], pa.binary()),
    (["a", "é", "", None], pa.large_string()),
    (["a", "b", "a", None], pa.dictionary(pa.int32(), pa.string())),
    ([2**64 - 1, 0, None], pa.uint64()),
    ([-128, 127, None], pa.int8()),
    ([1.5, -0.0, math.nan, None], pa.float32()),
]


@pytest.mark.parametrize(("items", "type_"), MOMENTS)
def test_masks_know_every_type_of_column(items: list[Any], type_: pa.DataType) -> None:
    column = pa.array(items, type=type_)
    for at in [item for item in items if item is not None]:
        for values in (value(at), lt(at), le(at), gt(at), ge(at), one_of(items), one_of(items).complement()):
            assert values.mask(column).tolist() == [values.contains(item) for item in items]
    assert values.mask(pa.chunked_array([column, column])).tolist() == 2 * values.mask(column).tolist()


def test_decimal_constants_finer_than_the_column_fall_between_its_values() -> None:
    column = pa.array([Decimal("1.2"), Decimal("1.3")], type=pa.decimal128(2, 1))
    assert lt(Decimal("1.25")).mask(column).tolist() == [True, False]
    assert value(Decimal("1.25")).mask(column).tolist() == [False, False]
    assert lt(Decimal(10**9)).mask(column).tolist() == [True, True]


def test_a_numpy_array_of_ticks_needs_no_arrow() -> None:
    assert lt(2**63 - 1).mask(np.array([0, 2**63 - 1])).tolist() == [True, False]
    assert ge(-(2**70)).mask(np.array([0, 1])).tolist() == [True, True]


def test_constants_of_two_types_are_refused() -> None:
    with pytest.raises(PatternError, match="different types"):
        one_of([1, "a"])
    with pytest.raises(PatternError, match="different types"):
        lt("a").union(value(b"a"))


def test_adding_a_point_to_a_hundred_thousand_is_cheap() -> None:
    many = one_of(range(0, 200_000, 2))
    assert len(many.intervals) == 100_000
    grown = many
    for n in range(1, 41, 2):
        grown = grown.union(value(n))
    assert grown.intervals[0] == (0, True, 40, True)
    assert int(grown.mask(pa.array(np.arange(200_000))).sum()) == 100_020


def test_a_set_reads_in_the_json_types_it_has() -> None:
    items = [1.0, math.inf, Decimal("1.10"), "a", b"\xff", date(2024, 5, 1), datetime(2024, 5, 1, 1), True]
    for item in [*items, datetime(2024, 5, 1, tzinfo=UTC), math.nan]:
        there = Values.from_json(json.loads(json.dumps(value(item).to_json())))
        assert there == value(item)
        assert type(there.point) is type(value(item).point)
