"""What a sink holds of an output: a table with a key as it is, of changes the history that they make."""

from __future__ import annotations

import pyarrow as pa

from caesura.errors import StreamError
from caesura.io.sinks.keyed import KeyedSink
from caesura.io.sinks.protocol import Sink, TableSink
from caesura.io.sinks.rows import changed_page, history_table
from caesura.plan import Node
from caesura.runtime.sinks.by_output import SinkByOutput
from caesura.runtime.sinks.memory import MemorySink


def held_table(sink: Sink, output: str, node: Node) -> pa.Table:
    """The rows that count, as of the last epoch: a table by key, or a history with LE and RE."""
    match sink:
        case SinkByOutput():
            return held_table(sink.sinks[output], output, node)
        case KeyedSink():
            return sink.held(output)
        case TableSink():
            page = changed_page(sink.read_back(output), node.schema, node.time)
            return history_table([page], node.schema, node.time)
        case MemorySink():
            return history_table(sink.items(output), node.schema, node.time)
    raise StreamError(
        f"{type(sink).__name__} gives rows away, and has none to show.",
        remedy="Take a sink that holds them: a folder, cz.parquet, cz.delta, cz.iceberg, cz.duckdb or "
        "cz.postgres.",
    )
