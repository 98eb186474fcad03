"""What cannot be converted is refused, or null if only tried; the rest is converted as Spark does it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caesura.expr import RowError, col, evaluate

D = Decimal
NAN, INF = float("nan"), float("inf")
NEW_YEAR = dt.datetime(2024, 1, 1)
PARIS = pa.timestamp("us", tz="Europe/Paris")


def cast(values: list[Any], source: pa.DataType, target: str | pa.DataType) -> list[Any]:
    batch = pa.record_batch({"a": pa.array(values, source)})
    tried = evaluate(col("a").try_cast(target), batch).to_pylist()
    refused = [
        i for i, (v, made) in enumerate(zip(values, tried, strict=True)) if v is not None and made is None
    ]
    if not refused:
        assert repr(evaluate(col("a").cast(target), batch).to_pylist()) == repr(tried)
        return tried
    with pytest.raises(RowError) as error:
        evaluate(col("a").cast(target), batch)
    assert error.value.rows.tolist() == refused
    return tried


@pytest.mark.parametrize(
    ("values", "source", "target", "wanted"),
    [
        (
            [" 12 ", "+3", "-4", "4.5", "x", "", "99999999999", None],
            pa.string(),
            "int",
            [12, 3, -4] + [None] * 5,
        ),
        (["1.5", "1e2", "NaN", "-Infinity", "one"], pa.string(), "double", [1.5, 100.0, "NaN", -INF, None]),
        (["yes", "F", "1", "maybe"], pa.string(), "boolean", [True, False, True, None]),
        (["1.255", "-1.255", "12345", "a"], pa.string(), "decimal(5,2)", [D("1.26"), D("-1.26"), None, None]),
        (
            ["2024-02-30", "2024-02-29", "2024-02-29 10:00:00"],
            pa.string(),
            "date",
            [None] + [dt.date(2024, 2, 29)] * 2,
        ),
        (["2024-01-01", "2024-01-01T00:00:00", "no"], pa.string(), "timestamp", [NEW_YEAR, NEW_YEAR, None]),
        ([300, -129, 5], pa.int32(), "tinyint", [None, None, 5]),
        ([1.9, -1.9, NAN, INF, 3e9], pa.float64(), "int", [1, -1, None, None, None]),
        ([2.0**63, -(2.0**63), 1.0], pa.float64(), "bigint", [None, -(2**63), 1]),
        ([1, 0, None], pa.int64(), "boolean", [True, False, None]),
        ([True, False, None], pa.bool_(), "double", [1.0, 0.0, None]),
        ([1.0, 0.1, NAN, -INF, 1e20], pa.float64(), "string", ["1.0", "0.1", "NaN", "-Infinity", "1.0E20"]),
        ([D("1.25"), D("99.95")], pa.decimal128(4, 2), "decimal(3,1)", [D("1.3"), None]),
        ([D("-1.99")], pa.decimal128(4, 2), "int", [-1]),
        ([12345, 7], pa.int64(), "decimal(4,1)", [None, D("7.0")]),
        ([NEW_YEAR], pa.timestamp("us"), "string", ["2024-01-01 00:00:00"]),
        ([dt.datetime(1969, 12, 31, 23, 59, 59, 500000)], pa.timestamp("us"), "bigint", [-1]),
        ([1_704_067_200], pa.int64(), "timestamp", [NEW_YEAR]),
        ([1_704_067_200.0], pa.float64(), "timestamp", [NEW_YEAR]),
        ([dt.datetime(2024, 1, 1, 23)], pa.timestamp("us", tz="Asia/Tokyo"), "date", [dt.date(2024, 1, 2)]),
        ([1_500, 2_000], pa.timestamp("ns"), "timestamp", [None, dt.datetime(1970, 1, 1, 0, 0, 0, 2)]),
        ([b"ok", b"\xff"], pa.binary(), "string", ["ok", None]),
    ],
)
def test_a_cast_converts_or_refuses_and_a_try_gives_null(
    values: Any, source: pa.DataType, target: str, wanted: list[Any]
) -> None:
    got = cast(values, source, target)
    assert ["NaN" if v != v else v for v in got] == wanted


def test_a_local_time_is_read_on_the_zones_clock() -> None:
    (instant,) = cast([dt.datetime(2024, 7, 1, 12)], pa.timestamp("us"), PARIS)
    assert instant.astimezone(dt.UTC).hour == 10
    assert cast([instant], PARIS, "timestamp") == [dt.datetime(2024, 7, 1, 12)]


def test_an_offset_in_the_text_decides_the_instant() -> None:
    got = cast(["2024-07-01 12:00:00+00:00", "2024-07-01 12:00:00"], pa.string(), PARIS)
    assert [v.astimezone(dt.UTC).hour for v in got] == [12, 10]


def test_many_bad_values_among_good_ones_are_found_each() -> None:
    values = [str(v) if v % 7 else "9" * 30 for v in range(500)]
    assert cast(values, pa.string(), "int") == [v if v % 7 else None for v in range(500)]
