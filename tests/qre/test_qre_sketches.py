"""Approximate answers keep their bound on every stream; windows slide exactly."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from caesura import qre
from caesura.errors import PlanError, StreamError
from caesura.expr import col
from caesura.qre.language.sketches import EventCount, Histogram

ITEMS = qre.items(pa.schema([("v", pa.float64())]))
RNG = np.random.default_rng(5)
STREAMS = {
    "normal": RNG.normal(0, 100, 300),
    "bimodal": np.concatenate([RNG.normal(1, 0.1, 150), RNG.normal(1e6, 10, 150)]),
    "huge range": np.exp(RNG.uniform(-300, 300, 300)) * RNG.choice([-1, 1], 300),
    "all equal": np.full(60, 7.25),
    "zeros": RNG.choice([0.0, 0.0, 1.0, -1.0], 200),
    "powers": 1.01 ** np.arange(-50, 50),
}


def values(fold: qre.Fold, column: list[float | None], kernel: str = "auto") -> list[float | None]:
    query = qre.iter1(qre.atom(op=col("v"), items=ITEMS), fold)
    return qre.evaluate(query, pa.record_batch({"v": pa.array(column, pa.float64())}), kernel=kernel)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("q", [0.0, 0.5, 0.9, 1.0])
def test_a_quantile_is_within_its_bound_with_the_same_sign(name: str, q: float) -> None:
    column = STREAMS[name].tolist()
    for exact, m in zip(
        values(qre.quantile(q), column), values(qre.quantile(q, epsilon=0.01), column), strict=True
    ):
        assert exact is not None and m is not None
        assert abs(m) <= abs(exact) * (1 + 1e-12) and abs(exact) <= 1.01 * abs(m) * (1 + 1e-12)
        assert (m > 0) - (m < 0) == (exact > 0) - (exact < 0)


def test_the_twin_and_the_kernel_give_the_same_quantiles() -> None:
    column = [3.0, None, -2.0, 0.0, 1e-9, 5.5, None, 1e9]
    for epsilon in (0.01, 0.3):
        fold = qre.median(epsilon=epsilon)
        got, twin = values(fold, column), values(fold, column, "twin")
        assert all(a == pytest.approx(b, rel=1e-9) for a, b in zip(got, twin, strict=True))


def test_the_median_of_an_even_count_is_the_lower_one() -> None:
    assert values(qre.median(), [4.0, 1.0, 3.0, 2.0]) == [4.0, 1.0, 3.0, 2.0]


def test_histograms_merge_and_give_values_back() -> None:
    a, b = Histogram(0.05), Histogram(0.05)
    for v in (1.0, 2.0, 3.0):
        a, b = a.insert(v), b.insert(v * 100)
    assert a.merge(b).remove(100.0).remove(200.0).remove(300.0) == a


def test_a_negative_value_breaks_the_promise_of_none() -> None:
    with pytest.raises(StreamError, match="is negative"):
        values(qre.median(epsilon=0.1, nonnegative=True), [1.0, -1.0])
    with pytest.raises(PlanError, match="between 0 and 1"):
        qre.median(epsilon=2.0)


@pytest.mark.parametrize(("window", "epsilon"), [(100, 0.1), (1000, 0.02), (37, 0.5)])
def test_an_event_count_is_within_its_bound_and_small(window: int, epsilon: float) -> None:
    column = RNG.random(4000) * RNG.choice([0.1, 1.0], 4000)
    batch = pa.record_batch({"v": column})
    piece = qre.atom(op=col("v"), items=ITEMS)
    exact = qre.evaluate(qre.wnd_count(piece, window, col("x") > 0.09), batch)
    rough = qre.Evaluator(qre.wnd_count(piece, window, col("x") > 0.09, epsilon=epsilon))
    got = rough.values(batch)
    assert all(m <= x <= (1 + epsilon) * m for x, m in zip(exact, got, strict=True))
    counted = EventCount(window, epsilon)
    for hit in column[:500] > 0.09:
        counted = counted.insert(bool(hit))
    assert counted.count() == got[499]


@pytest.mark.thin(2)
@pytest.mark.parametrize("fold", [qre.min, qre.max, qre.sum, qre.avg, qre.count, qre.stddev])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_windows_slide_as_folding_again_would(fold: object, size: int) -> None:
    column = [None if v > 6 else float(v) for v in RNG.integers(-3, 9, 60)]
    query = qre.wnd(qre.atom(op=col("v"), items=ITEMS), size, fold())  # type: ignore[operator]
    batch = pa.record_batch({"v": pa.array(column, pa.float64())})
    inner = qre.iter1(qre.atom(op=col("v"), items=ITEMS), fold())  # type: ignore[operator]
    spans = [batch.slice(max(0, i + 1 - size), min(size, i + 1)) for i in range(len(column))]
    folded = [qre.denote(inner, span)[-1] for span in spans]
    for kernel in ("auto", "twin"):
        running = qre.Evaluator(query, kernel=kernel)  # type: ignore[arg-type]
        got = running.values(batch.slice(0, 25)) + running.values(batch.slice(25))
        for value, wanted in zip(got, folded, strict=True):
            assert value == wanted or (wanted is not None and math.isclose(value, wanted, abs_tol=1e-9))


def test_a_window_holds_a_bit_or_a_few_words_per_piece_and_no_more() -> None:
    piece = qre.atom(op=col("v"), items=ITEMS)
    running = qre.Evaluator(qre.wnd_count(piece, 10_000, col("x") > 0))
    small, large = pa.record_batch({"v": RNG.random(1000)}), pa.record_batch({"v": RNG.random(100_000)})
    running.run(small)
    before = running.nbytes
    running.run(large)
    assert running.nbytes == before


SQUARES = qre.custom(
    0, col("acc") + col("x") * col("x"), evict=col("acc") - col("x") * col("x"), finish=col("acc") + 1
)


@pytest.mark.parametrize("kernel", ["auto", "table", "twin"])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_window_of_a_fold_of_one_s_own_slides_by_taking_the_oldest_out(kernel: str, size: int) -> None:
    column = RNG.integers(-50, 50, 60).tolist()
    whole = qre.items(pa.schema([("v", pa.int64())]))
    query = qre.wnd(qre.atom(op=col("v"), items=whole), size, SQUARES)
    running = qre.Evaluator(query, kernel=kernel)  # type: ignore[arg-type]
    batch = pa.record_batch({"v": pa.array(column, pa.int64())})
    got = running.values(batch.slice(0, 25)) + running.values(batch.slice(25))
    assert got == [1 + sum(v * v for v in column[max(0, i + 1 - size) : i + 1]) for i in range(60)]
