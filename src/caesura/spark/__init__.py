"""The Spark host: the only room that imports pyspark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from caesura.spark.session import session

if TYPE_CHECKING:
    from caesura.runtime.sinks.delta import DeltaSink
    from caesura.runtime.sinks.memory import CallbackSink, ConsoleSink, MemorySink
    from caesura.runtime.sinks.parquet import ParquetSink
    from caesura.spark.host.listening import StatusListener
    from caesura.spark.host.running import SparkQuery, run_all, run_batch, start, to_spark
    from caesura.spark.host.views import create_view

HOMES = {
    "CallbackSink": "caesura.runtime.sinks.memory",
    "ConsoleSink": "caesura.runtime.sinks.memory",
    "DeltaSink": "caesura.runtime.sinks.delta",
    "MemorySink": "caesura.runtime.sinks.memory",
    "ParquetSink": "caesura.runtime.sinks.parquet",
    "SparkQuery": "caesura.spark.host.running",
    "StatusListener": "caesura.spark.host.listening",
    "create_view": "caesura.spark.host.views",
    "run_all": "caesura.spark.host.running",
    "run_batch": "caesura.spark.host.running",
    "start": "caesura.spark.host.running",
    "to_spark": "caesura.spark.host.running",
}
"""Where each name lives: Spark's planning processes import parts of this room, and must not import all."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in HOMES:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return getattr(import_module(HOMES[name]), name)


__all__ = [
    "CallbackSink",
    "ConsoleSink",
    "DeltaSink",
    "MemorySink",
    "ParquetSink",
    "SparkQuery",
    "StatusListener",
    "create_view",
    "run_all",
    "run_batch",
    "session",
    "start",
    "to_spark",
]
