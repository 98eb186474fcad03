"""A query that faults befall: its input chunk by chunk, its plan, source and sink, and what came of it.

As a script it is the process that the faults strike: ``fault_scenes.py FOLDER START`` runs the query of
FOLDER/scene.json until FOLDER/stop is there; START is JSON: ``{"take_over": true}``, ``{"buckets": 3}``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from quick_start import quick_start

import caesura as cz
from caesura import Stream, col
from caesura.events import History
from caesura.io.places import Place
from caesura.io.sinks.rows import changed_page
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.spark.host.checkpoint import spark_folder
from caesura.spark.host.source_log import files_between, offsets_of

SCHEMA = pa.schema([("t", pa.int64()), ("id", pa.int64()), ("v", pa.int64())])
LOCAL, SEPARATE = "local[2,4]", "local-cluster[2,1,1024]"
FAILS, EXITS, SLEEPS = "fails", "exits", "sleeps"
"""Files beside the input: the task that takes one away fails, or its worker is gone, or it stands still."""


def risky(folder: str) -> Callable[[int], int]:
    """The value as it is, unless a fault waits for a task."""

    def passed(value: int) -> int:
        for name in (FAILS, EXITS, SLEEPS):
            try:
                os.unlink(f"{folder}/{name}")  # noqa: PTH108 - pathlib would be imported for each row
            except FileNotFoundError:
                continue
            if name == EXITS:
                os._exit(9)
            if name == FAILS:
                raise RuntimeError("this task fails once")
            time.sleep(60)
        return value

    return passed


def _joined(rows: Stream) -> Stream:
    slow = rows.where(col("v") < 4).extend(6).select("id", low="v")
    return rows.where(col("v") >= 4).join(slow, on="id", how="left")


def _reached(rows: Stream) -> Stream:
    links = rows.select(a=col("id"), b=(col("id") * 3 + 1) % 5).set_duration(12).distinct()
    seed = rows.where(col("id") == 2).select(node=col("id")).set_duration(9)

    def hop(found: Stream) -> Stream:
        return found.join(links, on={"node": "a"}).select(node=col("b"))

    return cz.fixpoint(seed, hop, keep="distinct", buckets="all")


PLANS: dict[str, Callable[[Stream], Stream]] = {
    "tumbling": lambda rows: rows.group_by("id").tumbling(10).agg(n=cz.count(), v=cz.sum("v")),
    "hopping": lambda rows: rows.where(col("v") > 1).group_by("id").hopping(12, every=4).agg(v=cz.max("v")),
    "two exchanges": lambda rows: (
        rows.group_by("id").tumbling(5).agg(n=cz.count()).group_by("n").tumbling(10).agg(ids=cz.sum("id"))
    ),
    "join": _joined,
    "top": lambda rows: rows.group_by("id").tumbling(8).top(2, by=["v", "id"]),
    "loop": _reached,
}
OTHER = "another plan"
"""The windows of another size, for a change to it and back."""


@dataclass(frozen=True)
class Scene:
    """One run of a drawn query; two of them with the same seed have the same input."""

    folder: str
    seed: int
    plan: str
    output: str
    sink: str
    source: str
    chunks: int
    master: str = LOCAL
    servers: str = ""
    """The broker, where source or sink is a topic; both are called by `name`."""
    name: str = ""
    disk: str = ""
    """Where checkpoint and output lie, if not in the folder: another, or a place in a store."""

    @property
    def checkpoint(self) -> str:
        return f"{self.disk or self.folder}/cp"

    @property
    def out(self) -> str:
        return f"s3://caesura/{self.name}" if self.sink == "store" else f"{self.disk or self.folder}/out"

    # -- the query ----------------------------------------------------------------------------------------

    def stream(self, plan: str | None = None) -> Stream:
        lag = cz.delay(4, closes=False) if self.source == "topic" else cz.delay(4)
        given: dict[str, Any] = {"time": "t", "punctuate": lag, "name": "in"}
        if self.source == "topic":
            rows = cz.read.kafka(self.servers, f"{self.name}-in", value=cz.json(SCHEMA), **given)
        else:
            rows = cz.read.parquet(f"{self.folder}/in", schema=SCHEMA, **given)
        # Of the column that every plan needs: what no step needs is not computed.
        rows = rows.select("v", id=cz.udf(risky(self.folder), returns="bigint")(col("id")))
        if self.sink == "table":
            return rows.latest("id").upserts(key="id")
        if plan == OTHER:
            return rows.group_by("id").tumbling(20).agg(n=cz.count(), v=cz.sum("v"))
        return PLANS[self.plan](rows)

    def made_sink(self) -> Any:
        if self.sink == "topic":
            out = f"{self.name}-out"
            return cz.kafka(self.servers, out, punctuation=True, late=f"{self.name}-late", timeout="10s")
        return cz.parquet(self.out) if self.sink == "table" else self.out

    def start(self, spark: Any, plan: str | None = None, **options: Any) -> Any:
        return self.stream(plan).start(
            spark,
            sink=self.made_sink(),
            checkpoint=self.checkpoint,
            output=self.output,
            files_per_epoch=1 if self.source == "files" else None,
            max_buckets=3,
            allow_unbounded=True,
            **options,
        )

    # -- its input ----------------------------------------------------------------------------------------

    def rows(self, chunk: int) -> list[dict[str, int]]:
        drawn = random.Random(f"rows {self.seed} {chunk}")
        times = [12 * chunk + at - drawn.choice((0, 0, 1, 3, 9)) for at in range(12)]
        return [{"t": max(0, t), "id": drawn.randrange(5), "v": drawn.randrange(8)} for t in times]

    def feed(self, chunk: int) -> None:
        """Puts the next rows; the query has had those before."""
        if self.source == "topic":
            self._produce(chunk)
            return
        partial = Path(self.folder) / "partial"
        pq.write_table(pa.Table.from_pylist(self.rows(chunk), SCHEMA), partial)
        os.utime(partial, (1_700_000_000 + chunk,) * 2)  # Spark takes files in the order of their times
        partial.rename(Path(self.folder) / "in" / f"{chunk:03d}.parquet")

    def _produce(self, chunk: int) -> None:
        import orjson
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})
        for number, row in enumerate(self.rows(chunk)):
            producer.produce(f"{self.name}-in", orjson.dumps(row), partition=number % 2)
        producer.flush()

    def has(self, chunk: int) -> bool:
        """Whether all rows up to a chunk's have been read by epochs that are committed."""
        try:
            part = spark_folder(Place.of(self.checkpoint))
            done = max([int(f.name) for f in (part / "commits").files() if f.name.isdigit()], default=-1)
            for number, line in enumerate(offsets_of(part, done)):
                told = json.loads(line) if line.startswith("{") else {}
                if "logOffset" in told and told["logOffset"] >= 0:
                    return len(files_between(part, number, 0, told["logOffset"])) > chunk
                if "lanes" in told:
                    return bool(sum(told["lanes"].values()) >= 12 * (chunk + 1))
        except FileNotFoundError:
            pass  # a log that Spark has put elsewhere meanwhile: the next look finds it
        return False

    # -- its output ---------------------------------------------------------------------------------------

    def answer(self) -> tuple[Any, Counter[str]]:
        """What the sink holds once the query is at its end, and the late rows."""
        if self.sink == "topic":
            return self._told()
        if self.sink == "table":
            held = cz.parquet(self.out)
            held.open({"out": self.stream().node})
            return Counter(str(row) for row in held.read_back("out").to_pylist()), Counter()
        sink, node = ParquetSink(self.out), self.stream().node
        sink.open({"out": node})
        page = changed_page(sink.read_back("out"), node.schema, node.time)
        late = [self._bag(commit, "_late") for commit in self._commits()]
        return History.of([page], node.schema), sum(late, Counter())

    def epochs(self) -> list[tuple[dict[Any, int], Counter[str]]]:
        """What each epoch has changed in what the sink holds, and its late rows."""
        return [(net(self._rows(commit, "out")), self._bag(commit, "_late")) for commit in self._commits()]

    def _commits(self) -> list[dict[str, Any]]:
        files = (Place.of(self.out) / "_commits").files(".json")
        return [json.loads(file.read_text()) for file in files]

    def _rows(self, commit: dict[str, Any], output: str) -> list[dict[str, Any]]:
        files = [part["file"] for part in commit["files"] if part["output"] == output]
        tables = [pq.read_table((Place.of(self.out) / output / name).open()) for name in files]
        return [row for table in tables for row in table.to_pylist()]

    def _bag(self, commit: dict[str, Any], output: str) -> Counter[str]:
        return Counter(str(row) for row in self._rows(commit, output))

    def _told(self) -> tuple[Any, Counter[str]]:
        node, out = self.stream().node, f"{self.name}-out"
        read = cz.read.kafka_changes(self.servers, out, node.schema, time=node.time, until="latest")
        return read.run().history, self._late_records()

    def _late_records(self) -> Counter[str]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "none"})  # committed ones only
        found: Counter[str] = Counter()
        for partition in (0, 1):
            place = TopicPartition(f"{self.name}-late", partition, 0)
            _, end = consumer.get_watermark_offsets(place)
            consumer.assign([place])
            while consumer.position([place])[0].offset < end:
                record = consumer.poll(1.0)
                found.update([record.value().decode()] if record is not None else [])
        consumer.close()
        return found


def net(rows: list[dict[str, Any]]) -> dict[Any, int]:
    """What an epoch's changes come to: what it takes back of its own depends on the secret of the query."""
    held: Counter[Any] = Counter()
    for row in rows:
        kind, le, re, new, *payload = row.values()
        held[kind == "=", le, re, str(payload)] += -1 if kind == "-" else 1
        if kind == "-" and new is not None and new > le:
            held[False, le, new, str(payload)] += 1
    return {row: count for row, count in held.items() if count}


def running(scene: Scene, given: dict[str, Any]) -> None:
    """Runs the query until it is stopped, or fails."""
    if scene.master == SEPARATE:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    known = {f"spark.executorEnv.{name}": os.environ[name] for name in os.environ if name.startswith("AWS_")}
    buckets = given.pop("buckets", 2)
    settings = {**known, **quick_start(), "spark.task.maxFailures": 4, **given.pop("settings", {})}
    spark = cz.session("caesura-fault", master=scene.master, buckets=buckets, **settings)
    if given.pop("rescale", False):
        from caesura.spark.host.rescale import rescale

        rescale(spark, scene.checkpoint, buckets)
    query = scene.start(spark, **given)
    (Path(scene.folder) / "started").touch()
    while query.active:
        if (Path(scene.folder) / "stop").exists():
            query.stop()
            break
        time.sleep(0.05)
    query.wait(1)
    spark.stop()


def main() -> None:
    told = json.loads((Path(sys.argv[1]) / "scene.json").read_text())
    running(Scene(**told), json.loads(sys.argv[2]))


def saved(scene: Scene) -> Scene:
    """The scene with its folders made, and itself in them, for the process that is struck."""
    (Path(scene.folder) / "in").mkdir(parents=True)
    (Path(scene.folder) / "scene.json").write_text(json.dumps(dataclasses.asdict(scene)))
    return scene


if __name__ == "__main__":
    main()
