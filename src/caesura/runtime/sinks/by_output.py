"""A sink for each output of a query: one epoch, several places.

Each place commits the epoch by itself and knows its last one, so that an epoch that was cut off between two
of them is given, when it runs again, to those that lack it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from caesura.io.sinks.protocol import LATE, EpochSink, Sink, TableSink, written
from caesura.plan import Node
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.metrics.status import Board


class SinkByOutput(EpochSink):
    """Gives each output to its own sink; late rows go to the first that has tables, or to the first."""

    def __init__(self, sinks: Mapping[str, Sink]) -> None:
        self.sinks = dict(sinks)
        self.board = Board()
        self.at_home = any(sink.at_home for sink in sinks.values())  # type: ignore[misc]
        tables = [name for name, sink in sinks.items() if isinstance(sink, TableSink)]
        self._late_to = (tables or list(sinks))[0]

    @property
    def keeps_late(self) -> bool:  # type: ignore[override]
        """Whether the one that takes late rows does."""
        return self.sinks[self._late_to].keeps_late

    def reach(self) -> None:
        for sink in self.sinks.values():
            sink.reach()

    def open(self, outputs: Mapping[str, Node]) -> None:
        for name, sink in self.sinks.items():
            sink.open({name: outputs[name]})

    def attach(self, query: str) -> None:
        for sink in self.sinks.values():
            sink.attach(query)

    def last_epoch(self) -> int | None:
        """The last that all have."""
        last = [sink.last_epoch() for sink in self.sinks.values()]
        known = [epoch for epoch in last if epoch is not None]
        return min(known) if len(known) == len(last) else None

    def pending(self, epoch: int, outputs: Sequence[str]) -> Sequence[str]:
        return [name for name in outputs if self.sinks[name].pending(epoch, [name])]

    def begin(self, epoch: int) -> None:
        for name in self.pending(epoch, list(self.sinks)):
            self.sinks[name].begin(epoch)

    def take(self, epoch: Epoch) -> None:
        """Gives each sink that lacks the epoch its share of it."""
        for name in self.pending(epoch.number, list(self.sinks)):
            sink = self.sinks[name]
            late = epoch.late if name == self._late_to else {}
            share = replace(
                epoch,
                items={name: epoch.items.get(name, [])},
                late=late,
                outputs={name: epoch.outputs[name]},
            )
            if isinstance(sink, EpochSink):
                sink.take(share)
            elif isinstance(sink, TableSink):
                _put(sink, name, share)


def _put(sink: TableSink, name: str, epoch: Epoch) -> None:
    sink.begin(epoch.number)
    write = sink.writer(epoch.number)
    tables = {name: epoch.table(name)}
    tables |= {f"{LATE}/{source}": table for source, table in epoch.late_tables().items()}
    parts = [p for name, rows in tables.items() if rows.num_rows for p in written(write, name, 0, rows)]
    sink.commit(epoch.number, parts)
