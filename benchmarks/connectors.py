"""Connectors beside their bare clients: a count over a Kafka topic beside a consumer that decodes and counts.

It starts a broker, or takes the one at ``CAESURA_KAFKA``. ``--only store``: checkpoints in an object store;
``--only delta``: epochs merged into a Delta table; ``--only spark``: from topic to topic on Spark.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import orjson
import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import caesura as cz
from benchmarks.connectors_delta import report_merges
from benchmarks.connectors_spark import report_hops
from benchmarks.connectors_store import report_epochs
from benchmarks.report import Report

PARTITIONS = 4
SCHEMA = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("speed", pa.float64()), ("road", pa.string())])


def main(argv: list[str]) -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--json", action="store_true")
    options.add_argument("--rows", type=int, default=500_000)
    options.add_argument("--spark-rows", type=int, default=1_000_000)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--only", choices=["kafka", "store", "delta", "spark"])
    given = options.parse_args(argv)
    report = Report("connectors", given.json)
    folder = Path(__file__).parents[1] / "tests" / "connectors"
    sys.path[:0] = [str(folder / "broker"), str(folder / "store")]
    if given.only in (None, "store"):
        report_epochs(report, given.pairs)
    if given.only in (None, "kafka", "spark"):  # first, for its session brings jars
        report_topics(report, given)
    if given.only in (None, "delta"):
        report_merges(report, given.pairs)


def report_topics(report: Report, given: argparse.Namespace) -> None:
    """What needs a broker: from topic to topic on Spark, and a count in this process."""
    with ExitStack() as stack:
        servers = os.environ.get("CAESURA_KAFKA")
        if servers is None:
            from local_kafka import Broker

            servers = stack.enter_context(Broker()).servers
        if given.only != "kafka":
            report_hops(report, servers, given.spark_rows, given.pairs)
        if given.only == "spark":
            return
        topic = filled(servers, given.rows)
        ways: dict[str, Callable[[], int]] = {
            "bare": lambda: bare(servers, topic, given.rows),
            "caesura": lambda: counted(servers, topic),
        }
        took: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(given.pairs + 1):
            for name in sorted(ways, reverse=bool(turn % 2)):
                began = time.perf_counter()
                found = ways[name]()
                assert found == given.rows, (name, found)
                if turn:  # the first run compiles and connects
                    took[name].append(time.perf_counter() - began)
    ratios = [b / c for b, c in zip(took["bare"], took["caesura"], strict=True)]
    report.add("kafka, orjson and a count by hand", given.rows / statistics.median(took["bare"]))
    mine = given.rows / statistics.median(took["caesura"])
    report.add("kafka, json and count()", mine, {"bare consumer": statistics.median(ratios)})


def filled(servers: str, rows: int) -> str:
    """A topic with so many rows of JSON, spread over its partitions."""
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": rows})
    for n in range(rows):
        row = {"ts": n, "id": n % 1000, "speed": n * 0.37 % 80, "road": f"A{n % 17}"}
        producer.produce(topic, orjson.dumps(row), partition=n % PARTITIONS)
        if n % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return topic


def bare(servers: str, topic: str, rows: int) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bare", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
    found = 0
    while found < rows:
        for message in consumer.consume(10_000, 1):
            if message.error() is None:
                orjson.loads(message.value())
                found += 1
    consumer.close()
    return found


def counted(servers: str, topic: str) -> int:
    rows = cz.read.kafka(servers, topic, value=cz.json(SCHEMA), time="ts", until="latest")
    done = rows.tumbling(1 << 40).agg(n=cz.count()).run(output="final")
    return int(sum(done.table().column("n").to_pylist()))
