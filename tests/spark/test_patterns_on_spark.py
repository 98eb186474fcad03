"""Patterns whose maps or answers have to meet say on Spark, in buckets, what the embedded engine says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spark_plans as given

import caesura as cz
from caesura import col, qre
from caesura.events import violations
from caesura.runtime.query.result import run
from caesura.spark import run_all


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> cz.Stream:
    folder: Path = given.write(
        given.readings(), tmp_path_factory.mktemp("patterns") / "readings", [30, 170, 390]
    )
    read = cz.read.parquet(folder, time="ts", punctuate=cz.delay(4), name="readings")
    return read.select(
        seg=col("seg").coalesce(-1), car=col("car").coalesce("?"), mph=col("mph").coalesce(0.0)
    )


def at_ticks(schema: Any) -> qre.Query:
    """At every tick the segment with the most readings so far: maps that do not begin anew."""
    of = qre.items(schema, ticks=True)
    own, tick = qre.atom(~qre.TICK, 1, items=of), qre.atom(qre.TICK, 0, items=of)
    count = qre.split(own, qre.iter(qre.or_(own, tick), qre.sum()), op=col("_0") + col("_1"))
    late = qre.match(qre.star(qre.TICK), items=of)
    body = qre.split(late, count, qre.match(qre.TICK, items=of), op=col("_1"))
    return qre.apply(qre.map_collect(qre.TICK, "seg", body), qre.rel().best())


def piped(schema: Any) -> qre.Query:
    """The average, over all segments, of the speeds at which cars were found standing."""
    of, stands = qre.items(schema), col("mph") < 3
    moving = qre.iter(qre.atom(~stands, col("mph"), items=of), qre.max())
    first = qre.partition(
        qre.split(moving, qre.match(stands, items=of), op={"top": col("_0").coalesce(0.0)}), by="seg"
    )
    return first >> qre.iter1(qre.atom(op=col("top")), qre.avg())


def maps_of_maps(schema: Any) -> qre.Query:
    """Per segment how many cars it had when some car went very fast."""
    of, fast = qre.items(schema), col("mph") > 18
    one = qre.split(qre.match(qre.plus(~fast), items=of), qre.atom(fast, 1, items=of), op=col("_1"))
    cars = qre.apply(qre.map_collect(fast, "car", one, every=qre.letter(fast)), qre.rel().count())
    body = qre.split(qre.match(~fast, items=of), cars, op={"cars": col("_1")})
    return qre.iter_last(qre.map_collect(fast, "seg", body, every=qre.letter(fast)))


def test_what_has_to_meet_meets_on_spark(spark: Any, buckets: Any, points: cz.Stream) -> None:
    buckets(2)
    streams = {
        "ticks": points.match(at_ticks(points.schema), ticks_every=25, order_by=["mph", "car"]),
        "pipe": points.match(piped(points.schema), order_by=["mph", "car"]),
        "maps": points.match(maps_of_maps(points.schema), order_by=["mph", "car"]),
    }
    results = run_all({name: stream.node for name, stream in streams.items()}, spark)
    for name, stream in streams.items():
        wanted = run(stream.node).history
        assert len(wanted) > 3, name
        assert results[name].history == wanted, (name, results[name].history.difference(wanted))
        assert violations(results[name].items) == []
