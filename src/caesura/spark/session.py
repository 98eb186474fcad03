"""A SparkSession that works: the settings that Caesura needs, and a check of those of a user's own."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from caesura.errors import StreamError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STORE = "spark.sql.streaming.stateStore.providerClass"


def session(
    name: str = "caesura", *, master: str = "local[*]", buckets: int | None = None, **settings: Any
) -> SparkSession:
    """A local session, or one on the given master, with everything set as Caesura needs it.

    Further settings are given with underscores for dots: ``spark_driver_memory="4g"``.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    partitions = buckets or _cores(master)
    builder = (
        SparkSession.builder.appName(name)
        .master(master)
        .config(STORE, ROCKSDB)
        .config("spark.sql.shuffle.partitions", partitions)
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.python.worker.reuse", "true")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", 65536)
        .config("spark.sql.streaming.metricsEnabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    for key, value in settings.items():
        builder = builder.config(key.replace("_", "."), value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _cores(master: str) -> int:
    if master.startswith("local[") and master[6:-1].isdigit():
        return int(master[6:-1])
    return os.cpu_count() or 2


def check_session(spark: SparkSession) -> int:
    """Refuses a session that cannot run Caesura, with what to change; gives its number of buckets."""
    if not hasattr(spark, "sparkContext") or "connect" in type(spark).__module__:
        raise StreamError(
            "this is a Spark Connect session, which cannot run stateful Python on your behalf here.",
            remedy="Use a classic session: cz.session(), or SparkSession.builder.master(...).getOrCreate().",
        )
    if spark.conf.get(STORE, "") != ROCKSDB:
        raise StreamError(
            f"the session's state store is {spark.conf.get(STORE, 'not set')}.",
            remedy=f"Set it before the query starts: spark.conf.set('{STORE}', '{ROCKSDB}').",
        )
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 200)
