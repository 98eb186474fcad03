"""An object store as the sink of a query on Spark: workers put parts there, and every epoch is there once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hadoop_aws
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from local_kafka import NotRunError

import caesura as cz
from caesura.errors import CaesuraError
from caesura.io.places import Place


@pytest.fixture
def spark(bucket: str) -> Iterator[Any]:
    """A session whose workers know the server; its JVM may be older than that."""
    known = {f"spark.executorEnv.{name}": os.environ[name] for name in os.environ if name.startswith("AWS_")}
    made = cz.session("caesura-store", master="local[2]", buckets=2, **known)
    yield made
    made.stop()


def put(folder: Path, number: int, times: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"ts": times, "id": [t % 3 for t in times]}), folder / f"{number}.parquet")


def test_parts_and_commits_lie_in_the_store_once_whatever_runs_again(
    spark: Any, bucket: str, tmp_path: Path
) -> None:
    commits = tmp_path / "checkpoint" / "commits"
    options: dict[str, Any] = {
        "time": "ts",
        "punctuate": cz.delay(0),
        "schema": pa.schema({"ts": "int64", "id": "int64"}),
    }
    for number in range(3):
        put(tmp_path / "in", number, [*range(10 * number, 10 * number + 10), 0])
        read = cz.read.parquet(tmp_path / "in", **options)
        stream = read.group_by("id").tumbling(5).agg(n=cz.count())
        for _ in range(2):  # the second time the last epoch runs again
            stream.start(
                spark,
                sink=f"{bucket}/out",
                checkpoint=tmp_path / "checkpoint",
                trigger="available",
                output="final",
            ).wait()
            last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
            (commits / str(last)).unlink()
            (commits / f".{last}.crc").unlink(missing_ok=True)
    out = Place.of(f"{bucket}/out")
    told = [json.loads(file.read_text()) for file in (out / "_commits").files(".json")]
    parts = Counter((part["output"], part["file"]) for commit in told for part in commit["files"])
    rows = [
        row
        for output, file in parts
        if output == "out"
        for row in pq.read_table((out / output / file).open()).to_pylist()
    ]
    assert set(parts.values()) == {1}
    assert sorted((row["LE"], row["id"], row["n"]) for row in rows) == sorted(
        (first, key, sum(t % 3 == key for t in range(first, first + 5)))
        for first in range(0, 25, 5)
        for key in range(3)
    )
    again = (
        cz.read.parquet(f"{bucket}/out/out", time="LE", end="RE", kind="kind", new_end="RE_new").run().table()
    )
    assert again.num_rows == len(rows)


def test_what_spark_itself_cannot_reach_is_named(spark: Any, bucket: str, tmp_path: Path) -> None:
    put(tmp_path / "in", 0, [1])
    read = cz.read.parquet(tmp_path / "in", time="ts")
    with pytest.raises(CaesuraError) as refused:
        read.start(spark, sink=f"{bucket}/out", checkpoint=f"{bucket}/checkpoint", trigger="available").wait()
    assert "hadoop-aws" in str(refused.value)
    Place.of(f"{bucket}/in/0.parquet").put((tmp_path / "in" / "0.parquet").read_bytes())
    there = cz.read.parquet(f"{bucket}/in", time="ts")
    with pytest.raises(CaesuraError) as refused:
        there.start(spark, sink=f"{bucket}/out", checkpoint=tmp_path / "cp", trigger="available").wait()
    assert "hadoop-aws" in str(refused.value)


def test_sparks_own_checkpoint_lies_in_the_store_too(bucket: str) -> None:
    try:
        hadoop_aws.fetched()
    except NotRunError as error:
        pytest.skip(f"not run: {error}")
    command = [sys.executable, hadoop_aws.__file__, bucket, "2"]
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {f.name for f in (Place.of(bucket) / "checkpoint" / "commits").files()} >= {"0", "1"}
    out = (
        cz.read.parquet(f"{bucket}/out/out", time="LE", end="RE", kind="kind", new_end="RE_new").run().table()
    )
    assert sorted((row["LE"], row["id"], row["n"]) for row in out.to_pylist()) == sorted(
        (first, key, sum(t % 3 == key for t in range(first, first + 5)))
        for first in range(0, 15, 5)
        for key in range(3)
    )
