"""Patterns whose threads stand in very many different ways run on kernels too: states come as needed."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from qre_random import ITEMS, close, word

from caesura import qre
from caesura.expr import col, lit
from caesura.qre.engine import pattern as stage
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.language.query import Query
from caesura.qre.language.regex import star
from caesura.qre.reference.oracle import denote

SYNC = col("k") == 2


def late(read: object, places: int) -> Query:
    """The value of an item of kind 0 that lies so many places before the end."""
    skip = qre.match(star(read), items=ITEMS)
    rest = qre.iter_n(qre.atom(read, col("v"), items=ITEMS), places, qre.sum())
    return qre.split(
        skip, qre.atom(col("k") == 0, col("v"), items=ITEMS), rest, op=col("_1") * 100 + col("_2")
    )


def shaped(shape: str, places: int = 9) -> Query:
    """A query with so many states in a stream, a partition, a map, or a map inside."""
    if shape in ("stream", "partition"):
        whole = late(lit(True), places)
        return qre.partition(whole, by="key") if shape == "partition" else whole
    body = qre.split(late(~SYNC.coalesce(False), places), qre.match(SYNC, items=ITEMS), op=col("_0"))
    maps = qre.map_collect(SYNC, "key", body, every=qre.letter(SYNC))
    return maps if shape == "map" else qre.iter1(qre.apply(maps, qre.rel().sum()), qre.sum())


def agrees(shape: str, rng: random.Random) -> int:
    query = shaped(shape)
    rows = [
        {**row, "k": rng.choice([0, 1]), "key": rng.randrange(2), "v": 1 + rng.randrange(9)}
        for row in word(rng, 42).to_pylist()
    ]
    for at in (30, 31, 40):
        rows[at]["k"] = 2
    rows = rows[:15] if shape == "stream" else rows
    batch = pa.RecordBatch.from_pylist(rows, ITEMS.schema)
    running, got = Evaluator(query, kernel="table"), []
    assert "states as they are needed" in running.explain() or shape == "nested"
    for at in range(0, batch.num_rows, 4):
        fresh = Evaluator(query, kernel="table")
        fresh.load(running.save())
        running = fresh
        got += running.values(batch.slice(at, 4))
    wanted = denote(query, batch)
    assert all(close(a, b) for a, b in zip(wanted, got, strict=True)), f"{query}\n{wanted}\n{got}"
    return sum(v is not qre.UNDEFINED and bool(v) for v in wanted)


@pytest.mark.parametrize("shape", ["stream", "partition", "map", "nested"])
def test_states_are_made_as_the_stream_leads_to_them(shape: str) -> None:
    assert sum(agrees(shape, random.Random(seed)) for seed in range(3)) > 0


@pytest.mark.parametrize("shape", ["stream", "partition", "map", "nested"])
def test_states_that_no_key_is_in_are_forgotten(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MAX_KNOWN_STATES", 5)
    agrees(shape, random.Random(11))
