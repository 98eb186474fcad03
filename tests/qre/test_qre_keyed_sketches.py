"""Sketches per key of a partition run on kernels, and give what the plain-Python twin gives."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from caesura import qre
from caesura.expr import col
from caesura.punctuation import Pattern
from caesura.qre.reference.oracle import UNDEFINED

SCHEMA = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("v", pa.float64())])
ITEMS = qre.items(SCHEMA)
FOLDS = {
    "median": qre.median(epsilon=0.05),
    "exact median": qre.median(),
    "quantile of few buckets": qre.quantile(0.9, epsilon=0.9),
}


def query(fold: qre.Fold, by: Any = "id", *, some: bool = False, again: bool = True) -> qre.Query:
    """The fold of each key's values; with ``some`` a key leaves its pattern at a value that is too small."""
    piece = qre.atom(col("v") > -5, op=col("v"), items=ITEMS) if some else qre.atom(op=col("v"), items=ITEMS)
    return qre.partition(qre.iter1(piece, fold), by=by, again=again)


def drawn(seed: int, count: int, *, nulls: bool = False) -> pa.RecordBatch:
    rng = random.Random(seed)
    values = [0.0, -0.0, 1.0, 1e-9, 1e12] + [rng.gauss(0, 9) for _ in range(20)]
    ids = [rng.choice([1, 1, 1, 2, 3, seed % 7 + 4]) for _ in range(count)]
    floats = [rng.choice([0.0, -0.0, float("nan"), 1.5]) for _ in range(count)]
    some = [rng.choice([None, *values]) if nulls else rng.choice(values) for _ in range(count)]
    return pa.RecordBatch.from_arrays([pa.array(ids), pa.array(floats), pa.array(some)], schema=SCHEMA)


def paged(running: qre.Evaluator, batch: pa.RecordBatch, size: int) -> list[Any]:
    return [v for lo in range(0, batch.num_rows, size) for v in running.values(batch.slice(lo, size))]


def same(got: list[Any], wanted: list[Any]) -> None:
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert (a is UNDEFINED) == (b is UNDEFINED)
        assert a is UNDEFINED or a == b or a == pytest.approx(b, rel=1e-9)


@pytest.mark.thin(2)
@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("some", [True, False])
@pytest.mark.parametrize("name", FOLDS)
def test_every_key_has_a_sketch_of_its_own_that_begins_anew_with_it(
    name: str, some: bool, again: bool
) -> None:
    made = query(FOLDS[name], some=some, again=again)
    assert "kernel per key" in qre.Evaluator(made).explain()
    for seed in range(4):
        batch = drawn(seed, 60, nulls=seed == 1 and not some)
        wanted = qre.Evaluator(made, kernel="twin").values(batch)
        for size in (1, 7, 60):
            same(paged(qre.Evaluator(made), batch, size), wanted)


@pytest.mark.parametrize("by", ["f", ["id", "f"]])
def test_keys_of_floats_and_of_several_columns(by: Any) -> None:
    batch = drawn(3, 80)
    page = qre.Evaluator(query(FOLDS["median"], by)).run(batch)[1]
    alone = paged(qre.Evaluator(query(FOLDS["median"], by)), batch, 1)
    assert page.column(page.num_columns - 1).to_pylist() == alone
    keys = [_equal(row) for row in page.select(range(page.num_columns - 1)).to_pylist()]
    for key in set(keys):
        own = [v for k, v in zip(keys, batch.column("v").to_pylist(), strict=True) if k == key]
        got = [v for k, v in zip(keys, alone, strict=True) if k == key]
        one = qre.iter1(qre.atom(op=col("v"), items=ITEMS), FOLDS["median"])
        rows = pa.table({"id": [1] * len(own), "f": [0.0] * len(own), "v": own}, schema=SCHEMA)
        same(got, qre.evaluate(one, rows.combine_chunks().to_batches()[0]))


def _equal(row: dict[str, Any]) -> str:
    """A key by which 0.0 and -0.0 are one, and so are all NaN."""
    return str([v + 0.0 for v in row.values()])


@pytest.mark.parametrize("name", FOLDS)
def test_sketches_of_keys_are_saved_and_let_go_when_their_key_is_closed(name: str) -> None:
    made, batch = query(FOLDS[name]), drawn(5, 60)
    whole = qre.Evaluator(made).values(batch)
    first = qre.Evaluator(made)
    before = first.values(batch.slice(0, 30))
    again = qre.Evaluator(made)
    again.load(first.save())
    assert again.held == first.held > 0
    same(before + again.values(batch.slice(30)), whole)
    machine: Any = again.machine
    machine.close(Pattern(id=1))
    assert 1 not in machine.memories and 2 in machine.memories
