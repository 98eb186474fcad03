"""Shapes turn columns into lifetimes, and refuse rows that make no event."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from caesura.errors import PlanError
from caesura.events import NO_NEW_END
from caesura.io import from_arrow
from caesura.io.ingress.shape import Shape
from caesura.punctuation import INFINITY, MIN_TIME

NONE = pa.schema([])

NO_KIND = "is of no known kind: not '+', '-', 'insert', 'retract'; nor, of an edge, 'start', 'end'"


def lifetimes(shaped):
    return list(zip(shaped.le.tolist(), shaped.page.re.tolist(), strict=True))


def flawed(shaped):
    return shaped.reasons(np.arange(len(shaped.le)))


def test_a_point_lives_one_tick():
    shaped = Shape.of(time="t").cut(pa.record_batch({"t": [3, 5]}), NONE)
    assert lifetimes(shaped) == [(3, 4), (5, 6)] and shaped.flaw is None and shaped.re_new is None


def test_points_need_a_time_that_ticks_can_hold():
    batch = pa.record_batch({"t": pa.array([None, INFINITY, MIN_TIME, 3], pa.int64())})
    assert flawed(Shape.of(time="t").cut(batch, NONE)) == ["has no time"] * 3 + [""]


def test_an_interval_without_an_end_never_ends():
    batch = pa.record_batch({"t": [1, 5, 7], "end": [None, 4, 7]})
    shaped = Shape.of(time="t", end="end").cut(batch, NONE)
    assert lifetimes(shaped)[0] == (1, INFINITY)
    assert flawed(shaped) == ["", "ends at or before its start", "ends at or before its start"]


def test_an_end_column_that_is_all_null_never_ends():
    source = from_arrow(pa.table({"t": [1], "end": pa.nulls(1)}), time="t", end="end")
    [raw] = source.read({})
    assert source.operator().raw(raw)[0].re.tolist() == [INFINITY]


def test_edges_start_and_end_events():
    kinds = ["start", "end", "end", "end", "begin", "end"]
    batch = pa.record_batch({"t": [1, 1, 1, 9, 1, None], "end": [None, 5, None, 5, 5, 5], "k": kinds})
    shaped = Shape.of(time="t", end="end", kind="k").cut(batch, NONE)
    assert shaped.re_new.tolist()[:2] == [NO_NEW_END, 5] and shaped.re.tolist()[0] == INFINITY
    assert flawed(shaped) == ["", "", "an end edge without an end", "its new end is before its start",
                              NO_KIND, "has no time"]  # fmt: skip


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_the_full_form_has_inserts_and_retracts(kind):
    words = pa.array(["+", "insert", "-", "retract", None, "--", "-"], pa.string()).cast(kind)
    batch = pa.record_batch({"t": [1] * 7, "end": [9] * 7, "k": words, "new": [None, None, 1, 5, 5, 5, 9]})
    shaped = Shape.of(time="t", end="end", kind="k", new_end="new").cut(batch, NONE)
    assert shaped.re_new.tolist()[:4] == [NO_NEW_END, NO_NEW_END, 1, 5]
    assert flawed(shaped) == [""] * 4 + [NO_KIND] * 2 + ["a retract that changes nothing"]


def test_without_a_column_for_new_ends_retracts_take_events_away():
    batch = pa.record_batch({"t": [1], "end": [9], "k": ["-"]})
    assert Shape.of(time="t", end="end", kind="k", form="full").cut(batch, NONE).re_new.tolist() == [1]


@pytest.mark.parametrize(
    ("column", "tick", "time"),
    [
        (pa.array([7], pa.uint8()), 7, pa.int64()),
        (pa.array([2], pa.timestamp("s")), 2_000_000, pa.timestamp("us")),
        (pa.array([2], pa.timestamp("ms", "UTC")), 2_000, pa.timestamp("us", "UTC")),
        (pa.array([-1], pa.timestamp("ns")), -1, pa.timestamp("us")),
        (pa.array([date(1970, 1, 3)], pa.date32()), 172_800_000_000, pa.timestamp("us")),
        (pa.array([date(1970, 1, 2)], pa.date64()), 86_400_000_000, pa.timestamp("us")),
    ],
)
def test_times_of_every_type_become_ticks(column, tick, time):
    source = from_arrow(pa.table({"t": column}), time="t")
    [raw] = source.read({})
    [page] = source.operator().raw(raw)
    assert page.le.tolist() == [tick] and source.time == time


def test_times_beyond_all_ticks_are_refused_not_wrapped():
    for column in (pa.array([2**63 + 5], pa.uint64()), pa.array([2**60], pa.timestamp("s"))):
        assert flawed(Shape.of(time="t").cut(pa.record_batch({"t": column}), NONE)) == ["has no time"]


def test_sliced_batches_are_read_at_their_own_offset():
    whole = pa.record_batch({"t": [1, None, 3, 4], "k": ["start", "x", "start", "end"], "end": [0, 0, 0, 8]})
    shaped = Shape.of(time="t", end="end", kind="k").cut(whole.slice(2), NONE)
    assert shaped.le.tolist() == [3, 4] and shaped.re_new.tolist() == [NO_NEW_END, 8] and shaped.flaw is None


def test_payload_columns_become_plain_types():
    table = pa.table(
        {
            "t": [1],
            "big": pa.array(["x"], pa.large_string()),
            "code": pa.array(["y"]).dictionary_encode(),
            "at": pa.array([datetime(2024, 5, 1, tzinfo=UTC)], pa.timestamp("ns", "UTC")),
            "none": pa.nulls(1),
        }
    )
    source = from_arrow(table, time="t")
    [raw] = source.read({})
    [page] = source.operator().raw(raw)
    assert page.payload.schema.equals(source.schema)
    assert source.schema.types == [pa.string(), pa.string(), pa.timestamp("us", "UTC"), pa.string()]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"time": "tt"}, "there is no column 'tt'"),
        ({"time": "name"}, "the time column 'name' has the type string"),
        ({"time": "t", "end": "at"}, "count time differently"),
        ({"time": "t", "end": "n", "kind": "n"}, "the kind column 'n' has the type int64"),
        ({"time": "t", "kind": "name"}, "need end="),
        ({"time": "t", "new_end": "n"}, "have no new_end= column"),
        ({"time": "t", "shape": "pint"}, "no shape is called 'pint'"),
        ({"time": "t", "late": "drop"}, "late='drop' is no way"),
    ],
)
def test_columns_that_make_no_shape_are_refused_when_the_plan_is_built(columns, message):
    table = pa.table({"t": [1], "n": [2], "name": ["x"], "at": pa.array([1], pa.timestamp("us"))})
    with pytest.raises(PlanError, match=message) as error:
        from_arrow(table, **columns)
    assert "test_shapes.py" in str(error.value)
