"""The Spark host: the only room that imports pyspark."""

from caesura.spark.delta import DeltaSink
from caesura.spark.running import SparkQuery, run_all, run_batch, start, to_spark
from caesura.spark.session import session
from caesura.spark.sinks import CallbackSink, ConsoleSink, MemorySink, ParquetSink

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
