"""Relations and maps as values, and what is promised of approximate ones, against plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caesura import qre
from caesura.errors import PlanError
from caesura.expr import Expr, col

ITEMS = qre.items(pa.schema([("end", pa.bool_()), ("id", pa.int64()), ("v", pa.int64())]))
END = col("end")


def maps(fold: qre.Fold) -> qre.Query:
    """Per key the fold of its values, at the end."""
    own = qre.iter1(qre.atom(~END, col("v"), items=ITEMS), fold)
    return qre.map_collect(
        END, "id", qre.split(own, qre.match(END, items=ITEMS), op=col("_0")), every=qre.letter(END)
    )


def word(rng: random.Random) -> tuple[pa.RecordBatch, dict[int, list[int]]]:
    rows = [{"end": False, "id": rng.randrange(4), "v": rng.randrange(9)} for _ in range(rng.randrange(1, 9))]
    seen: dict[int, list[int]] = {}
    for row in rows:
        seen.setdefault(row["id"], []).append(row["v"])
    end = {"end": True, "id": 0, "v": 0}
    return pa.RecordBatch.from_pylist([*rows, end], ITEMS.schema), seen


def last(query: qre.Query, batch: pa.RecordBatch) -> Any:
    return qre.evaluate(query, batch)[-1]


A, B = qre.rel("_0"), qre.rel("_1")
MODELS: dict[str, tuple[Any, Any]] = {
    "count": (A.count(), lambda s: len(s)),
    "sum": (A.sum(), lambda s: sum(map(sum, s.values()))),
    "min": (A.min(), lambda s: min(map(sum, s.values()))),
    "max": (A.max(), lambda s: max(map(sum, s.values()))),
    "avg": (A.avg(), lambda s: sum(map(sum, s.values())) / len(s)),
    "filter": (A.filter(col("value") > 5).count(), lambda s: sum(sum(v) > 5 for v in s.values())),
    "map": (A.map(col("key") + col("value")).sum(), lambda s: sum(k + sum(v) for k, v in s.items())),
    "map_values": (A.map_values(col("value") * 2), lambda s: {k: 2 * sum(v) for k, v in s.items()}),
    "join": (
        A.join(B).map(col("value").field("left") * col("value").field("right")).sum(),
        lambda s: sum(sum(v) * len(v) for v in s.values()),
    ),
    "prod": (
        A.filter(col("value") > 5).prod(B).count(),
        lambda s: sum(sum(v) > 5 for v in s.values()) * len(s),
    ),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", MODELS)
def test_relations_and_maps_in_apply_and_combine(name: str) -> None:
    op, model = MODELS[name]
    for seed in range(8):
        batch, seen = word(random.Random(seed))
        both = qre.combine(maps(qre.sum()), maps(qre.count()), op=op)
        assert last(both, batch) == model(seen)
        if name not in ("join", "prod"):
            assert last(qre.apply(maps(qre.sum()), op), batch) == model(seen)


REAL = qre.items(pa.schema([("v", pa.float64())]))
SUMS: dict[str, tuple[Expr, Any]] = {
    "+": (col("_0") + col("_1"), lambda a, b: a + b),
    "min": (col("_0").least(col("_1")), min),
    "max": (col("_0").greatest(col("_1")), max),
    "avg": ((col("_0") + col("_1")) / 2.0, lambda a, b: (a + b) / 2),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_bound_travels_through_sums_extremes_and_means(name: str) -> None:
    """Theorem 9: m <= exact <= (1 + e) m of the parts gives the same of what is made of them."""
    op, exact = SUMS[name]
    rough = [
        qre.iter1(qre.atom(op=col("v"), items=REAL), qre.quantile(q, epsilon=0.05, nonnegative=True))
        for q in (0.3, 0.9)
    ]
    query = qre.combine(*rough, op=op)
    assert qre.Evaluator(query).schema.field(0).metadata[b"epsilon"] == b"0.05"
    for values in (np.random.default_rng(1).lognormal(0, 8, 201), np.full(9, 7.5), np.zeros(5)):
        got = last(query, pa.record_batch({"v": values}))
        parts = [np.sort(values)[max(int(np.ceil(q * len(values))), 1) - 1] for q in (0.3, 0.9)]
        assert got <= exact(*parts) * (1 + 1e-12) and exact(*parts) <= got * 1.05 * (1 + 1e-12)


def test_a_bound_travels_through_maps_and_ends_at_a_subtraction() -> None:
    rough = maps(qre.median(epsilon=0.1, nonnegative=True))
    for made in (qre.rel().sum(), qre.rel().min(), qre.rel().max(), qre.rel().avg()):
        schema = qre.Evaluator(qre.apply(rough, made)).schema
        assert schema.field(0).metadata[b"epsilon"] == b"0.1"
    for op in (col("_0") - 1.0, -col("_0") + col("_0")):
        one = qre.iter1(qre.atom(op=col("v"), items=REAL), qre.median(epsilon=0.1, nonnegative=True))
        with pytest.raises(PlanError, match=r"void|cancel"):
            qre.apply(one, op)


def test_a_witness_of_sixteen_items_is_shown_as_rows() -> None:
    a, b = (qre.atom(col("v") == n, n, items=REAL) for n in (1.0, 2.0))
    code = qre.or_(
        a,
        qre.split(a, qre.iter_n(b, 14, qre.sum()), op=col("_1")),
        qre.split(qre.iter_n(b, 14, qre.sum()), a, op=col("_1")),
    )
    with pytest.raises(PlanError, match="has 16 items") as told:
        qre.iter(code, qre.sum())
    rows = [line for line in str(told.value).splitlines() if line.split()[-1:] in (["1.0"], ["2.0"])]
    assert [line.split()[-1] for line in rows] == ["1.0", *["2.0"] * 14, "1.0"]
