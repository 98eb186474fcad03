"""A bucket writes what leaves it, and gives the files' names; without a query."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from caesura.events import Page
from caesura.runtime.buckets.labels import COUNTS, LATE, OUT
from caesura.runtime.packets.packet import Packet
from caesura.runtime.sinks.parquet import ParquetWriter
from caesura.spark.worker.saving import WRITTEN, SavingOrder, saved

NODES = {name: cz.from_rows([{"ts": 1, "id": 7}], time="ts").node for name in ("a", "b")}


def leaving() -> list[Packet]:
    """Two packets of an output, one of another, late rows of two stages, a report, and one that goes back."""
    pages = [Page.of(pa.record_batch({"id": [n]}), le=[n], re=[n + 1]) for n in range(3)]
    late = Page.of(pa.record_batch({"reason": ["late"], "id": [9]}), le=[0], re=[0])
    return [
        Packet(0, LATE, 0, "0:x", 0, {"source": "read"}, (late,)),
        Packet(0, OUT + "a", 0, "1", 0, {}, (pages[0], pages[1])),
        Packet(0, OUT + "b", 0, "1", 0, {}, (pages[2],)),
        Packet(0, OUT + "a", 0, "1", 1, {}, (pages[2],)),
        Packet(0, LATE, 0, "1:1", 0, {"source": "read"}, (late,)),
        Packet(0, COUNTS, 0, "1:1", 0, {"steps": {}}),
        Packet(~1, "up:x", 0, "1", 0),
    ]


def test_what_leaves_is_in_files_and_all_else_goes_on(tmp_path: Path) -> None:
    saving = SavingOrder.of_text(SavingOrder(ParquetWriter(str(tmp_path), 7), ("a",)).text())
    given = list(saved(saving, NODES, 1, leaving()))
    assert [packet.label for packet in given] == [COUNTS, "up:x", WRITTEN, WRITTEN]
    files = {packet.header["output"]: packet.header for packet in given if packet.label == WRITTEN}
    assert {name: header["rows"] for name, header in files.items()} == {"a": 3, "_late": 2}
    table = pq.read_table(tmp_path / "a" / files["a"]["file"])
    assert table["id"].to_pylist() == [0, 1, 2]
    assert pq.read_table(tmp_path / "_late" / files["_late"]["file"])["id"].to_pylist() == [9, 9]
    assert not (tmp_path / "b").exists()  # it was committed before


def test_an_epoch_that_was_committed_writes_nothing(tmp_path: Path) -> None:
    given = list(saved(SavingOrder(None, ()), NODES, 1, leaving()))
    assert [packet.label for packet in given] == [COUNTS, "up:x"]
