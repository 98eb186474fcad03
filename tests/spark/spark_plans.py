"""Plans that together hold every operator, over data with disorder, late rows and corrections."""

from __future__ import annotations

import os
import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from caesura import col, qre

READINGS = pa.schema([("ts", pa.int64()), ("seg", pa.int64()), ("car", pa.string()), ("mph", pa.float64())])
CHANGES = pa.schema(
    [
        ("le", pa.int64()),
        ("re", pa.int64()),
        ("new", pa.int64()),
        ("sign", pa.string()),
        ("seg", pa.int64()),
        ("load", pa.int64()),
    ]
)


def readings(count: int = 400, seed: int = 1) -> pa.Table:
    """Point events, some of them late."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        back = rng.choice([0, 0, 0, 1, 3, 9])
        car = rng.choice(["a", "b", None, "long name"])
        rows.append(
            {"ts": max(0, i - back), "seg": rng.randrange(7), "car": car, "mph": rng.choice([None, 0.1 * i])}
        )
    return pa.Table.from_pylist(rows, READINGS)


def changes(count: int = 120, seed: int = 2) -> pa.Table:
    """Interval events, a third of them corrected soon after."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        le, seg, load = i * 3, rng.randrange(7), rng.randrange(4)
        re = le + rng.choice([1, 5, 12])
        base = {"seg": seg, "load": load, "le": le}
        rows.append({**base, "re": re, "new": None, "sign": "+"})
        if rng.random() < 0.35:
            rows.append({**base, "re": re, "new": rng.choice([le, re + 4, le + 1]), "sign": "-"})
    rows = [r for r in rows if r["sign"] == "+" or r["new"] != r["re"]]
    return pa.Table.from_pylist(rows, CHANGES)


def write(table: pa.Table, folder: Path, cuts: list[int]) -> Path:
    """A table as Parquet files, cut unevenly; Spark takes files in the order of their times."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = [0, *cuts, table.num_rows]
    for number, (a, b) in enumerate(pairwise(edges)):
        file = folder / f"{number:03d}.parquet"
        pq.write_table(table.slice(a, b - a), file)
        os.utime(file, (1_700_000_000 + number,) * 2)
    return folder


def climbs(schema: pa.Schema) -> qre.Query:
    """Per segment: a slow car, any number of fast ones, a car without a name. Many segments go astray."""
    items = qre.items(schema)
    slow, fast = col("mph").coalesce(0.0) < 10, col("mph").coalesce(0.0) >= 10
    named = col("car").is_not_null()
    pattern = qre.split(
        qre.atom(slow & named, col("mph"), items=items),
        qre.iter(qre.atom(fast & named, col("mph"), items=items), qre.max()),
        qre.match(~named, items=items),
        op={"top": col("_1"), "first": col("_0")},
    )
    return qre.partition(pattern, by="seg")


def per_tick(schema: pa.Schema) -> qre.Query:
    """Per period and segment how many readings there were."""
    items = qre.items(schema, ticks=True)
    counted = qre.iter1(qre.atom(~qre.TICK, 1, items=items), qre.sum())
    body = qre.split(counted, qre.match(qre.TICK, items=items), op={"n": col("_0")})
    return qre.iter_last(qre.map_collect(qre.TICK, "seg", body, every=qre.letter(qre.TICK)))


def plans(folder: Path) -> dict[str, cz.Stream]:
    """Every operator, as a few outputs that share their sources."""
    points = cz.read.parquet(folder / "readings", time="ts", punctuate=cz.delay(4), name="readings")
    loads = cz.read.parquet(
        folder / "changes",
        time="le",
        end="re",
        new_end="new",
        kind="sign",
        punctuate=cz.delay(20),
        name="loads",
    )
    names = cz.from_arrow(
        pa.table(
            {"t": [0] * 7, "u": pa.nulls(7, pa.int64()), "seg": range(7), "road": [i % 3 for i in range(7)]}
        ),
        time="t",
        end="u",
    )
    fast = points.where(col("mph") > 5).select("seg", "car", kmh=col("mph") * 1.6)
    roads = fast.join(names, on="seg").group_by("road").tumbling(20).agg(n=cz.count(), top=cz.max("kmh"))
    lasting = points.select("seg", "car").set_duration(6)
    met = lasting.join(loads, on="seg", how="full")
    return {
        "roads": roads,
        "whole": points.tumbling(50).agg(n=cz.count(), mean=cz.avg("mph"), low=cz.min("car")),
        "met": met,
        "alone": lasting.join(loads, on="seg", how="anti").extend(2),
        "with": lasting.join(loads, on="seg", how="semi", where=None).shift(1).chop(4),
        "kinds": lasting.select("seg").distinct().difference(loads.select("seg"), mode="bag"),
        "clipped": lasting.clip(loads, on="seg").points_at_end().union(lasting.points_at_start()),
        "as of": points.select("seg", "car").join_asof(loads, on="seg", direction="nearest", tolerance=9),
        "over": points.group_by("seg").over(rows=4).agg(mean=cz.avg("mph"), before=cz.lag("car")),
        "within": points.select("seg", "car").join(loads, on="seg", within=(-4, 6)),
        "totals": loads.group_by("seg").totals(n=cz.count(), load=cz.sum("load")),
        "climbs": points.match(climbs(points.schema), order_by=["mph", "car"]),
        "ticked": points.match(per_tick(points.schema), ticks_every=25),
        "written": (
            lasting.where("car LIKE 'l%' OR seg IN (1, 2)")
            .join(loads, on=(cz.left("seg") + 1 == cz.right("seg")) & (col("load") > 0), suffixes=("", "_r"))
            .group_by(initial=cz.expr("upper(left(car, 1))"))
            .tumbling(15)
            .agg(cz.count(filter="load > 1").alias("n"), span=cz.max("seg_r") - cz.min("seg"))
        ),
        "first": loads.group_by("seg").top(2, by="load", row_number="place"),
        "fastest": points.forever().top(3, by=["mph", "car"], descending=[True, False]),
        "in windows": points.group_by("seg").session(9).top(1, by="mph"),
        "view": loads.group_by("seg").alive().agg(n=cz.count(), load=cz.sum("load"), high=cz.max("load")),
        "sums": loads.group_by("load").tumbling(15).agg(n=cz.count(), hi=cz.max("seg"), s=cz.sum("seg")),
    }


def aggregate_plans(folder: Path) -> dict[str, cz.Stream]:
    """Aggregates of texts, pairs and lists over windows, whole streams, what is alive, and rows before."""
    points = cz.read.parquet(folder / "readings", time="ts", punctuate=cz.delay(4), name="readings")
    loads = cz.read.parquet(
        folder / "changes", time="le", end="re", new_end="new", kind="sign", punctuate=cz.delay(20)
    )
    texts = {
        "best": cz.max_by("car", "mph"),
        "worst": cz.min_by(cz.functions.struct("car", "mph"), "mph", filter="mph > 1"),
        "some": cz.bool_or(col("mph") > 20),
        "tenth": cz.percentile("mph", 0.1),
        "cars": cz.string_agg("car", ", ", order="mph", descending=True),
        "about": cz.approx_count_distinct("car"),
        "all": cz.collect("car"),
        "set": cz.collect_set("car"),
        "r": cz.corr("mph", "seg"),
    }
    numbers = {
        "best": cz.max_by("load", "load"),
        "some": cz.any(col("load") == 0),
        "half": cz.percentile("load", 0.5),
        "about": cz.approx_count_distinct("load"),
        "all": cz.collect("load"),
        "set": cz.collect_set("load"),
        "r": cz.corr("load", cz.col("load") * cz.col("load")),
        "texts": cz.string_agg(col("load").cast("string"), "-", order=-col("load")),
    }
    return {
        "windows": points.group_by("seg").tumbling(20).agg(texts),
        "all": points.hopping(40, every=20).agg({**texts, "r": cz.corr("mph", "seg")}),
        "changed": loads.group_by("seg").tumbling(30).agg(numbers),
        "skewed": loads.group_by("seg")
        .hopping(30, every=10)
        .agg(n=cz.count(), s=cz.stddev("load"), m=cz.avg(col("load") * 0.1), skewed=True),
        "alive": loads.group_by("seg").alive().agg(numbers),
        "before": points.group_by("seg")
        .over(rows=4)
        .agg(c=cz.covar_samp("mph", "seg"), most=cz.max_by("car", "mph")),
    }
