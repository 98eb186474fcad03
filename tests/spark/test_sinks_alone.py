"""What sinks do on the driver, without a query."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura.errors import PlanError
from caesura.events import Page
from caesura.io.places import Place
from caesura.io.sinks.protocol import LATE, EpochSink, Part
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.sinks.late_rows import LateRows
from caesura.spark import CallbackSink, ConsoleSink, DeltaSink, MemorySink, ParquetSink


def test_the_console_shows_times_as_people_read_them(capsys: pytest.CaptureFixture[str]) -> None:
    stream = cz.from_arrow(pa.table({"ts": pa.array([0], pa.timestamp("us")), "id": [1]}), time="ts")
    sink = ConsoleSink()
    sink.open({"out": stream.node})
    page = Page.of(pa.record_batch({"id": [1]}), le=[1_714_565_400_000_000], re=[1_714_566_000_000_000])
    sink._show(Epoch(3, {"out": [page]}, {}, {}, []))
    assert "2024-05-01 12:10:00  2024-05-01 12:20:00 | 1" in capsys.readouterr().out


def test_late_rows_are_forgotten_after_so_many_epochs(tmp_path: Path) -> None:
    stream = cz.from_rows([{"ts": 1, "id": 2}], time="ts")
    sink = ParquetSink(str(tmp_path), late_epochs=5)
    sink.open({"out": stream.node})
    for epoch in (0, 100, 101, 105):
        pq.write_table(pa.table({"id": [2]}), tmp_path / "_late" / f"read-epoch-{epoch:06d}-0.parquet")
    LateRows(Place.of(sink.path) / LATE).forget(105 - sink.late_epochs, sink.board.forget)
    left = sorted(file.name for file in (tmp_path / "_late").iterdir())
    assert left == ["read-epoch-000101-0.parquet", "read-epoch-000105-0.parquet"]


def test_a_sink_that_waits_for_packets_is_refused_where_it_is_written() -> None:
    with pytest.raises(
        PlanError, match=r"Printing\.write\(epoch, packets\) would never be called"
    ) as refused:

        class Printing(EpochSink):
            def write(self, epoch: int, packets: object) -> None: ...

    assert "Write take(epoch) instead" in refused.value.remedy


def test_a_method_of_another_shape_may_be_called_write() -> None:
    class Lines(MemorySink):
        def write(self, line: str) -> str:
            return line

    assert Lines().write("a") == "a"


TABLE = pa.table({"kind": ["+"], "LE": [1], "RE": [2], "RE_new": pa.nulls(1, pa.int64()), "id": [2]})


def opened(folder: Path) -> ParquetSink:
    sink = ParquetSink(str(folder))
    sink.open({"out": cz.from_rows([{"ts": 1, "id": 2}], time="ts").node})
    sink.attach("query")
    return sink


def test_what_was_written_counts_when_its_epoch_is_committed(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    part = sink.writer(0)("out", 1, TABLE)
    named = Part("out", "epoch-000000-1.parquet", 1, part.size, part.sha256)
    assert (part, sink.last_epoch()) == (named, None)
    assert sink.read_back("out").num_rows == 0
    sink.commit(0, [part])
    again = opened(tmp_path)
    assert (again.last_epoch(), again.read_back("out").column("id").to_pylist()) == (0, [2])
    assert (again.pending(0, ["out"]), again.pending(1, ["out"])) == ((), ["out"])


def test_partial_work_of_an_epoch_goes_when_it_begins_again(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.commit(0, [sink.writer(0)("out", 0, TABLE)])
    for output in ("out", "_late/clicks"):
        sink.writer(1)(output, 3, TABLE)
    opened(tmp_path).begin(1)
    assert [file.name for file in sorted(tmp_path.rglob("*.parquet"))] == ["epoch-000000-0.parquet"]


def test_the_docs_say_how_sure_each_sink_is() -> None:
    text = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    for kind in (ParquetSink, DeltaSink, MemorySink, ConsoleSink, CallbackSink):
        line = next(
            line for line in text.splitlines() if line.startswith("|") and f"`{kind.__name__}" in line
        )
        assert f"| {kind.delivery} |" in line
