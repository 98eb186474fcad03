"""Feedback on Spark, several plans in one query: law 6, the order of files, slow work, late rows."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from feedback_laws import covers

import caesura as cz
from caesura import Stream, col
from caesura.events import History, Page
from caesura.spark import MemorySink, SparkQuery, start

IDS = {0: range(8), 1: (0, 1), 2: (4, 5), 3: (6, 7), 4: (2, 3)}
"""The ids of each file; the last one has what is wanted first."""


def put(folder: Path, number: int) -> None:
    """A file of ten ticks, of which every third row lacks its value."""
    begin = 0 if number == 0 else 10
    rows = [(begin + t, i, None if t % 3 == 0 else 10 * i) for t in range(10) for i in IDS[number]]
    table = pa.table({"ts": [r[0] for r in rows], "id": [r[1] for r in rows], "v": [r[2] for r in rows]})
    partial = folder.parent / f"{number}.partial"
    pq.write_table(table, partial)
    os.utime(partial, (1_700_000_000 + number,) * 2)
    partial.rename(folder / f"{number}.parquet")


def plans(folder: Path) -> dict[str, Stream]:
    def slowly(batch: pa.RecordBatch) -> list[int]:
        for _ in range(batch.num_rows):
            hashlib.sha256(bytes(2_000_000)).digest()  # some milliseconds
        return [10 * i for i in batch.column("id").to_pylist()]

    points = cz.read.parquet(folder, time="ts", punctuate=cz.delay(15), name="points")
    windows = points.group_by("id").tumbling(10).agg(n=cz.count())
    most = points.group_by("id").tumbling(10).agg(top=cz.max("v"))
    mended = points.where(col("v").is_null()).impute("v", slowly, budget="5ms", per="epoch")
    return {
        "windows": windows,
        "met": points.group_by("id").tumbling(10).agg(k=cz.count()).join(most, "id"),
        "filled": mended,
        "paced": points.where(col("v").is_not_null()).pace(mended, within=4),
    }


def go(spark: Any, folder: Path, sink: MemorySink) -> SparkQuery:
    nodes = {name: stream.node for name, stream in plans(folder).items()}
    query: SparkQuery = start(
        nodes,
        spark,
        sink=sink,
        checkpoint=folder.parent / "cp",
        trigger="available",
        files_per_epoch=1,
        feedback=True,
        allow_unbounded=True,
    )
    query.wait()
    return query


def test_several_plans_under_feedback_in_one_query(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder, 0)
    sinks = MemorySink(), MemorySink()
    query = go(spark, folder, sinks[0])
    said = {"windows": col("id") >= 6, "met": (col("id") == 0) & (cz.start() >= 10)}
    spoken = {name: query.assume(what, output=name) for name, what in said.items()}
    query.desire(col("id") == 3, output="windows")
    for number in (1, 2, 3, 4):
        put(folder, number)
    again = go(spark, folder, sinks[1])
    whole = plans(folder)

    for name in said:  # law 6
        schema = whole[name].schema
        items = [item for sink in sinks for item in sink.items(name)]
        got, wanted = History.of(items, schema).bag, whole[name].run().history.bag
        assert not got - wanted, name
        lost = list((wanted - got).elements())
        assert lost and all(covers(spoken[name].patterns, schema, lost)), name

    ids = [row[3][0] for page in sinks[1].items("paced") if isinstance(page, Page) for row in page.rows()]
    assert ids.index(3) < min(ids.index(4), ids.index(6))  # its file came last, and was read before others
    assert again.status().sources["points"].rows_first == 20

    filled = [r for sink in sinks for p in sink.items("filled") if isinstance(p, Page) for r in p.rows()]
    missing = sum(4 * len(ids) for ids in IDS.values())
    assert 0 < len(filled) < missing  # the rest waits
    assert all(v == 10 * i for *_, (i, v) in filled) and len(set(filled)) == len(filled)
    steps = again.status().steps
    assert steps["impute"].state_rows == missing - len(filled) - steps["impute"].feedback.get(
        "purged rows", 0
    )
    late = [(name, row) for sink in sinks for name, t in sink.late().items() for row in t.to_pylist()]
    assert len([row for name, row in late if name == "pace"]) == steps["pace"].extra.get("too late", 0)
    stopped = [row["reason"] for name, row in late if name.endswith(" stopped")]
    assert set(stopped) == {"more than 4 behind the furthest start: 'pace' ignores it"}
    paced = sum(len(p) for sink in sinks for p in sink.items("paced") if isinstance(p, Page))
    whole_rows = sum(10 * len(ids) for ids in IDS.values()) - missing
    assert paced + len([name for name, _ in late if name != "impute"]) == whole_rows + len(filled)

    again.withdraw(spoken["windows"].number)
    final = go(spark, folder, MemorySink())
    assert final.feedback()[0].startswith("#2 assumed")
    assert any(line.startswith("still suppressed at 'tumbling") for line in final.feedback())
