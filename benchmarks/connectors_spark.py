"""From topic to topic on Spark: hopping averages of JSON, beside Spark's own streaming and its connector.

Spark has no Kafka connector for 4.3: that of 4.2.0 is fetched from Maven.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import caesura as cz
from benchmarks.report import Report

MAVEN = "https://repo.maven.apache.org/maven2/org/apache"
JARS = (
    "spark/spark-sql-kafka-0-10_2.13/4.2.0/spark-sql-kafka-0-10_2.13-4.2.0.jar",
    "spark/spark-token-provider-kafka-0-10_2.13/4.0.0/spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "commons/commons-pool2/2.12.0/commons-pool2-2.12.0.jar",
    "kafka/kafka-clients/3.9.1/kafka-clients-3.9.1.jar",
)
PARTITIONS, IDS, BEGIN = 2, 100, 1_767_225_600_000_000
"""Where time begins: 2026, in microseconds; a row is a millisecond behind the one before it."""
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("speed", pa.float64())])


def report_hops(report: Report, servers: str, rows: int, pairs: int) -> None:
    """Both in one session, in turns; a run is a query that reads the topic to its end."""
    spark = cz.session(
        "caesura-bench-kafka",
        master="local[2]",
        buckets=2,
        spark_jars=",".join(fetched()),
        spark_ui_enabled="false",
    )
    topic = filled(servers, rows)
    ways: dict[str, Callable[[str, str], None]] = {
        "caesura": lambda out, folder: ours(spark, servers, topic, out, folder),
        "spark": lambda out, folder: its_own(spark, servers, topic, out, folder),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(pairs + 1):
        for name in sorted(ways, reverse=bool(turn % 2)):
            out = made(servers)
            with tempfile.TemporaryDirectory() as folder:
                began = time.perf_counter()
                ways[name](out, folder)
                seconds = time.perf_counter() - began
            assert records(servers, out) > 0, name
            if turn:
                took[name].append(seconds)
    spark.stop()
    ratios = [s / c for s, c in zip(took["spark"], took["caesura"], strict=True)]
    report.add("kafka to kafka on Spark, its own hopping average", rows / statistics.median(took["spark"]))
    mine = rows / statistics.median(took["caesura"])
    report.add("kafka to kafka on Spark, hopping(...)", mine, {"Spark's own": statistics.median(ratios)})


def fetched() -> list[str]:
    """The jars of Spark's connector, in the cache."""
    from local_kafka import cache

    folder = cache() / "spark-kafka-4.2.0"
    folder.mkdir(parents=True, exist_ok=True)
    for jar in JARS:
        file = folder / Path(jar).name
        if not file.exists():
            part = file.with_suffix(".part")
            urllib.request.urlretrieve(f"{MAVEN}/{jar}", part)
            part.rename(file)
    return [str(folder / Path(jar).name) for jar in JARS]


def made(servers: str) -> str:
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    return topic


def filled(servers: str, rows: int) -> str:
    topic = made(servers)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": rows})
    times = pa.array([BEGIN + 1_000 * n for n in range(rows)], pa.timestamp("us")).to_pylist()
    for n, ts in enumerate(times):
        value = orjson.dumps({"ts": ts, "id": n % IDS, "speed": n * 0.37 % 80})
        producer.produce(topic, value, partition=n % PARTITIONS)
        if n % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return topic


def records(servers: str, topic: str) -> int:
    """How far the topic reaches, markers of transactions counted."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench"})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, n))[1] for n in range(PARTITIONS)]
    consumer.close()
    return sum(ends)


def ours(spark: Any, servers: str, topic: str, out: str, folder: str) -> None:
    rows = cz.read.kafka(servers, topic, value=cz.json(SCHEMA), time="ts", punctuate=cz.delay("10s"))
    hops = rows.group_by("id").hopping("1m", every="10s").agg(speed=cz.avg("speed"))
    sink = cz.kafka(servers, out, key="id")
    hops.start(spark, sink=sink, checkpoint=folder, output="final", trigger="available").wait()


def its_own(spark: Any, servers: str, topic: str, out: str, folder: str) -> None:
    from pyspark.sql import functions as f

    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    read = spark.readStream.format("kafka").options(**options).load()
    row = f.from_json(f.col("value").cast("string"), "ts timestamp, id long, speed double").alias("row")
    rows = read.select(row).select("row.*").withWatermark("ts", "10 seconds")
    hops = rows.groupBy(f.window("ts", "60 seconds", "10 seconds"), "id").agg(f.avg("speed").alias("speed"))
    value = f.to_json(f.struct("window.start", "window.end", "id", "speed")).alias("value")
    records_ = hops.select(f.col("id").cast("string").alias("key"), value)
    target = {"kafka.bootstrap.servers": servers, "topic": out, "checkpointLocation": folder}
    writing = records_.writeStream.format("kafka").options(**target).outputMode("append")
    writing.trigger(availableNow=True).start().awaitTermination()
