"""Loops with results on them, plans per group, automata per key, time-bound rows: in one query of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from caesura import Stream, col, lit
from caesura.events import History
from caesura.punctuation import Punctuation
from caesura.runtime.query.result import run
from caesura.spark import MemorySink, start

ROADS = [(1, 0, 1, 5), (1, 0, 2, 1), (1, 2, 1, 1), (2, 1, 0, 2), (2, 1, 3, 4), (3, 3, 3, 1), (4, 2, 3, 9)]
TOSSES = "UDUDDUUDUUDDUDUUDDUU"
WAITING = ("automaton", "time bound")
"""What no promise has passed comes with the end of the stream, which a folder has not."""


def read(folder: Path, name: str, files: list[list[dict[str, Any]]]) -> Stream:
    (folder / name).mkdir()
    for number, rows in enumerate(files):
        pq.write_table(pa.Table.from_pylist(rows), folder / name / f"{number}.parquet")
    return cz.read.parquet(folder / name, time="ts", punctuate=cz.delay(2), name=name)


def plans(folder: Path) -> dict[str, Stream]:
    links = [{"ts": t, "a": a, "b": b, "w": w} for t, a, b, w in ROADS]
    roads = read(folder, "roads", [links[:4], links[4:]]).set_duration(50).where(col("w") > 0)
    seed = roads.where(col("a") == 0).select(node=col("a"), dist=lit(0, "bigint")).distinct()

    def least(r: Stream) -> Stream:
        met = r.where(col("dist") < 12).join(roads, on={"node": "a"})
        made = met.select(node=col("b"), dist=col("dist") + col("w"))
        return made.group_by("node").snapshot().agg(dist=cz.min("dist"))

    def counted(r: Stream) -> Stream:
        met = r.where(col("hops") < 4).join(roads, on={"node": "a"})
        made = met.select(node=col("b"), hops=col("hops") + 1, ways=col("ways"))
        return made.group_by("node", "hops").snapshot().agg(ways=cz.sum("ways"))

    def via(r: Stream) -> Stream:
        met = r.join(roads, on={"node": "a"})
        return met.select(node=col("b"), dist=col("dist") + col("w"), last=col("node"))

    ways = seed.select("node", hops=lit(0, "bigint"), ways=lit(1, "bigint"))
    tossed = [{"ts": t, "id": t % 2, "up": int(c == "U"), "price": 100 + t} for t, c in enumerate(TOSSES)]
    tosses = read(folder, "tosses", [tossed[:9], tossed[9:]])
    up, down = col("up") == 1, col("up") == 0
    rising = cz.automaton(
        [cz.arc("S", "a", down), cz.arc("a", "b", up, n=col("n") + 1), cz.arc("b", "b", up, n=col("n") + 1)],
        registers={"n": 0},
        within=9,
        accept={"b": col("n") > 0},
    )
    return {
        "least": cz.fixpoint(seed, least),
        "counted": cz.fixpoint(ways, counted),
        "routes": cz.fixpoint(
            seed.select("node", "dist", last=col("node")), via, keep=cz.least("dist", per="node")
        ),
        "automaton": tosses.group_by("id").match(rising, carry=["price"]),
        "time bound": tosses.group_by("id").tumbling(4).agg(n=cz.count(), stamp="time_bound"),
        "per group": tosses.group_by("id").apply(lambda g: g.where(up).tumbling(4).agg(n=cz.count())),
    }


def test_loops_and_automata_say_what_one_process_says(spark: Any, buckets: Any, tmp_path: Path) -> None:
    buckets(2)
    outputs = {name: plan.node for name, plan in plans(tmp_path).items()}
    sink = MemorySink()
    start(outputs, spark, sink=sink, checkpoint=tmp_path / "cp", trigger="available").wait()
    wanted = {name: run(node).history for name, node in outputs.items()}
    assert all(len(history) > 2 for history in wanted.values())
    for name, node in outputs.items():
        items = sink.items(name)
        found = History.of(items, node.schema)
        if name not in WAITING:
            assert found == wanted[name], (name, found.difference(wanted[name]))
            continue
        bound = max(i.pattern.time_bound or 0 for i in items if isinstance(i, Punctuation))
        assert found.before(bound) == wanted[name].before(bound)
        assert len(found) > 2
