"""Wide values stay where they came from; what is deferred says what was there when it was named."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from caesura.events import referred
from caesura.events.columns import ColumnStore
from caesura.events.deferred import Deferred, DeferredPage, ReferredStore
from caesura.events.page import Page, concat

SCHEMA = pa.schema([("s", pa.string()), ("n", pa.int64()), ("l", pa.list_(pa.int64()))])


def batch(draw: random.Random, size: int) -> pa.RecordBatch:
    rows = [
        {
            "s": draw.choice(["a", "", None, "longer"]),
            "n": draw.choice([None, i]),
            "l": [i] * draw.randrange(3),
        }
        for i in range(size)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def test_a_referring_store_holds_what_a_copying_one_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(referred, "SPARE", 2)
    monkeypatch.setattr(referred, "WHOLE", 16)
    for seed in range(20):
        draw = random.Random(seed)
        plain, refers = ColumnStore(SCHEMA), ReferredStore(SCHEMA)
        held: list[dict[str, object]] = []
        named: list[tuple[Deferred, pa.RecordBatch]] = []
        for _ in range(12):
            more = batch(draw, draw.choice((0, 1, 5, 40)))
            some = np.flatnonzero([draw.random() < 0.7 for _ in range(more.num_rows)])
            for store in (plain, refers):
                store.append(more, some)
            held += [row for i, row in enumerate(more.to_pylist()) if i in some]
            if draw.random() < 0.5:
                keep = np.flatnonzero([draw.random() < 0.5 for _ in range(plain.size)])
                plain.compact(keep)
                refers.compact(keep)
                held = [held[i] for i in keep]
            rows = np.array([draw.randrange(plain.size) for _ in range(9)] if plain.size else [], np.int64)
            named.append((Deferred.of(refers, rows, (), SCHEMA), plain.take(rows)))
            assert refers.all().equals(plain.all()), seed
            assert plain.all().to_pylist() == held, seed
        for deferred, wanted in named:
            assert deferred.batch().equals(wanted), seed
        whole = Deferred.joined([deferred for deferred, _ in named])
        again = ReferredStore(SCHEMA)
        again.refer(whole)
        assert again.all().equals(whole.batch())
        assert whole.batch().equals(pa.concat_batches([wanted for _, wanted in named]))


def test_pages_are_cut_and_joined_without_their_columns() -> None:
    store = ReferredStore(pa.schema([("s", pa.string())]))
    store.append(pa.record_batch({"s": ["a", "b", "c"]}))
    schema = pa.schema([("s", pa.string()), ("rank", pa.int64())])

    def made(*rows: int) -> Page:
        named = Deferred.of(store, np.array(rows), (np.array(rows) + 10,), schema)
        return DeferredPage(np.array(rows), np.full(len(rows), 99), named)

    both = concat([made(2, 0), made(1)], schema)
    part = both.filter(np.array([True, False, True]))
    assert "payload" not in both.__dict__
    assert "payload" not in part.__dict__
    assert part.rows() == [(2, 99, None, ("c", 12)), (1, 99, None, ("b", 11))]
    assert both.take(np.array([2, 0])).rows() == part.rows()[::-1]
    assert both.slice(1, 5).rows() == both.rows()[1:]


def test_batches_as_they_lie_and_columns_of_stores_are_named_together() -> None:
    draw = random.Random(7)
    first, then = batch(draw, 30), batch(draw, 20)
    store = ReferredStore(SCHEMA)
    store.append(first)
    some, others = np.array([29, 3, 3]), np.array([0, 19])
    columns, schema = [2, 0], pa.schema([SCHEMA.field(2), SCHEMA.field(0)])
    parts = ((store.frozen(columns), some), (ReferredStore.over(then).frozen(columns), others))
    store.append(then)
    wanted = pa.concat_batches([first.take(pa.array(some)), then.take(pa.array(others))]).select(["l", "s"])
    assert Deferred(parts, (), schema).batch().to_pylist() == wanted.to_pylist()
    assert Deferred((), (), schema).batch().to_pylist() == []


def test_rows_with_numbers_beside_them_and_without_are_put_together() -> None:
    draw = random.Random(8)
    rows = batch(draw, 30)
    store = ReferredStore(SCHEMA)
    store.append(rows)
    schema = SCHEMA.append(pa.field("rank", pa.int64()))
    some, ranks = np.array([4, 29, 4]), np.array([1, 2, 3])
    ranked = rows.take(pa.array(some)).append_column("rank", pa.array(ranks))
    plain = ReferredStore(schema)
    plain.append(ranked)
    named = [Deferred.of(store, some, (ranks,), schema), Deferred.of(plain, np.array([2, 0]), (), schema)]
    wanted = pa.concat_batches([ranked, ranked.take(pa.array([2, 0]))])
    assert Deferred.joined(named).batch().to_pylist() == wanted.to_pylist()
