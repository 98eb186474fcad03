"""Late rows of an epoch, as tables by source."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from caesura.runtime.graph.rejected import together


def tables_of(source: str, batches: list[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    """Batches of late rows of a source as tables; steps of one name that differ in columns apart."""
    return together(source, [pa.Table.from_batches([batch]) for batch in batches])
