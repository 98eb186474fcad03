"""What sinks do on the driver, without a query."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura.events import Page
from caesura.runtime.buckets.aligner import Epoch
from caesura.spark import ConsoleSink, ParquetSink


def test_the_console_shows_times_as_people_read_them(capsys: pytest.CaptureFixture[str]) -> None:
    stream = cz.from_arrow(pa.table({"ts": pa.array([0], pa.timestamp("us")), "id": [1]}), time="ts")
    sink = ConsoleSink()
    sink.open({"out": stream.node}, 1)
    page = Page.of(pa.record_batch({"id": [1]}), le=[1_714_565_400_000_000], re=[1_714_566_000_000_000])
    sink._show(Epoch(3, {"out": [page]}, {}, {}, []))
    assert "2024-05-01 12:10:00  2024-05-01 12:20:00 | 1" in capsys.readouterr().out


def test_late_rows_are_forgotten_after_so_many_epochs(tmp_path: Path) -> None:
    stream = cz.from_rows([{"ts": 1, "id": 2}], time="ts")
    sink = ParquetSink(str(tmp_path), late_epochs=5)
    sink.open({"out": stream.node}, 1)
    for epoch in (0, 100, 101, 105):
        pq.write_table(pa.table({"id": [2]}), tmp_path / "_late" / f"read-epoch-{epoch:06d}-0.parquet")
    sink._forget_late(105 - sink.late_epochs)
    left = sorted(file.name for file in (tmp_path / "_late").iterdir())
    assert left == ["read-epoch-000101-0.parquet", "read-epoch-000105-0.parquet"]
