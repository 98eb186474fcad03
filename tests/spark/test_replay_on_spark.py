"""A stretch of what a query on Spark has read, read again here."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura.cli.console import _watched
from caesura.cli.load import load
from caesura.errors import CaesuraError
from caesura.events import Page


def write(folder: Path, number: int) -> None:
    """A file of ten rows, behind those of the files before it."""
    folder.mkdir(exist_ok=True)
    ts = list(range(number * 10, number * 10 + 10))
    pq.write_table(pa.table({"ts": ts, "id": [t % 3 for t in ts]}), folder / f"{number}.parquet")


def test_the_last_rows_that_were_read_are_looked_into(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in", 0)
    clicks = cz.read.parquet(tmp_path / "in", time="ts", punctuate=cz.delay(5), name="clicks")
    plan = clicks.where("id > 0").group_by("id").tumbling(10).agg(n=cz.count())
    with plan.start(spark, sink="memory", checkpoint=tmp_path / "state") as query:
        query.drain()
        for number in (1, 2):
            write(tmp_path / "in", number)
            query.drain()
        stretch = query.replay(rows=15)
        whole = query.replay()
        with query.console(open_page=False) as server:
            from served_console import Client

            visitor = Client(server).follow_link()
            edge = visitor.ask("/?look=edge-0-1").body
            page = visitor.post("/debug", urlencode({"what": "compare", "rows": "ts = 25"})).body
    assert [
        t for raws in stretch.raws.values() for raw in raws for t in raw.batch.column("ts").to_pylist()
    ] == [*range(15, 30)]
    assert dict(whole.rows) == {"clicks": 30}
    assert whole.trace_back("n = 4, LE = 10").verdict.startswith("needed: 4 of 30 rows")
    assert {str(r.row) for g in whole.trace_back("n = 4, LE = 10").needed for r in g} == {
        f"row {t} of 'clicks'" for t in (10, 13, 16, 19)
    }
    assert "only without" in page
    assert "read again and run through the plan here" in edge and "<td>29</td>" in edge


FLOW = """
import caesura as cz
clicks = cz.read.parquet({folder!r}, time="ts", punctuate=cz.delay(5), name="clicks")
plan = clicks.where("id > 0").group_by("id").tumbling(10).agg(n=cz.count())
"""


def test_a_checkpoint_and_its_file_are_looked_into_from_elsewhere(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in", 0)
    (tmp_path / "flow.py").write_text(FLOW.format(folder=str(tmp_path / "in")))
    flow = f"{tmp_path}/flow.py:plan"
    with load(flow).start(spark, sink=tmp_path / "out", checkpoint=tmp_path / "state") as query:
        query.drain()
        write(tmp_path / "in", 1)
        query.drain()
        watched = _watched(str(tmp_path / "state"), flow)
    assert watched.stretch is not None and watched.rows is not None
    assert dict(watched.stretch().rows) == {"clicks": 20}
    assert watched.stretch().trace_back("n = 3, LE = 0, id = 1").verdict.startswith("needed: 3 of 20 rows")
    assert sum(len(item) for item in watched.rows(1).items if isinstance(item, Page)) == 13


def test_rows_of_a_dataframe_are_recorded_or_refused_by_name(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in", 0)
    frame = spark.readStream.schema("ts long, id long").parquet(str(tmp_path / "in"))
    plan = cz.from_spark(frame, time="ts", name="clicks").where("id > 0")
    with plan.start(spark, sink="memory", checkpoint=tmp_path / "state", record="10m") as query:
        query.drain()
        stretch = query.replay()
    assert dict(stretch.rows) == {"clicks": 10}
    assert [r.values["ts"] for group in stretch.trace_back("id = 2").needed for r in group] == [2, 5, 8]
    files = list((tmp_path / "state").rglob("*.rows"))
    assert files and {file.stat().st_mode & 0o777 for file in files} == {0o600}
    unkept = plan.start(spark, sink="memory", checkpoint=tmp_path / "other")
    with unkept, pytest.raises(CaesuraError, match="'clicks' cannot be read again"):
        unkept.replay()
