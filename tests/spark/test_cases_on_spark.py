"""Cases that were once wrong, packed into one query of Spark with a file in every epoch."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import Stream, col
from caesura.events import History, violations
from caesura.runtime.query.result import Result, run
from caesura.spark import MemorySink, start

Rows = list[tuple[Any, ...]]
LONG, TEXT = pa.int64(), pa.string()
CHANGES = {"le": LONG, "re": LONG, "new": LONG, "sign": TEXT, "k": LONG, "name": TEXT, "punct": TEXT}
READINGS = {"ts": LONG, "id": LONG, "c.d": LONG, "punct": TEXT}
FILES: dict[str, tuple[dict[str, pa.DataType], list[Rows]]] = {
    "left": (
        CHANGES,
        [
            [(0, 1, None, "+", 1, "m", None), (5, 6, None, "+", 1, "l", None)],
            [(5, 6, 20, "-", 1, "l", None), (5, 20, 5, "-", 1, "l", None)],
            [(30, 33, None, "+", 1, "n", None), (30, 33, 40, "-", 1, "n", None)],
        ],
    ),
    "right": (
        CHANGES,
        [
            [(None, None, None, None, None, None, "time < 8")],
            [(9, 10, None, "+", 1, "q", None), (11, 12, None, "+", 1, "r", None)],
            [(35, 36, None, "+", 1, "s", None)],
        ],
    ),
    "keyed": (
        READINGS,
        [
            [(1, 0, 10, None), (1, 1, 11, None), (None, None, None, "id = 0")],
            [(2, 0, 20, None), (2, 1, 21, None)],
            [(3, 2, 32, None), (3, 0, 30, None)],
        ],
    ),
    "uneven": (
        READINGS,
        [
            [(t, i, -1, None) for t, i in ((0, 1), (1, 2), (2, 2), (2, 2), (30, 3))],
            [(t, i, 5, None) for t, i in ((24, 1), (26, 2), (29, 4), (25, 5))],
            [(t, i, 5, None) for t, i in ((40, 1), (34, 2), (35, 3), (40, 2))],
            [(t, i, 5, None) for t, i in ((50, 1), (50, 2))],
        ],
    ),
    "control": (READINGS, [[], [(0, 2, 0, None)], [], []]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("cases")
    for name, (types, files) in FILES.items():
        (base / name).mkdir()
        for number, rows in enumerate(files):
            table = pa.Table.from_pylist(
                [dict(zip(types, row, strict=True)) for row in rows], pa.schema(types)
            )
            pq.write_table(table, base / name / f"{number}.parquet")
            os.utime(base / name / f"{number}.parquet", (1_700_000_000 + number,) * 2)
    return base


ASKED = """
SELECT u.id, n, best FROM (
  SELECT id, count(*) AS n, max(v) AS best FROM uneven GROUP BY id HAVING count(*) > 1
) u LEFT JOIN left l ON u.id = l.k WHERE l.k IS NULL OR n > 1
"""


MATCHED = """
SELECT * FROM uneven MATCH_RECOGNIZE (
  PARTITION BY id ORDER BY ts MEASURES MATCH_NUMBER() AS m, LAST(B.ts) AS last, COUNT(*) AS n
  PATTERN (A B+) DEFINE B AS v >= PREV(v) AND COUNT(B.*) < 3
)
"""


def ten(batch: pa.RecordBatch) -> list[int]:
    return [10] * batch.num_rows


MAD = cz.median_absolute_deviation("id")


def plans(folder: Path) -> dict[str, Stream]:
    def read(name: str, lag: int = 40, **more: Any) -> Stream:
        how = {"time": "ts", "punctuate": cz.delay(lag), **more}
        return cz.read.parquet(folder / name, name=name, **how)

    said: Any = {"time": "le", "end": "re", "new_end": "new", "kind": "sign"}
    left, right = (read(side, **said, punctuate=cz.in_data("punct")) for side in ("left", "right"))
    keyed = read("keyed", punctuate=cz.in_data("punct"))
    uneven = read("uneven").select("id", v=col("c.d"))
    filled = uneven.impute("v", ten, missing=col("v") < 0, budget=1, per="epoch", name="fill")
    control = read("control").select("id").set_duration(20)
    return {
        "join": left.join(right.select("k", other="name"), on="k"),
        "delaying": left.join(right.select("k", other="name"), on="k", delays=True),
        "left join": left.join(right.select("k", other="name"), on="k", how="left"),
        "dropped key": keyed.select("c.d"),
        "changed key": keyed.select(id=col("id") + 1).group_by("id").totals(n=cz.count()),
        "pace": uneven.pace(within=5, tells="nobody"),
        "paced by": uneven.pace(by="v", within=9, tells="nobody", name="paced by"),
        "deadline": uneven.group_by("id").tumbling(5).agg(n=cz.count()).deadline(10),
        "starts": uneven.bucket("LE", 5).group_by("wid").totals(n=cz.count()),
        "feedback": uneven.group_by("id").tumbling(5).agg(n=cz.count()).feedback_from(control, on="id"),
        "impute": filled.feedback_from(control, on="id"),
        "asked": cz.sql(ASKED, uneven=uneven.forever(), left=left.forever()),
        "matched": cz.sql(MATCHED, uneven=uneven.with_columns(ts=cz.start())),
        "sampled": uneven.sample(0.6, seed=4).group_by("v").tumbling(20).agg(often=cz.mode("id"), mad=MAD),
    }


def test_what_was_wrong_once_is_right_on_spark(spark: Any, buckets: Any, folder: Path) -> None:
    buckets(2)
    streams, sink = plans(folder), MemorySink()
    reader = spark.readStream.schema("ts long, id long, `c.d` long, punct string")
    frame = reader.parquet(str(folder / "uneven"))
    framed = cz.from_spark(frame, time="ts", punctuate=cz.delay(40), name="framed").select("c.d")
    nodes = {name: stream.node for name, stream in {**streams, "framed": framed}.items()}
    start(nodes, spark, sink=sink, trigger="available", files_per_epoch=1, allow_unbounded=True).wait()
    assert len(sink.epochs) >= 4
    wanted = {name: run(stream.node) for name, stream in streams.items()}
    got = {name: History.of(sink.items(name), node.schema) for name, node in nodes.items()}
    alike = ("join", "left join", "dropped key", "changed key", "pace", "sampled", "asked", "matched")
    for name in (*alike, "delaying", "paced by", "deadline", "starts"):
        assert violations(sink.items(name)) == []
        assert got[name] == wanted[name].history, (name, got[name].difference(wanted[name].history))
    assert sorted(row[2][0] for row in got["framed"].rows()) == [-1] * 5 + [5] * 10
    for name in ("keyed", "pace"):
        assert told(sink.late()[name]) == told(late(wanted, name))
    whole = run(plans(folder)["feedback"].node.inputs[0]).history.bag
    missing = whole - got["feedback"].bag
    assert not got["feedback"].bag - whole
    assert all(row[0] == 2 and le < 20 for le, _, row in missing)
    struck = sink.late()["fill"].to_pylist()
    assert {(row["id"], row["v"]) for row in struck} == {(2, -1)}
    assert all(row["reason"].startswith("waited to be filled when feedback came: assumed") for row in struck)
    left = Counter(row[2] for row in got["impute"].rows())
    assert left + Counter((row["id"], row["v"]) for row in struck) >= Counter({(2, 5): 3, (1, 10): 1})


def late(wanted: dict[str, Result], name: str) -> pa.Table:
    return next(result.late[name] for result in wanted.values() if name in result.late)


def told(table: pa.Table) -> Counter[tuple[str, int]]:
    return Counter(zip(table["reason"].to_pylist(), table["LE"].to_pylist(), strict=True))
