"""The Spark host: the only room that imports pyspark."""

from caesura.runtime.sinks.delta import DeltaSink
from caesura.runtime.sinks.memory import CallbackSink, ConsoleSink, MemorySink
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.spark.host.running import SparkQuery, run_all, run_batch, start, to_spark
from caesura.spark.host.views import create_view
from caesura.spark.session import session

__all__ = [
    "CallbackSink",
    "ConsoleSink",
    "DeltaSink",
    "MemorySink",
    "ParquetSink",
    "SparkQuery",
    "create_view",
    "run_all",
    "run_batch",
    "session",
    "start",
    "to_spark",
]
