"""What an epoch gave, on its way to a sink: written before the manifest that names it, committed after.

So the manifest decides. An epoch whose manifest was not made leaves parts that nobody reads; one whose
manifest was made and whose commit was cut off is committed from the manifest when the query starts again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.io.places import Place
from caesura.io.sinks.current import net_items
from caesura.io.sinks.keyed import netted_outputs
from caesura.io.sinks.protocol import LATE, EpochSink, Sink, TableSink, refuse_behind, written
from caesura.io.sinks.rows import rows_table
from caesura.plan import Node
from caesura.runtime.buckets.aligner import Aligner, Epoch
from caesura.runtime.buckets.labels import OUT
from caesura.runtime.buckets.stage0 import note_packet
from caesura.runtime.durable.manifest import SavedEpoch
from caesura.runtime.metrics.status import Board
from caesura.runtime.packets.packet import Packet, rows_bytes, rows_packets
from caesura.runtime.sinks.late_rows import LateRows

Output = Mapping[str, list[Item]]
Late = Mapping[str, pa.Table]


class TakenOutput(EpochSink):
    """Where output goes that nobody named a sink for: it waits to be taken, once its epoch is saved."""

    delivery = "at least once"
    keeps_late = True

    def __init__(self) -> None:
        self.board = Board()
        self.items: dict[str, list[Item]] = {}
        self.late: dict[str, list[pa.RecordBatch]] = {}

    def last_epoch(self) -> int | None:
        return None

    def take(self, epoch: Epoch) -> None:
        """Puts an epoch behind what waits."""
        for output, items in epoch.items.items():
            self.items.setdefault(output, []).extend(items)
        for source, rows in epoch.late.items():
            self.late.setdefault(source, []).extend(rows)


class Delivery:
    """The way of a query's epochs to its sink."""

    def __init__(self, sink: Sink, outputs: Mapping[str, Node], checkpoint: Place) -> None:
        self._sink, self._outputs = sink, dict(outputs)
        self._folder = checkpoint / "output"
        self._late = LateRows.beside(checkpoint)
        self._aligner = Aligner(buckets=1)
        self._netted = netted_outputs(sink, outputs)

    def begin(self, saved: SavedEpoch) -> None:
        """Takes the sink for this start, gives it what it lacks, and removes partial work behind that."""
        self._sink.open(self._outputs)
        self._sink.attach(saved.query)
        self.enter(saved)
        refuse_behind(self._sink, saved.epoch, "the last manifest of the checkpoint is gone")
        self.deliver(saved)
        self._sink.begin(saved.epoch + 1)
        for file in self._folder.files(".packets"):
            if file.name != saved.output:
                file.remove()

    def enter(self, saved: SavedEpoch) -> None:
        """Says which generation the next epochs belong to, and which plan makes them."""
        if isinstance(self._sink, TableSink):
            self._sink.enter(saved.generation, saved.version)

    def write(self, saved: SavedEpoch, output: Output, late: Late) -> SavedEpoch:
        """Writes what the next epoch gave; it counts when the manifest that is given back is made."""
        late = {source: table for source, table in late.items() if table.num_rows}
        if not late and not any(output.values()):
            return replace(saved, parts=(), output="")
        made = replace(saved, epoch=saved.epoch + 1, parts=(), output="")
        if isinstance(self._sink, TableSink):
            return self._write_parts(self._sink, made, output, late)
        packets = [
            part
            for name, items in output.items()
            for part in Packet(0, OUT + name, 0, "0", 0, {}, tuple(self._net(name, items))).split()
        ]
        packets += [note_packet(table, source, "0") for source, table in late.items()]
        name = f"{made.number:08d}-{made.start}.packets"
        (self._folder / name).put(rows_bytes(packets))
        return replace(made, output=name)

    def _net(self, name: str, items: list[Item]) -> list[Item]:
        """What a sink takes of an output's items."""
        layout = self._netted.get(name)
        return items if layout is None else net_items(items, layout)

    def _write_parts(self, sink: TableSink, made: SavedEpoch, output: Output, late: Late) -> SavedEpoch:
        """Parts have the start in their names: those of another start are other files."""
        write = sink.writer(made.epoch)
        tables = {
            name: rows_table([i for i in items if isinstance(i, Page)], node.schema, node.time)
            for name, node in self._outputs.items()
            if (items := output.get(name))
        }
        tables |= {f"{LATE}/{source}": table for source, table in late.items()}
        some = {name: table for name, table in tables.items() if table.num_rows}
        parts = tuple(p for name, table in some.items() for p in written(write, name, made.start, table))
        return replace(made, parts=parts)

    def deliver(self, saved: SavedEpoch) -> None:
        """Commits the epoch of a manifest, unless the sink has it."""
        if saved.epoch < 0 or not (saved.output or saved.parts):
            return
        if not self._sink.pending(saved.epoch, list(self._outputs)):
            return
        match self._sink:
            case TableSink():
                self._sink.commit(saved.epoch, saved.parts)
            case EpochSink():
                epoch = self._aligner.epoch(saved.epoch, self._packets(saved))
                self._late.keep(self._sink, epoch)
                self._sink.take(replace(epoch, outputs=self._outputs))

    def forget(self, saved: SavedEpoch) -> None:
        """Removes what an epoch gave, once a later manifest counts."""
        if saved.output:
            (self._folder / saved.output).remove()

    def _packets(self, saved: SavedEpoch) -> list[Packet]:
        file = self._folder / saved.output
        try:
            return rows_packets(file.read_bytes())
        except FileNotFoundError:
            raise StreamError(
                f"'{file}', which the sink has not got yet, is gone.",
                remedy="Put it back and start again, or start with a new checkpoint and a new sink.",
            ) from None
        except (StreamError, OSError):
            raise StreamError(
                f"'{file}', which the sink has not got yet, is not whole.",
                remedy="Put it back as it was, or start with a new checkpoint and a new sink.",
            ) from None
