"""Sliding windows inside a pattern slide on kernels, whatever they fold."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from qre_random import close

from caesura import qre
from caesura.expr import col
from caesura.qre import generation
from caesura.qre.evaluation import Evaluator
from caesura.qre.oracle import denote


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


def test_a_window_that_is_nested_and_large_runs_on_the_twin_and_explain_says_so() -> None:
    of = qre.items(REAL)
    slid = qre.wnd(qre.atom(col("k") == 0, col("v"), items=of), 10_000, qre.stddev())
    query = qre.split(slid, qre.match(col("k") == 1, items=of), op=col("_0"))
    assert qre.explain(query) == (
        "twin: a sliding window of 10000 by 'stddev', nested in a pattern, runs in Python only"
    )
