"""Late rows are kept until they are asked for: in memory, then in files, through restarts."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import caesura.io.ingress.late as late
import caesura.io.ingress.late_pages as late_pages
from caesura.errors import StreamError
from caesura.events import Page
from caesura.io import delay, from_arrow
from caesura.io.ingress.late import LateTable
from caesura.plan import Raw

IDS = pa.schema([("id", pa.int64())])


def add(table, first, count):
    ids = np.arange(first, first + count)
    table.add(Page(ids, ids + 1, pa.record_batch({"id": ids})), f"late {first}", lane=0, offsets=ids)


def ids(table):
    drained = table.drain()
    return [] if drained is None else drained.column("id").to_pylist()


def test_more_late_rows_than_memory_should_hold_are_all_kept():
    times = pa.array([1 << 40, *range(250_000)])
    source = from_arrow(pa.table({"t": times, "id": times}), time="t", punctuate=delay(0))
    ingress = source.operator()
    for raw in source.read({}):
        ingress.raw(raw)
    assert ingress.counters.extra == {"late": 250_000, "late_dropped": 0}
    assert ingress.table.rows.nbytes <= late.PAGE_BYTES
    assert ingress.drain_late().column("id").to_pylist() == list(range(250_000))
    assert ingress.drain_late() is None


steps = st.lists(st.one_of(st.integers(1, 9), st.sampled_from(["drain", "save"])), max_size=12)


limits, sizes = st.sampled_from([None, 3, 10]), st.sampled_from([0, 300, 1 << 20])


@pytest.mark.slow
@example([2, 9, "drain"], 10, 0, 1 << 20)
@example([2, 9, "save", 1, "save", "drain"], 10, 0, 1 << 20)
@given(steps, limits, sizes, st.sampled_from([60, 1 << 20]))
@settings(max_examples=150, deadline=None)
def test_rows_wait_in_memory_and_in_files_alike_and_survive_restarts(todo, limit, memory, run):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(late, "PAGE_BYTES", memory)
        patch.setattr(late_pages, "RUN_BYTES", run)
        table, at, seen, saved = LateTable(IDS, pa.int64(), limit=limit), 0, 0, ({}, {})
        for step in todo:
            if isinstance(step, int):
                add(table, at, step)
                at += step
                continue
            if step == "save":
                table, saved = restarted(table, limit, saved)
                continue
            kept = min(at - seen, at if limit is None else limit)
            assert ids(table) == list(range(at - kept, at))
            seen = at
        assert table.count == at


def restarted(table, limit, saved):
    """A table that goes on from what the other has saved so far."""
    again = LateTable(IDS, pa.int64(), limit=limit)
    for state, fresh, chunks in zip((table.rows, table.pages), (again.rows, again.pages), saved, strict=True):
        chunks |= state.snapshot()
        fresh.restore({name: data for name, data in chunks.items() if data is not None})
    again.count, again.dropped = table.count, table.dropped
    return again, saved


def test_the_files_go_with_their_table(monkeypatch):
    monkeypatch.setattr(late, "PAGE_BYTES", 0)
    table = LateTable(IDS, pa.int64())
    add(table, 0, 5)
    folder = table.pages._place()
    assert len(list(Path(folder).iterdir())) == 1
    del table
    gc.collect()
    assert not folder.exists()


def test_a_place_that_takes_no_files_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(late, "PAGE_BYTES", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StreamError, match="late rows cannot be put aside"):
        add(LateTable(IDS, pa.int64()), 0, 5)


def test_a_limit_lets_go_of_the_oldest_rows_and_counts_them():
    source = from_arrow(pa.table({"t": [9]}), time="t", punctuate=delay(0), late_limit=2)
    ingress = source.operator()
    ingress.raw(Raw(0, 0, pa.record_batch({"t": [9, 1, 2, 3]})))
    assert ingress.counters.extra == {"late": 3, "late_dropped": 1}
    assert ingress.drain_late().column("offset").to_pylist() == [2, 3]
