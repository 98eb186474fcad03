"""A Spark DataFrame in, a Spark DataFrame out; the same plan without Spark for tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import caesura as cz
from caesura import col

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATA = Path(__file__).parent / "data"


def summary(readings: cz.Stream) -> cz.Stream:
    """The mean speed per segment and minute."""
    return (
        readings.where(col("mph") >= 0)
        .group_by("segment")
        .tumbling("1m")
        .agg(mph=cz.avg("mph"), readings=cz.count())
    )


def on_spark(spark: SparkSession, readings: DataFrame) -> DataFrame:
    """The same, from a DataFrame to a DataFrame with kind, LE, RE, RE_new and the payload."""
    stream = cz.from_spark(readings, time="ts", punctuate=cz.delay("1m"), name="readings")
    return summary(stream).to_spark(spark)


# Without Spark, from the same file.
speeds = summary(cz.read.csv(DATA / "readings.csv", time="ts", punctuate=cz.delay("1m"), name="readings"))


def main() -> None:
    spark = cz.session("frames", master="local[2]")
    frame = spark.read.csv(
        str(DATA / "readings.csv"), header=True, schema="ts timestamp, segment int, mph double"
    )
    on_spark(spark, frame).orderBy("LE", "segment").show(truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
