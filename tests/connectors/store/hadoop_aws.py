"""A query on Spark whose own checkpoint lies in S3: a process of its own, whose JVM starts with more jars."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow as pa
from local_kafka import NotRunError, cache

import caesura as cz

MAVEN = "https://repo.maven.apache.org/maven2"
JARS = (
    "org/apache/hadoop/hadoop-aws/3.5.0/hadoop-aws-3.5.0.jar",
    "software/amazon/awssdk/bundle/2.35.4/bundle-2.35.4.jar",
    "software/amazon/s3/analyticsaccelerator/analyticsaccelerator-s3/1.3.1/analyticsaccelerator-s3-1.3.1.jar",
)
"""Of the Hadoop that PySpark 4.3 brings, and the SDK that its hadoop-aws asks for (650 MB)."""


def fetched() -> list[str]:
    """The jars, fetched if they are not there."""
    folder = cache() / "hadoop-aws-3.5.0"
    folder.mkdir(parents=True, exist_ok=True)
    for jar in JARS:
        file = folder / Path(jar).name
        if file.exists():
            continue
        part = file.with_suffix(".part")
        try:
            urllib.request.urlretrieve(f"{MAVEN}/{jar}", part)
        except (OSError, urllib.error.ContentTooShortError) as error:
            raise NotRunError(f"{file.name} could not be fetched: {error}") from None
        part.rename(file)
    return [str(folder / Path(jar).name) for jar in JARS]


def main(place: str, starts: int) -> None:
    """Starts the query so many times, each with a file more; all that it has lies in the store."""
    s3a = "spark.hadoop.fs.s3a"
    settings = {
        f"spark.executorEnv.{name}": os.environ[name] for name in os.environ if name.startswith("AWS_")
    }
    settings |= {f"{s3a}.endpoint": os.environ["AWS_ENDPOINT_URL"], f"{s3a}.path.style.access": "true"}
    settings |= {f"{s3a}.endpoint.region": os.environ["AWS_REGION"], "spark.jars": ",".join(fetched())}
    spark = cz.session("caesura-s3a", master="local[2]", buckets=2, **settings)
    schema = pa.schema([("ts", pa.int64()), ("id", pa.int64())])
    for number in range(starts):
        times = [*range(10 * number, 10 * number + 10), 0]
        write(f"{place}/in/{number}.parquet", pa.table({"ts": times, "id": [t % 3 for t in times]}, schema))
        read = cz.read.parquet(f"{place}/in", time="ts", punctuate=cz.delay(0), schema=schema)
        windows = read.group_by("id").tumbling(5).agg(n=cz.count())
        options = {"checkpoint": f"{place}/checkpoint", "sink": f"{place}/out", "output": "final"}
        windows.start(spark, trigger="available", **options).wait()
    spark.stop()


def write(uri: str, rows: pa.Table) -> None:
    import pyarrow.parquet as pq

    from caesura.io.places import Place

    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    Place.of(uri).put(sink.getvalue().to_pybytes())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
