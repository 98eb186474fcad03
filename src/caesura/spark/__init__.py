"""The Spark host: the only room that imports pyspark."""

from caesura.spark.host.running import SparkQuery, run_all, run_batch, start, to_spark
from caesura.spark.session import session
from caesura.spark.sinks.delta import DeltaSink
from caesura.spark.sinks.memory import CallbackSink, ConsoleSink, MemorySink
from caesura.spark.sinks.parquet import ParquetSink

__all__ = [
    "CallbackSink",
    "ConsoleSink",
    "DeltaSink",
    "MemorySink",
    "ParquetSink",
    "SparkQuery",
    "run_all",
    "run_batch",
    "session",
    "start",
    "to_spark",
]
