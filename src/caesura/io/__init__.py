"""Sources and sinks of the embedded engine; each source declares the punctuation it gives.

>>> from caesura.io import delay, from_rows
>>> clicks = from_rows([{"ts": 3, "page": "a"}], time="ts", punctuate=delay(5))
>>> clicks.declares
('time',)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caesura.io.changes.debezium import read_debezium
    from caesura.io.changes.read import read_delta, read_iceberg
    from caesura.io.codecs.json import json
    from caesura.io.codecs.named import avro, protobuf
    from caesura.io.codecs.registry import registry
    from caesura.io.ingress.arrival import ingestion_time
    from caesura.io.ingress.ingress import Rules, SourceIngress
    from caesura.io.ingress.policy import Policy, at_end, delay, every, heartbeat, imported, in_data
    from caesura.io.ingress.shape import Shape, Shaped
    from caesura.io.kafka.read import read_kafka, read_kafka_changes
    from caesura.io.postgres.read import read_postgres
    from caesura.io.sinks.rows import rows_table
    from caesura.io.sources.drawn import from_items
    from caesura.io.sources.protocol import Offsets, Reader, lane_ends
    from caesura.io.sources.read import Events, from_arrow, from_pandas, from_rows
    from caesura.io.sources.read_files import read_csv, read_json, read_parquet
    from caesura.io.sources.source import Source

ROOMS = {
    "caesura.io.changes.debezium": "read_debezium",
    "caesura.io.changes.read": "read_delta read_iceberg",
    "caesura.io.codecs.json": "json",
    "caesura.io.codecs.named": "avro protobuf",
    "caesura.io.codecs.registry": "registry",
    "caesura.io.ingress.arrival": "ingestion_time",
    "caesura.io.ingress.ingress": "Rules SourceIngress",
    "caesura.io.ingress.policy": "Policy at_end delay every heartbeat imported in_data",
    "caesura.io.ingress.shape": "Shape Shaped",
    "caesura.io.kafka.read": "read_kafka read_kafka_changes",
    "caesura.io.postgres.read": "read_postgres",
    "caesura.io.sinks.rows": "rows_table",
    "caesura.io.sources.drawn": "from_items",
    "caesura.io.sources.protocol": "Offsets Reader lane_ends",
    "caesura.io.sources.read": "Events from_arrow from_pandas from_rows",
    "caesura.io.sources.read_files": "read_csv read_json read_parquet",
    "caesura.io.sources.source": "Source",
}
"""Where each name lives: a process that asks one source for its bounds must not import them all."""
HOMES = {name: room for room, names in ROOMS.items() for name in names.split()}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in HOMES:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return getattr(import_module(HOMES[name]), name)


__all__ = [
    "Events",
    "Offsets",
    "Policy",
    "Reader",
    "Rules",
    "Shape",
    "Shaped",
    "Source",
    "SourceIngress",
    "at_end",
    "avro",
    "delay",
    "every",
    "from_arrow",
    "from_items",
    "from_pandas",
    "from_rows",
    "heartbeat",
    "imported",
    "in_data",
    "ingestion_time",
    "json",
    "lane_ends",
    "protobuf",
    "read_csv",
    "read_debezium",
    "read_delta",
    "read_iceberg",
    "read_json",
    "read_kafka",
    "read_kafka_changes",
    "read_parquet",
    "read_postgres",
    "registry",
    "rows_table",
]
