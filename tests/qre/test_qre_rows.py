"""Keys find their rows by low bits, in a table when those collide; either way the answers are the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caesura import qre
from caesura.expr import col
from caesura.qre.compiler import generation
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.engine.ticks import Weaver
from caesura.qre.language.query import Query

SCHEMA = pa.schema(
    [pa.field("k", pa.int64(), False), pa.field("key", pa.int64()), pa.field("v", pa.float64())]
)
ITEMS = qre.items(SCHEMA)
TICKED = qre.items(SCHEMA, ticks=True)
EPISODE = qre.split(
    qre.atom(col("k") == 0, col("v"), items=ITEMS),
    qre.iter(qre.atom(col("k") == 1, col("v"), items=ITEMS), qre.sum()),
    qre.match(col("k") == 2, items=ITEMS),
    op=col("_0") + col("_1"),
)
SPREADS = {
    "in a row": range(40),
    "far apart": [x << 40 for x in range(40)],
    "negative": range(-20, 20),
    "one": [7],
    "mixed": [*range(20), *(1 << s for s in range(20, 60))],
}


@pytest.fixture(params=["plain Python", "machine code"], autouse=True)
def mode(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "interpreted", lambda: request.param == "plain Python")


def events(keys: Any, count: int, seed: int = 1) -> pa.RecordBatch:
    rng = random.Random(seed)
    some = list(keys)
    rows = [{"k": rng.choice([0, 1, 1, 2]), "key": rng.choice(some), "v": rng.random()} for _ in range(count)]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def same(query: Query, batch: pa.RecordBatch, pages: int = 3) -> Evaluator:
    twin, fast = (Evaluator(query, kernel=k) for k in ("twin", "generated"))
    size = -(-batch.num_rows // pages)
    for at in range(0, batch.num_rows, size):
        page = batch.slice(at, size)
        assert fast.values(page) == pytest.approx(twin.values(page), nan_ok=True)
    return fast


def per_key(again: bool) -> Query:
    return qre.partition(EPISODE, by="key", again=again)


@pytest.mark.thin(2)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("again", [True, False])
def test_partitions_agree_wherever_keys_lie(spread: str, again: bool) -> None:
    same(per_key(again), events(SPREADS[spread], 600))


def collected(of: qre.Items, sync: Any, keyed: Any, *, anew: bool) -> Query:
    own = qre.atom(keyed, col("v"), items=of)
    body = qre.split(qre.iter1(own, qre.sum()), qre.match(sync, items=of), op=col("_0"))
    if anew:
        return qre.iter_last(qre.map_collect(sync, "key", body, every=qre.letter(sync)))
    idle = qre.match(qre.star(qre.seq(qre.star(keyed), sync)), items=of)
    return qre.map_collect(sync, "key", qre.split(idle, body, op=col("_1")))


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("anew", [True, False])
def test_maps_agree_wherever_keys_lie(spread: str, anew: bool) -> None:
    query = collected(ITEMS, col("k") == 2, col("k") != 2, anew=anew)
    twin, fast = (Evaluator(query, kernel=k) for k in ("twin", "generated"))
    for seed in range(3):
        page = events(SPREADS[spread], 200, seed)
        assert fast.values(page) == twin.values(page)


@pytest.mark.thin(2)
@pytest.mark.parametrize("spread", ["in a row", "far apart"])
@pytest.mark.parametrize("anew", [True, False])
def test_ticks_beside_the_events_are_ticks_among_them(spread: str, anew: bool) -> None:
    query = collected(TICKED, qre.TICK, ~qre.TICK, anew=anew)
    apart, among = Evaluator(query, kernel="generated"), Evaluator(query, kernel="table")
    weaver = Weaver(10)
    for page in range(4):
        batch = events(SPREADS[spread], 90, page)
        le = np.sort(np.random.default_rng(page).integers(page * 100, page * 100 + 80, 90))
        ticks = weaver.due(page * 100 + 95, le)
        got, wanted = (e.timed(batch, le, ticks) for e in (apart, among))
        rows = [sorted(zip(t.tolist(), out.to_pylist(), strict=True), key=str) for t, out, _ in (got, wanted)]
        assert rows[0] == rows[1] and len(rows[0])


def test_a_saved_state_goes_on_by_low_bits_and_by_table() -> None:
    for spread in ("in a row", "far apart"):
        batch = events(SPREADS[spread], 300)
        whole, first, then = (Evaluator(per_key(True), kernel="generated") for _ in range(3))
        head = first.values(batch.slice(0, 150))
        then.load(first.save())
        assert head + then.values(batch.slice(150)) == whole.values(batch)


def test_rows_go_when_keys_close() -> None:
    def wave(keys: int) -> pa.RecordBatch:
        ids = np.arange(keys)
        kinds = np.repeat([0, 2], keys)
        return pa.record_batch({"k": kinds, "key": np.tile(ids, 2), "v": np.ones(2 * keys)}).cast(SCHEMA)

    running = Evaluator(per_key(True), kernel="generated")
    running.run(wave(20_000).slice(0, 20_000))
    most = running.nbytes
    running.run(wave(20_000).slice(20_000))
    running.run(wave(20_000))
    assert running.keys == 0 and running.nbytes < most / 10
