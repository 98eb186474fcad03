"""A pipeline as users write it, for type checkers: ``make check`` runs mypy --strict on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import pyarrow as pa

import caesura as cz
from caesura import col
from caesura.expr import Expr
from caesura.runtime import Query


@cz.udf
def kmh(speed: float) -> float:
    return speed * 1.609344


@cz.udf(returns="bigint", timeout="5s")
def bucket(speed: float) -> int:
    return int(speed) // 10


@cz.uda(returns="double")
def spread(values: list[float]) -> float:
    return max(values) - min(values)


def speeds(readings: cz.Stream) -> cz.Stream:
    fast = readings.where(col("speed") > 50).where("segment is not null").select("segment", v=kmh("speed"))
    named = fast.with_columns(band=bucket("v"))
    return named.group_by("segment", "band").hopping("1m", every="10s").agg(v=cz.avg("v"), n=cz.count())


def main() -> None:
    readings = cz.read.parquet("readings/", time="ts", punctuate=cz.delay("2m"))
    assert_type(readings, cz.Stream)
    assert_type(col("speed") > 50, Expr)
    assert_type(kmh, Callable[..., Expr])
    joined = speeds(readings).join(readings.latest("segment"), on="segment")
    result = joined.run(output="final")
    assert_type(result.table(), pa.Table)
    with joined.query() as query:
        assert_type(query, Query)
        query.assume("segment = 3")
        query.run()
    print(joined.check().safe, joined.explain())


if __name__ == "__main__":
    main()
