"""Packets back into rows, in the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from caesura.events import Page
from caesura.io.sinks.rows import rows_table
from caesura.runtime.buckets.labels import OUT
from caesura.runtime.packets.packet import decode


def decoder(
    schema: pa.Schema, time: pa.DataType
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function over batches of packets that gives the rows of the output."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            labels, data = batch.column("label").to_pylist(), batch.column("data").to_pylist()
            for label, packet in zip(labels, data, strict=True):
                if not label.startswith(OUT):
                    continue
                pages = [item for item in decode(packet)[1] if isinstance(item, Page)]
                yield from rows_table(pages, schema, time).to_batches()

    return run
