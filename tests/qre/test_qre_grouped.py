"""Maps inside maps, and inside partitions, run on kernels, and say what the oracle says."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from depth import examples
from qre_random import ITEMS, close, fitting_word, maps_in_maps, word

from caesura import qre
from caesura.expr import col
from caesura.qre.engine import nested_map as grouped
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.language.query import Partition, Query
from caesura.qre.reference.oracle import denote

EXAMPLES = examples(4, short=2)
SYNC = col("k") == 2


def page_by_page(query: Query, batch: pa.RecordBatch, rows: int) -> list[object]:
    """The values of a run that is saved and loaded between any two pages."""
    running, got = Evaluator(query, kernel="table"), []
    assert running.explain().startswith("kernel"), running.explain()
    for at in range(0, batch.num_rows, rows):
        fresh = Evaluator(query, kernel="table")
        fresh.load(running.save())
        running = fresh
        got += running.values(batch.slice(at, rows))
    return got


def agrees(seed: int) -> int:
    """How many values a drawn query told; words are drawn until it tells one, and three at most."""
    rng = random.Random(seed)
    query = maps_in_maps(rng)
    for _ in range(3):
        fits = seed % 3 and not isinstance(query, Partition)
        batch = fitting_word(rng, query, 9) if fits else word(rng, 12)
        wanted, twin = denote(query, batch), Evaluator(query, kernel="twin").values(batch)
        for got in (twin, page_by_page(query, batch, 1 + seed % 5)):
            assert all(close(a, b) for a, b in zip(wanted, got, strict=True)), f"{query}\n{wanted}\n{got}"
        if told := sum(v is not qre.UNDEFINED and v not in ({}, 0, None) for v in wanted):
            return told
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
def test_maps_in_maps_agree_with_the_oracle_page_by_page(block: int) -> None:
    told = sum(agrees(seed) for seed in range(block * EXAMPLES, (block + 1) * EXAMPLES))
    assert told > EXAMPLES / 5


@pytest.mark.slow
def test_keys_that_get_other_rows_keep_what_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "MIN_KEYS_TO_COMPACT", 1)
    assert sum(agrees(seed) for seed in range(1000, 1000 + EXAMPLES)) > EXAMPLES / 5


@pytest.mark.slow
def test_the_kernel_of_groups_meets_its_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "run_grouped", grouped.run_grouped.twin)
    assert sum(agrees(seed) for seed in range(2000, 2000 + EXAMPLES // 2)) > 0


def words_per_page() -> Query:
    """Per key the number of different w on its page; pages end with k = 2."""
    one = qre.split(qre.match(qre.plus(~SYNC), items=ITEMS), qre.atom(SYNC, 1, items=ITEMS), op=col("_1"))
    inner = qre.apply(qre.map_collect(SYNC, "w", one, every=qre.letter(SYNC)), qre.rel().count())
    first = qre.split(qre.match(col("k") == 1, items=ITEMS), inner, op=col("_1"))
    return qre.iter_last(qre.map_collect(SYNC, "key", first, every=qre.letter(SYNC)))


def test_a_map_of_maps_counts_what_each_key_saw() -> None:
    rows = [(1, 7, 0), (0, 7, 4), (0, 7, 5), (0, 7, 4), (1, 8, 0), (0, 8, 4), (2, 0, 0), (1, 8, 0), (2, 0, 0)]
    batch = pa.RecordBatch.from_pylist([{"k": k, "key": i, "w": w} for k, i, w in rows], ITEMS.schema)
    got = [v for v in qre.evaluate(words_per_page(), batch) if v is not qre.UNDEFINED]
    assert got == [{7: 2, 8: 1}, {8: 0}]


@pytest.mark.parametrize("shape", ["anew", "goes on", "partition"])
def test_state_is_bounded_by_the_keys_that_are_open_at_once(shape: str) -> None:
    query = words_per_page()
    if shape == "goes on":
        one = qre.split(qre.match(qre.plus(~SYNC), items=ITEMS), qre.atom(SYNC, 1, items=ITEMS), op=col("_1"))
        inner = qre.apply(qre.map_collect(SYNC, "w", one, every=qre.letter(SYNC)), qre.rel().count())
        idle = qre.match(qre.star(qre.seq(qre.star(~SYNC), SYNC)), items=ITEMS)
        own = qre.split(qre.match(col("k") == 1, items=ITEMS), inner, op=col("_1"))
        query = qre.map_collect(SYNC, "key", qre.split(idle, own, op=col("_1")))
    elif shape == "partition":
        inner = qre.split(
            qre.match(qre.plus(col("k") == 0), items=ITEMS),
            qre.atom(col("k") == 1, 1, items=ITEMS),
            op=col("_1"),
        )
        maps = qre.map_collect(col("k") == 1, "w", inner, every=qre.letter(col("k") == 1))
        query = qre.partition(qre.apply(maps, qre.rel().count()), by="key")
    running, sizes = Evaluator(query, kernel="table"), []
    for page in range(16):
        keys = range(1000 * page, 1000 * page + 300)
        rows = [
            {"k": k, "key": i, "w": i % 3}
            for i in keys
            for k in ((1, 0, 0) if shape != "partition" else (0, 1))
        ]
        end = [{"k": 2, "key": 0, "w": 0}] if shape != "partition" else []
        running.run(pa.RecordBatch.from_pylist([*rows, *end], ITEMS.schema))
        assert running.keys == 0
        sizes.append(running.nbytes)
    assert max(sizes[8:]) <= max(sizes[:8])
