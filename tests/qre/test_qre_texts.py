"""Texts that a pattern reads as values are kept as long as a thread holds them, and no longer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import qre
from caesura.expr import col
from caesura.qre.compiler import generation
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.language.query import Query

OF = qre.items(pa.schema([("k", pa.int64()), ("id", pa.int64()), ("x", pa.string())]))
SYNC = col("k") == 9


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "interpreted", lambda: True)


def atom(k: int) -> Query:
    return qre.atom(col("k") == k, col("x"), items=OF)


def mapped() -> Query:
    """By key the last text of one kind, or of the other, before the synchronisation item."""
    own = qre.iter_last(qre.or_(atom(0), atom(1)))
    body = qre.split(own, qre.match(SYNC, items=OF), op=col("_0"))
    return qre.map_collect(SYNC, "id", body, every=qre.letter(SYNC))


PAIR = qre.split(atom(0), atom(1), op={"a": col("_0"), "b": col("_1")})
EARLIEST = qre.custom(None, col("acc").coalesce(col("x")))
QUERIES = {
    "plain": lambda: qre.iter_last(PAIR),
    "keyed": lambda: qre.partition(PAIR, by="id"),
    "window": lambda: qre.wnd(qre.or_(atom(0), atom(1), atom(9)), 3, EARLIEST),
    "map": lambda: qre.iter_last(mapped()),
    "map inside": lambda: qre.iter_last(qre.apply(mapped(), qre.rel().max())),
    "map inside a partition": lambda: qre.partition(qre.apply(mapped(), qre.rel().max()), by="k"),
}


def page(number: int, rows: int = 90, *, synced: bool) -> pa.RecordBatch:
    """Texts that were never seen before, in pairs; the last of every third page is open."""
    kinds = [(i + number) % 2 for i in range(rows)]
    if synced:
        kinds[-1] = 9
    ids = [(i // 2) % 5 for i in range(rows)]
    texts = [f"{number}/{i}: " + "long " * 20 for i in range(rows)]
    return pa.RecordBatch.from_arrays([pa.array(c) for c in (kinds, ids, texts)], schema=OF.schema)


@pytest.mark.thin(2)
@pytest.mark.parametrize("kernel", ["table", "generated"])
@pytest.mark.parametrize("name", QUERIES)
def test_state_stays_as_small_as_it_was_however_many_texts_come(name: str, kernel: Any) -> None:
    query = QUERIES[name]()
    running, twin = Evaluator(query, kernel=kernel), Evaluator(query, kernel="twin")
    assert running.explain().startswith("kernel")
    sizes: list[tuple[int, int]] = []
    for number in range(24):
        batch = page(number, synced="map" in name)
        assert running.values(batch) == twin.values(batch)
        sizes.append((running.nbytes, len(running.save())))
    assert max(s for _, s in sizes[12:]) <= 1.1 * max(s for _, s in sizes[:12])
    assert max(b for b, _ in sizes[12:]) <= 1.1 * max(b for b, _ in sizes[:12])
    assert sizes[-1][1] < 40_000


@pytest.mark.parametrize("name", QUERIES)
def test_memory_is_given_back_though_nothing_is_saved(name: str) -> None:
    running = Evaluator(QUERIES[name](), kernel="table")
    sizes: list[int] = []
    for number in range(60):
        running.values(page(number, synced="map" in name))
        sizes.append(running.nbytes)
    assert max(sizes[30:]) <= 1.1 * max(sizes[:30])
    assert any(b < a for a, b in pairwise(sizes))


def test_buckets_hold_no_more_than_is_open() -> None:
    rows = (row for number in range(30) for row in page(number, synced=False).to_pylist())
    schema = pa.schema([("t", pa.int64()), *OF.schema])
    timed = [{"t": t, **row} for t, row in enumerate(rows)]
    found = cz.from_rows(timed, schema, time="t", batch_size=90, punctuate=cz.delay(0))
    cluster = Cluster({"out": found.match(QUERIES["keyed"]()).node}, 2)
    (source,) = cluster.stages.sources
    held: dict[Any, bytes | None] = {}
    sizes: list[int] = []
    for raw in source.read({}):
        cluster.epoch([(source, raw)], closes=False)
        for bucket, fragment in enumerate(f for some in cluster.fragments for f in some):
            held |= {(bucket, name): data for name, data in fragment.snapshot().items()}
        sizes.append(sum(len(data) for data in held.values() if data is not None))
    assert cluster.items["out"] and max(sizes[15:]) <= 1.1 * max(sizes[:15])


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_held_survives_a_restart(name: str) -> None:
    query = QUERIES[name]()
    twin, running = Evaluator(query, kernel="twin"), Evaluator(query, kernel="table")
    for number in range(6):
        batch = page(number, rows=31, synced="map" in name and number % 3 == 2)
        wanted, got = twin.values(batch), running.values(batch)
        assert got == wanted
        saved, running = running.save(), Evaluator(query, kernel="table")
        running.load(saved)
