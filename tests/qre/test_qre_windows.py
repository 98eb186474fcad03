"""Sliding windows inside a pattern slide on kernels, whatever they fold."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from depth import examples
from qre_random import close, fitting_word, windows_inside

from caesura import qre
from caesura.errors import PlanError
from caesura.expr import col
from caesura.qre.compiler import generation
from caesura.qre.engine.compiled import PatternMachine
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.reference.oracle import denote


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated sources run as plain Python here."""
    monkeypatch.setattr(generation, "interpreted", lambda: True)


WHOLE = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.int64(), False)])
REAL = pa.schema([("k", pa.int64()), ("v", pa.float64())])
FOLDS = {
    "sum": qre.sum,
    "count": qre.count,
    "min": qre.min,
    "max": qre.max,
    "avg": qre.avg,
    "stddev": qre.stddev,
    "linreg": qre.linreg,
}


def shapes(of: qre.Items, size: int, fold: Any) -> list[qre.Query]:
    value = {"x": col("v") * 1.0, "y": col("v") * 2.0} if fold is qre.linreg else col("v")
    one = qre.atom(col("k") == 0, value, items=of)
    end = qre.match(col("k") == 1, items=of)
    long = qre.split(one if fold is qre.linreg else qre.iter1(one, qre.sum()), end, op=col("_0"))
    slid = qre.wnd(one, size, fold())
    over = qre.split(slid, end, op=col("_0"))
    return [slid, over, qre.iter_last(over), qre.wnd(long, size, fold())]


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("schema", [WHOLE, REAL], ids=["whole", "real"])
def test_windows_of_every_fold_agree_with_the_oracle(name: str, schema: pa.Schema) -> None:
    of = qre.items(schema)
    rng = random.Random(name)
    values = [1, 2, 5, 7] if schema is WHOLE else [0.5, 2.0, -1.0, None]
    for size in (1, 2, 3):
        for query in shapes(of, size, FOLDS[name]):
            rows = [{"k": rng.choice([0, 0, 0, 1]), "v": rng.choice(values)} for _ in range(9)]
            rows[0]["k"] = 0
            batch = pa.RecordBatch.from_pylist(rows, schema)
            wanted = denote(query, batch)
            for kernel in ("table", "generated", "twin"):
                running = Evaluator(query, kernel=kernel)  # type: ignore[arg-type]
                assert kernel == "twin" or running.explain().startswith("kernel"), running.explain()
                got = running.values(batch.slice(0, 4)) + running.values(batch.slice(4))
                assert all(close(a, b) for a, b in zip(wanted, got, strict=True)), f"{query}\n{wanted}\n{got}"


@pytest.mark.parametrize("name", ["max", "stddev", "interpolated", "own"])
def test_a_window_that_is_nested_and_large_runs_on_the_kernel(name: str) -> None:
    size, of, rng = 5000, qre.items(REAL), np.random.default_rng(7)
    folds = {
        "max": qre.max(),
        "stddev": qre.stddev(),
        "interpolated": qre.interpolated_avg(),
        "own": qre.custom(0.0, col("acc") * 0.5 + col("x")),
    }
    value = {"t": col("k") * 1.0 + col("v"), "v": col("v")} if name == "interpolated" else col("v")
    slid = qre.wnd(qre.atom(col("k") == 0, value, items=of), size, folds[name])
    query = qre.split(slid, qre.match(col("k") == 1, items=of), op=col("_0"))
    count = 12_000 if name != "own" else 5_100
    values = np.sort(rng.normal(size=count)) if name == "interpolated" else rng.normal(size=count)
    batch = pa.record_batch({"k": [0] * count + [1], "v": [*values, 0.0]}, schema=REAL)
    running = Evaluator(query, kernel="table")
    assert running.explain().startswith("kernel: ")
    running.values(batch.slice(0, 7001))
    (got,) = [v for v in running.values(batch.slice(7001)) if v is not qre.UNDEFINED] or [None]
    if name == "own":
        (got,) = [v for v in qre.evaluate(query, batch, kernel="table") if v is not qre.UNDEFINED]
    last = values[-size:]
    wanted = {
        "max": last.max(),
        "stddev": last.std(),
        "interpolated": np.trapezoid(last, last) / (last[-1] - last[0]),
        "own": sum(x * 0.5 ** (size - 1 - i) for i, x in enumerate(last)),
    }
    assert got == pytest.approx(wanted[name], rel=1e-9)


@pytest.mark.parametrize("fold", ["sum", "max", "avg", "own"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_window_may_have_several_open_parses(fold: str, size: int) -> None:
    of = qre.items(WHOLE)
    one = qre.atom(col("k") == 0, col("v"), items=of)
    pair = qre.split(one, qre.atom(col("k") == 1, col("v"), items=of), op=col("_0") * 10 + col("_1"))
    own = qre.custom(0, col("acc") * 2 - col("x"))
    slid = qre.wnd(qre.or_(one, pair), size, own if fold == "own" else FOLDS[fold]())
    ended = qre.split(slid, qre.match(col("k") == 2, items=of), op=col("_0"))
    for query in (ended, qre.iter_last(ended), qre.iter1(ended, qre.sum())):
        running = Evaluator(query, kernel="table")
        assert isinstance(running.machine, PatternMachine)
        assert size == 1 or running.machine.stage.auto.parted
        rng = random.Random(size)
        rows = [{"k": 0, "v": 1}] + [{"k": rng.choice([0, 0, 1]), "v": rng.randrange(9)} for _ in range(9)]
        rows = [r for a, r in zip([{"k": 9}, *rows], rows, strict=False) if (a["k"], r["k"]) != (1, 1)]
        batch = pa.RecordBatch.from_pylist([*rows, {"k": 2, "v": 0}], WHOLE)
        wanted, got = denote(query, batch), running.values(batch)
        assert all(close(a, b) for a, b in zip(wanted, got, strict=True)), f"{query}\n{wanted}\n{got}"
        assert any(v is not qre.UNDEFINED for v in wanted)


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "fold", [qre.max, qre.sum, qre.avg, lambda: qre.custom(0.0, col("acc") * 0.5 + col("x"))]
)
@pytest.mark.parametrize("names", [("v", "f"), ("f", "v")])
def test_the_first_piece_may_be_of_another_type(fold: Any, names: tuple[str, str]) -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("f", pa.float64())])
    of = qre.items(schema)
    first, body = (qre.atom(col("k") == k, col(n), items=of) for k, n in zip((1, 0), names, strict=True))
    rows = [{"k": k, "v": v, "f": f} for k, v, f in ((1, 3, 7.5), (0, 2, 0.5), (0, 9, 1.5), (0, 1, 2.5))]
    for size in (1, 2, 3):
        slid = qre.wnd(body, size, fold(), first=first)
        query = qre.split(slid, qre.match(col("k") == 2, items=of), op=col("_0"))
        for count in range(1, 5):
            batch = pa.RecordBatch.from_pylist([*rows[:count], {"k": 2, "v": 0, "f": 0.0}], schema)
            wanted = denote(query, batch)
            for kernel in ("table", "generated", "twin"):
                assert Evaluator(query, kernel=kernel).values(batch) == wanted  # type: ignore[arg-type]


def test_a_first_piece_that_does_not_fit_is_refused() -> None:
    of = qre.items(pa.schema([("k", pa.int64()), ("s", pa.string())]))
    number, text = qre.atom(col("k") == 0, col("k"), items=of), qre.atom(col("k") == 1, col("s"), items=of)
    with pytest.raises(PlanError, match="bigint on one side and string on the other"):
        qre.wnd(number, 2, qre.max(), first=text)


@pytest.mark.parametrize("fold", [qre.max, qre.min, qre.avg, qre.median])
def test_a_piece_that_goes_on_after_its_end_counts_once(fold: Any) -> None:
    of = qre.items(WHOLE)
    one, two = (qre.atom(col("k") == k, col("v"), items=of) for k in (0, 1))
    piece = qre.or_(one, qre.split(one, two, op=col("_0") * 0.5 - col("_1")))
    query = qre.iter1(piece, fold()) if fold is qre.median else qre.wnd(piece, 2, fold())
    rows = [{"k": k, "v": v} for k, v in ((0, 9), (1, 1), (0, 2), (0, 5), (1, 3), (0, 4))]
    batch = pa.RecordBatch.from_pylist(rows, WHOLE)
    for kernel in ("table", "twin"):
        assert Evaluator(query, kernel=kernel).values(batch) == denote(query, batch)  # type: ignore[arg-type]


@pytest.mark.slow
def test_windows_in_patterns_agree_with_the_oracle() -> None:
    answered = 0
    for seed in range(examples(40)):
        rng = random.Random(seed)
        query = windows_inside(rng)
        batch = fitting_word(rng, query, 10)
        wanted, running = denote(query, batch), Evaluator(query, kernel="table")
        assert running.explain().startswith("kernel"), running.explain()
        got = running.values(batch.slice(0, 4)) + running.values(batch.slice(4))
        assert all(close(a, b) for a, b in zip(wanted, got, strict=True)), f"{query}\n{wanted}\n{got}"
        answered += sum(v is not qre.UNDEFINED for v in wanted)
    assert answered > 60
