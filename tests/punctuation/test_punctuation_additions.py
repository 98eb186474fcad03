"""Sums of columns and constants: what is told of a sum is told of what it is made of, value by value."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col, lit
from caesura.events.page import Page
from caesura.punctuation.pattern import Pattern
from caesura.punctuation.values import Values, between, ge, gt, le, lt, one_of, value

WHOLE = (pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64())
CLOSE = st.sampled_from([0.1, 0.2, 0.3, 0.30000000000000004, 1e16, 1e16 + 2, -0.0, 1e308, -1e308, 5e-324])
FLOATS = st.one_of(CLOSE, st.floats(allow_nan=False))


def limits(t: pa.DataType) -> tuple[int, int]:
    unsigned = pa.types.is_unsigned_integer(t)
    bits = t.bit_width if unsigned else t.bit_width - 1
    return (0 if unsigned else -(2**bits)), 2**bits - 1


def about(bounds: Any) -> st.SearchStrategy[Values]:
    """Sets with such bounds, null in them or not."""
    halves = st.builds(lambda make, at: make(at), st.sampled_from([lt, le, gt, ge, value]), bounds)
    pairs = st.tuples(bounds, bounds).map(lambda two: between(min(two), max(two)))
    lists = st.lists(bounds, min_size=1, max_size=3).map(one_of)
    some = st.one_of(halves, pairs, lists)
    return st.one_of(some, some.map(lambda s: s.union(value(None))), some.map(Values.complement))


def told(stream: Stream, values: Values) -> Pattern | None:
    """What a set of values of the sum 'x' says of the column 'v'."""
    mapping: Any = stream.node.mapping  # type: ignore[attr-defined]
    found: Pattern | None = mapping.up(Pattern(x=values))
    return found


def stream(t: pa.DataType, by: Any) -> Stream:
    empty = pa.table({"ts": pa.array([], pa.int64()), "v": pa.array([], t)})
    whole = pa.types.is_integer(t) and isinstance(by, int)
    made = col("v") + by if not whole else col("v") + lit(by, t) if by >= 0 else col("v") - lit(-by, t)
    return cz.from_arrow(empty, time="ts").select(x=made)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.data(), st.sampled_from(WHOLE), st.integers(-9, 9))
def test_a_whole_number_is_told_of_exactly_when_it_has_a_sum_that_is(
    data: Any, t: pa.DataType, by: int
) -> None:
    low, high = limits(t)
    near = st.one_of(st.integers(low, low + 12), st.integers(high - 12, high), st.integers(0, 12))
    wanted = data.draw(about(near))
    made = stream(t, by)
    least, most = limits(made.schema.field("x").type)
    found = told(made, wanted)
    assert found is not None
    for v in (*range(low, low + 24), *range(high - 24, high + 1), *range(24), None):
        has = v is not None and least <= v + by <= most
        assert found.matches_row({"v": v}) == (wanted.contains(v + by) if has else v is None and wanted.null)


@settings(max_examples=examples(200), deadline=None)
@given(about(FLOATS), FLOATS.filter(math.isfinite), st.lists(FLOATS, min_size=3))
def test_a_float_is_told_of_exactly_when_its_rounded_sum_is(
    wanted: Values, by: float, some: list[float]
) -> None:
    found = told(stream(pa.float64(), by), wanted)
    assert found is not None
    cuts = [at for _, part in found.items() for at, _ in part.cuts]
    near = [math.nextafter(at, side) for at in cuts for side in (-math.inf, math.inf)]
    for v in (*some, *cuts, *near, *(at - by for at, _ in wanted.cuts), math.inf, -math.inf):
        if not math.isnan(v + by):
            assert found.matches_row({"v": v}) == wanted.contains(v + by), v


@settings(max_examples=examples(100), deadline=None)
@given(about(st.floats(-400, 400)), st.floats(-9, 9))
def test_whole_numbers_that_become_floats_are_told_of_as_such(wanted: Values, by: float) -> None:
    found = told(stream(pa.int16(), by), wanted)
    assert found is not None
    for v in (*range(-420, 421), -(2**15), 2**15 - 1):
        assert found.matches_row({"v": v}) == wanted.contains(float(v) + by), v


def test_infinity_is_told_of_apart_from_what_is_no_number() -> None:
    made = stream(pa.float64(), 0.1)
    for wanted in (one_of([math.inf]), one_of([math.inf, 1.0]), one_of([math.inf, math.nan]), lt(math.nan)):
        found = told(made, wanted)
        assert found is not None
        for v in (math.inf, -math.inf, math.nan, 0.9, 3.0):
            assert found.matches_row({"v": v}) == wanted.contains(v + 0.1), (wanted, v)
    found = told(stream(pa.int16(), 0.5), one_of([math.inf]))
    assert found is not None and not any(found.matches_row({"v": v}) for v in (-(2**15), 0, 2**15 - 1))


def test_decimals_are_moved_exactly() -> None:
    found = told(stream(pa.decimal128(10, 2), Decimal("0.15")), gt(Decimal("3.10")))
    assert found is not None and str(found) == "v > 2.95"


@pytest.mark.parametrize(("by", "bound", "most"), [(5, 30, 25), (2.5, 30.0, 27)])
def test_feedback_on_a_sum_stops_rows_at_the_source(by: Any, bound: Any, most: int) -> None:
    rows = [{"ts": t, "v": t} for t in range(100)]
    summed = cz.from_rows(rows, time="ts", name="st").select(x=col("v") + by)
    query = summed.query()
    query.assume(col("x") > bound)
    query.run()
    pages = [item for item in query.take("out") if isinstance(item, Page)]
    left = [x for page in pages for x in page.payload.column("x").to_pylist()]
    assert left == [v + by for v in range(100) if v <= most]
    assert query.counters()["st"].feedback["stopped at the output"] == 99 - most
