"""As if the new plan had always been there: the sources once more up to the same prefix, then corrections.

The query reads, from their beginning, exactly the rows that the old one had read. What comes out is the
history of the new plan on that prefix; the sink holds the old one; their difference is the next epoch. So
afterwards the sink's history is that of the new plan on all input. Output that says which rows are final is
refused, since those are not corrected; changes, as they are, promise nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events import History, Item, Page
from caesura.events.delta import net_page
from caesura.io.sinks.protocol import Sink, TableSink
from caesura.io.sinks.rows import changed_page
from caesura.io.sources.source import Source
from caesura.ops.deliver import Deliver
from caesura.plan import NOTHING_NOW, Node, SourceBatch
from caesura.runtime.graph.source_reader import CLOCK, SourceReader

if TYPE_CHECKING:
    from caesura.runtime.query.assembly import Assembly

CONSUMER = "standing_feedback"
"""The chunk that holds what a consumer has said."""
NEW = "Start with a new checkpoint and a new sink."


def columns_of(outputs: Mapping[str, Node]) -> dict[str, str]:
    """The columns of outputs, in words."""
    return {name: ", ".join(f"{f.name} {f.type}" for f in node.schema) for name, node in outputs.items()}


def refuse_rebuilding(
    parts: Assembly, sink: Sink, columns: Mapping[str, str], chunks: Mapping[str, bytes]
) -> None:
    """Refuses a plan whose past cannot be made again, or an output that cannot be corrected."""
    why = ""
    if parts.loops:
        why = "it has a loop"
    if parts.inputs:
        why = f"'{next(iter(parts.inputs))}' is fed by hand"
    for reader in parts.readers.values():
        if isinstance(reader.node, Source):
            why = why or _unrepeatable(reader.node)
    if CONSUMER in chunks:
        why = why or "feedback has kept rows from it, and is not repeated"
    for name, now in columns_of(parts.outputs).items():
        if columns.get(name, now) != now:
            why = why or f"its rows had the columns ({columns[name]}), and would have ({now})"
    if not isinstance(sink, TableSink):
        why = why or "its sink does not give back what it was given"
    if any(isinstance(node, Deliver) for node in parts.outputs.values()):
        why = why or "its output says which rows are final, and those are not corrected"
    if why:
        raise StreamError(f"what the query has given cannot be rebuilt: {why}.", remedy=NEW)


def _unrepeatable(source: Source) -> str:
    if source.stamped or source.heartbeat is not None:
        return f"'{source.step}' goes by a clock, whose readings are not kept"
    reason = source.reader.cannot_replay()
    return f"of '{source.step}', {reason}" if reason else ""


class ReadAgain:
    """Lets a source give, from its beginning, what was read up to a position, and then nothing."""

    def __init__(self, reader: SourceReader, position: Mapping[str, int]) -> None:
        assert isinstance(reader.node, Source)
        self._reader = reader
        self._ends = {int(lane): at for lane, at in position.items() if lane != CLOCK and at}
        reader.replay(_up_to(reader.node, self._ends))

    def check(self) -> None:
        """Refuses where it did not give all of that."""
        for lane, end in self._ends.items():
            if (got := self._reader.offsets.get(lane, 0)) != end:
                raise StreamError(
                    f"'{self._reader.node.step}' was read up to row {end}, and has {got} rows now.",
                    remedy="Put back what was read; or start with a new checkpoint and a new sink.",
                )


def _up_to(source: Source, ends: Mapping[int, int]) -> Iterator[SourceBatch]:
    if ends:
        yield from source.read_between({}, ends)
    while True:
        yield NOTHING_NOW


def corrections(sink: TableSink, output: str, node: Node, items: list[Item]) -> Page:
    """What makes the new history of an output of the old one, which the sink holds."""
    rows = sink.read_back(output)
    then = History.of([changed_page(rows, node.schema, node.time)], node.schema).page
    now = History.of(items, node.schema).page
    payload = pa.Table.from_batches([then.payload, now.payload]).combine_chunks().to_batches()
    weight = np.repeat(np.array([-1, 1]), [len(then), len(now)])
    whole = payload[0] if payload else now.payload
    return net_page(whole, np.concatenate([then.le, now.le]), np.concatenate([then.re, now.re]), weight)
