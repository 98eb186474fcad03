"""A bucket of the last stage writes its share of an epoch where it is, and passes on which files it wrote.

The driver says so with the epoch, in a property that Spark gives to its tasks: what writes, and of which
outputs. So rows that leave do not go through the JVM to a second worker. Where the driver says nothing,
packets are passed on as they are.

>>> saving = SavingOrder(ParquetWriter("out", 7, ("day",)), ("speeds",))
>>> SavingOrder.of_text(saving.text()) == saving
True
>>> SavingOrder.of_text(SavingOrder(None, ()).text()).writer is None
True
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from caesura.events import Item, Page
from caesura.io.sinks.protocol import LATE as LATE_ROWS
from caesura.io.sinks.protocol import Part, PartWriter, written
from caesura.io.sinks.rows import rows_table
from caesura.plan import Node
from caesura.runtime.buckets.labels import LATE, OUT
from caesura.runtime.graph.rejected import late_tables
from caesura.runtime.packets.packet import Packet
from caesura.runtime.sinks.parquet import ParquetWriter

SAVING = "caesura.saving"
"""The property of a task."""
WRITTEN = "written"
"""The label of packets that name a file which was written."""
Tables = Mapping[str, tuple[pa.Schema, pa.DataType]]
"""The columns of outputs, and how they count time."""


@dataclass(frozen=True)
class SavingOrder:
    """How the rows of an epoch are written: by what, and those of which outputs."""

    writer: ParquetWriter | None
    """None in an epoch that was committed before: it runs for its state alone."""
    outputs: tuple[str, ...]

    def text(self) -> str:
        return json.dumps([None if self.writer is None else asdict(self.writer), self.outputs])

    @staticmethod
    def of_text(text: str) -> SavingOrder:
        writer, outputs = json.loads(text)
        if writer is not None:
            writer = ParquetWriter(writer["path"], writer["epoch"], tuple(writer["partition_by"]))
        return SavingOrder(writer, tuple(outputs))


def saving_here() -> str:
    """What the driver says to this task, as text; empty where it says nothing."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return "" if context is None else context.getLocalProperty(SAVING) or ""


@dataclass
class SinkRows:
    """What one worker has of an epoch for a sink."""

    items: dict[str, list[Item]] = field(default_factory=dict)
    """By output."""
    late: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)
    """By source."""

    def take(self, label: str, header: Mapping[str, Any], items: Iterable[Item]) -> bool:
        """Takes a packet, if it is for the sink."""
        if label == LATE:
            rows = [item.payload for item in items if isinstance(item, Page)]
            self.late.setdefault(header["source"], []).extend(rows)
        elif label.startswith(OUT):
            self.items.setdefault(label.removeprefix(OUT), []).extend(items)
        else:
            return False
        return True

    def write(self, writer: PartWriter, tables: Tables, worker: int) -> Iterator[Part]:
        """Writes the rows of these outputs, and all that are late."""
        for output, items in self.items.items():
            if output in tables:
                table = rows_table([item for item in items if isinstance(item, Page)], *tables[output])
                if table.num_rows:
                    yield from written(writer, output, worker, table)
        for source, rows in self.late.items():
            for step, table in late_tables(source, rows):
                yield from written(writer, f"{LATE_ROWS}/{step}", worker, table)


def saved(
    saving: SavingOrder, nodes: Mapping[str, Node], bucket: int, packets: Iterable[Packet]
) -> Iterator[Packet]:
    """Writes what leaves a bucket in an epoch; gives the names of files, and all other packets."""
    share = SinkRows()
    for packet in packets:
        if packet.stage != 0 or not share.take(packet.label, packet.header, packet.items):
            yield packet
    if saving.writer is None:
        return
    tables = {name: (nodes[name].schema, nodes[name].time) for name in saving.outputs}
    for number, part in enumerate(share.write(saving.writer, tables, bucket)):
        yield Packet(0, WRITTEN, bucket, str(bucket), number, vars(part))
