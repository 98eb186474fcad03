"""Functions on text, numbers and time answer as Spark's do, edge cases included."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caesura.expr import Expr, RowError, col, evaluate, lit, when
from caesura.expr import functions as f
from caesura.expr.datetime_patterns import fields, written

NAN = float("nan")
INF = float("inf")


def over(expr: Expr, values: list[Any], type: pa.DataType | None = None) -> list[Any]:
    out = evaluate(expr, pa.record_batch({"a": pa.array(values, type)})).to_pylist()
    return ["NaN" if v != v else v for v in out]


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (col("a").upper(), "ÀB C"),
        (col("a").length(), 4),
        (col("a").substring(2), "b c"),
        (col("a").substring(0, 2), "àb"),
        (col("a").substring(-3, 2), "b "),
        (col("a").substring(-9, 6), "à"),
        (col("a").substring(-2, 5), " c"),
        (col("a").substring(1, 0), ""),
        (col("a").concat("-", col("a")), "àb c-àb c"),
        (col("a").like("_b%"), True),
        (col("a").like("b"), False),
        (col("a").rlike("^.b"), True),
        (col("a").replace(" ", ""), "àbc"),
        (col("a").replace("", "x"), "àb c"),
        (col("a").split_part(" ", 1), "àb"),
        (col("a").split_part(" ", -1), "c"),
        (col("a").split_part(" ", 3), ""),
        (col("a").split_part("", 1), "àb c"),
        (f.concat("a", lit("!")).endswith("c!"), True),
    ],
    ids=str,
)
def test_text_functions_count_characters_from_one(expr: Expr, wanted: Any) -> None:
    assert over(expr, ["àb c", None]) == [wanted, None]


def test_trimming_takes_spaces_only() -> None:
    assert over(col("a").trim(), ["  \tx  "]) == ["\tx"]
    assert over(col("a").ltrim(), ["  x  "]) == ["x  "]
    assert over(col("a").rtrim(), ["  x  "]) == ["  x"]


def test_like_escapes_with_a_backslash() -> None:
    assert over(col("a").like(r"10\%"), ["10%", "100"]) == [True, False]


@pytest.mark.parametrize(
    ("expr", "value", "type_"),
    [
        (col("a") + 1, 2**63 - 1, pa.int64()),
        (col("a") * 4, 2**62, pa.int64()),
        (-col("a"), -128, pa.int8()),
        (col("a").abs(), -128, pa.int8()),
        (lit(1).shift_left(col("a")), 64, pa.int64()),
        (col("a").shift_left(1), 2**62, pa.int64()),
        (col("a") + col("a"), Decimal("9" * 38), pa.decimal128(38, 0)),
        (col("a").round(-1), 2**31 - 1, pa.int32()),
        (col("a").floor(), 1e30, pa.float64()),
        (col("a").ceil(), NAN, pa.float64()),
        (col("a").plus_time("1d"), 2**63 - 9, pa.timestamp("us")),
        (lit(2**62) * 4 + col("a"), 1, pa.int64()),
    ],
    ids=str,
)
def test_a_row_whose_value_no_type_can_hold_is_refused(expr: Expr, value: Any, type_: pa.DataType) -> None:
    batch = pa.record_batch({"a": pa.array([None, value, None], type_)})
    with pytest.raises(RowError, match="is no ") as error:
        evaluate(expr, batch)
    assert 1 in error.value.rows.tolist()


def test_the_try_forms_give_null_instead() -> None:
    edge = 2**63 - 1
    assert over(col("a").try_add(1), [edge, 1]) == [None, 2]
    assert over(col("a").try_subtract(2), [-edge, 1]) == [None, -1]
    assert over(col("a").try_multiply(2), [edge, 1]) == [None, 2]
    assert over(col("a").try_divide(0), [1]) == over(col("a").try_mod(0), [1]) == [None]
    assert over(f.try_cast("a", "tinyint"), [300, 3]) == [None, 3]


def test_what_a_row_does_not_need_is_not_asked_of_it() -> None:
    large = 2**62
    assert over(when(col("a") < 9, col("a") * 4).otherwise(0), [large, 2]) == [0, 8]
    assert over(col("a").coalesce(lit(large) * 4), [1]) == [1]
    assert over((col("a") * 4 == 8) & (col("a") == 2), [large, 2]) == [False, True]
    assert over((col("a") * 4 == 8) | (col("a") == large), [large, 2]) == [True, True]


def test_dividing_by_zero_is_null_whatever_the_type() -> None:
    assert over(col("a") / 0, [1, 0]) == [None, None]
    assert over(col("a") % 0, [1, 0]) == [None, None]
    assert over(1.5 / col("a"), [0.0, -0.0, 3.0]) == [None, None, 0.5]
    assert over(col("a") / 0, [Decimal("1.5")]) == [None]


def test_the_remainder_has_the_dividends_sign() -> None:
    assert over(col("a") % 3, [7, -7, 0]) == [1, -1, 0]
    assert over(col("a") % -3, [7.5, -7.5, NAN]) == [1.5, -1.5, "NaN"]
    assert over(col("a") % Decimal("0.30"), [Decimal("1.00"), Decimal("-1.00")]) == [
        Decimal("0.10"),
        Decimal("-0.10"),
    ]


def test_decimals_of_all_digits_are_divided_exactly() -> None:
    wide = pa.decimal128(38, 4)
    rows = [("2.0000", "3.0000"), ("1e32", "-7.0000"), ("1.0000", "0.0000"), ("-0.0005", "1000.0000")]
    a, b = (pa.array([Decimal(row[i]) for row in rows], wide) for i in (0, 1))
    found = evaluate(col("a") / col("b"), pa.record_batch({"a": a, "b": b}))
    assert found.type == pa.decimal128(38, 6)  # Spark's
    exact = (
        Decimal("0.666667"),
        Decimal("-14285714285714285714285714285714.285714"),
        None,
        Decimal("-0.000001"),
    )
    assert tuple(found.to_pylist()) == exact


def test_decimals_stay_exact_and_round_half_up() -> None:
    third = over(col("a") / 3, [Decimal("1.00"), Decimal("-2.00")])
    assert third == [Decimal("0.333333"), Decimal("-0.666667")]
    assert over(col("a") * Decimal("0.1"), [Decimal("0.1")]) == [Decimal("0.01")]
    assert over(col("a").round(1), [Decimal("1.25"), Decimal("-1.25")]) == [Decimal("1.3"), Decimal("-1.3")]
    assert over(col("a").ceil(), [Decimal("1.25"), Decimal("-1.25")]) == [2, -1]


@pytest.mark.parametrize(("type_", "large"), [(pa.float64(), 1e308), (pa.float32(), 2.0**127)])
def test_numbers_without_such_digits_are_not_rounded(type_: pa.DataType, large: float) -> None:
    rounded = pa.scalar(1.3, type_).as_py()
    given = [large, -large, 1.25, None, NAN, INF]
    assert over(col("a").round(1), given, type_) == [large, -large, rounded, None, "NaN", INF]
    assert over(col("a").round(400), [large, 1.25], type_) == [large, 1.25]


def test_rounding_is_half_away_from_zero() -> None:
    assert over(col("a").round(), [0.5, -0.5, 2.5, NAN]) == [1.0, -1.0, 3.0, "NaN"]
    assert over(col("a").round(-1), [25, -25, 14], pa.int32()) == [30, -30, 10]
    assert over(col("a").round(-20), [7]) == [0]


def test_floor_and_ceil_give_bigints() -> None:
    assert over(col("a").floor(), [-1.5, 2.0]) == [-2, 2]
    assert over(col("a").ceil(), [-1.5, None]) == [-1, None]


def test_logarithms_of_what_is_not_positive_are_null() -> None:
    assert over(col("a").ln(), [1.0, 0.0, -1.0, NAN]) == [0.0, None, None, "NaN"]
    assert over(col("a").sqrt(), [4.0, -1.0]) == [2.0, "NaN"]
    assert over(col("a").power(2), [3]) == [9.0]
    assert over(col("a").sign(), [-3, 0, 2]) == [-1.0, 0.0, 1.0]


def test_greatest_and_least_skip_nulls_and_put_nan_on_top() -> None:
    assert over(col("a").greatest(2.0), [1.0, None, NAN]) == [2.0, 2.0, "NaN"]
    assert over(col("a").least(2.0), [1.0, None, NAN]) == [1.0, 2.0, 2.0]


def test_negative_zero_is_zero_in_lists_and_comparisons() -> None:
    assert over(col("a").isin([0.0]), [-0.0]) == [True]
    assert over(col("a") == 0.0, [-0.0]) == [True]


def test_the_parts_of_a_timestamp_are_read_in_its_own_zone() -> None:
    noon = dt.datetime(2024, 6, 30, 23, 30, tzinfo=dt.UTC)
    paris = pa.timestamp("us", tz="Europe/Paris")
    assert over(col("a").month() * 100 + col("a").hour(), [noon], paris) == [701]
    assert over(col("a").day_of_week(), [dt.date(2024, 6, 30), dt.date(2024, 7, 1)]) == [1, 2]
    assert over(col("a").hour(), [dt.date(2024, 6, 30)]) == [0]


def test_truncation_floors_before_1970_too() -> None:
    eve = dt.datetime(1969, 12, 31, 23, 59)
    assert over(col("a").date_trunc("day"), [eve]) == [dt.datetime(1969, 12, 31)]
    assert over(f.date_trunc("quarter", "a"), [eve]) == [dt.datetime(1969, 10, 1)]


def test_time_moves_by_written_durations_and_by_timedeltas() -> None:
    noon = dt.datetime(2024, 6, 30, 12)
    assert over(col("a").plus_time("1h 30m"), [noon, None]) == [dt.datetime(2024, 6, 30, 13, 30), None]
    assert over(col("a") - dt.timedelta(days=1), [noon]) == [dt.datetime(2024, 6, 29, 12)]
    assert over(col("a").minus_time("1d"), [dt.date(2024, 3, 1)]) == [dt.date(2024, 2, 29)]


def test_microseconds_go_there_and_back() -> None:
    noon = dt.datetime(2024, 6, 30, 12, 0, 0, 7)
    assert over(col("a").unix_micros().timestamp_micros(), [noon]) == [noon]


def test_a_case_takes_the_first_true_branch_and_null_is_not_true() -> None:
    expr = f.when(col("a") > 2, "big").when(col("a") > 1, "mid").otherwise("small")
    assert over(expr, [3, 2, 1, None]) == ["big", "mid", "small", "small"]


def test_fields_of_a_null_struct_are_null() -> None:
    assert over(col("a").field("x") + 1, [{"x": 1}, None, {"x": None}]) == [2, None, None]


def test_numpy_values_are_constants_of_their_own_type() -> None:
    assert evaluate(lit(np.int8(3)), pa.record_batch({"a": [1, 2]})).type == pa.int8()
    assert over(col("a") > np.datetime64("2024-01-01"), [dt.date(2024, 1, 2)]) == [True]


def test_comparison_of_dates_with_timestamps_is_at_midnight() -> None:
    assert over(col("a") < dt.datetime(2024, 1, 1, 0, 0, 1), [dt.date(2024, 1, 1)]) == [True]


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd", "EEE d MMM, h a", "HH:mm", "ss", "mm:ss.SSS", "'at' DDD"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_time_is_written_the_same_whether_others_share_its_day_or_not(pattern, zone):
    ticks = [-1, 0, 999_999, None, 59_999_999, 3_599_999_999, 86_399_999_999, 90_000_000_000] * 10
    stamps = pa.array(ticks, pa.int64()).view(pa.timestamp("us"))
    stamps = stamps if zone is None else stamps.cast(pa.timestamp("us", zone))
    alone = [written(stamps.slice(i, 1), fields(pattern))[0].as_py() for i in range(len(stamps))]
    assert written(stamps, fields(pattern)).to_pylist() == alone


@pytest.mark.parametrize("missing", [False, True])
def test_times_of_one_day_are_written_as_those_of_many(missing: bool) -> None:
    times = [dt.datetime(2024, 2, 29, hour) for hour in range(24)]
    other = [*times[1:], None if missing else times[0]]
    found = written(pa.array(other, pa.timestamp("us")), fields("yyyy-MM-dd")).to_pylist()
    assert found == [None if time is None else "2024-02-29" for time in other]


@pytest.mark.parametrize("value", [7, 2.5, "text", True, Decimal("1.50"), dt.datetime(2024, 1, 1)])
def test_a_constant_under_a_condition_is_null_elsewhere(value: Any) -> None:
    rows = pa.record_batch({"a": pa.array([1, None, 3, 4, 5] * 5)}).slice(3)
    wanted = [value if a is not None and a > 3 else None for a in rows["a"].to_pylist()]
    found = evaluate(when(col("a") > 3, lit(value)), rows)
    assert found.to_pylist() == wanted and found.null_count == wanted.count(None)
    found.validate(full=True)
