"""A Spark Connect server runs what a classic session runs, or says by name what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import Stream, col
from caesura.errors import PlanError

ROWS = [(t, t % 3, f"car {t % 5}") for t in [0, 3, 5, 4, 12, 11, 20, 2, 25, 31, 30, 44]]


def write(folder: Path, rows: list[tuple[int, int, str]], number: int) -> None:
    folder.mkdir(exist_ok=True)
    names = ("ts", "seg", "car")
    pq.write_table(
        pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), folder / f"{number}.parquet"
    )


def counted(folder: Path) -> Stream:
    rows = cz.read.parquet(folder, time="ts", punctuate=cz.delay(4), name="readings")
    long = cz.udf(lambda text: len(text) + 1, returns="bigint")
    seen = rows.observe("seen", n=cz.count(), last=cz.max("seg"))
    return seen.group_by("seg").tumbling(10).agg(n=cz.count(), size=cz.sum(long(col("car"))))


def test_a_batch_on_a_connect_server_gives_what_the_embedded_host_gives(remote: Any, tmp_path: Path) -> None:
    write(tmp_path / "in", ROWS, 0)
    stream = counted(tmp_path / "in")
    done, here = stream.run_batch(remote), stream.run()
    assert done.history == here.history
    assert {name: rows.num_rows for name, rows in done.late.items()} == {"readings": 1}


def test_a_query_on_a_connect_server_goes_on_where_it_stood(remote: Any, tmp_path: Path) -> None:
    for number, rows in enumerate((ROWS[:5], ROWS[5:])):
        write(tmp_path / "in", rows, number)
        stream = counted(tmp_path / "in")
        query = stream.start(remote, sink=tmp_path / "out", checkpoint=tmp_path / "cp", trigger="available")
        assert query.wait(120)
    wanted = stream.query(sink=tmp_path / "own", checkpoint=tmp_path / "cp-own")
    wanted.run()
    assert _rows(query.table()) == _rows(wanted.table())
    status = query.status()
    assert (status.sources["readings"].rows, status.sources["readings"].late) == (len(ROWS), 1)
    assert status.observed == wanted.status().observed == {"seen": {"n": len(ROWS) - 1, "last": 2}}
    told = query.progress()["observedMetrics"]
    assert told["caesura"] == {"rows_in": len(ROWS[5:]), "late": 1, "rows_out": 6, "promised": 40}
    assert told["seen"] == {"n": len(ROWS[5:]) - 1, "last": 2}


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_a_frame_of_a_connect_session_comes_in_and_goes_out(remote: Any, tmp_path: Path) -> None:
    frame = remote.createDataFrame(ROWS, "ts long, seg long, car string")
    stream = cz.from_spark(frame, time="ts", punctuate=cz.delay(50))
    counts = stream.group_by("seg").tumbling(10).agg(n=cz.count())
    here = cz.from_rows(
        [dict(zip(("ts", "seg", "car"), row, strict=True)) for row in ROWS], time="ts", punctuate=cz.delay(50)
    )
    wanted = here.group_by("seg").tumbling(10).agg(n=cz.count()).run()
    assert counts.run_batch(remote).history == wanted.history
    changes = counts.to_spark(remote).toArrow()
    assert changes.num_rows > 0 and {"LE", "RE", "seg", "n"} <= set(changes.column_names)


def test_a_table_in_memory_travels_to_a_connect_server(remote: Any, tmp_path: Path) -> None:
    write(tmp_path / "in", ROWS, 0)
    many = cz.table(pa.table({"seg": range(20_000), "name": [f"segment {n}" for n in range(20_000)]}))
    rows = cz.read.parquet(tmp_path / "in", time="ts", punctuate=cz.delay(4))
    joined = rows.join(many, on="seg")
    assert joined.run_batch(remote).history == joined.run().history


def test_sinks_of_this_process_and_loops_are_refused_by_name(remote: Any, tmp_path: Path) -> None:
    write(tmp_path / "in", ROWS, 0)
    stream = counted(tmp_path / "in")
    with pytest.raises(PlanError, match="MemorySink is in this process"):
        stream.start(remote, checkpoint=tmp_path / "cp")
    with pytest.raises(PlanError, match="cannot tell which epoch"):
        stream.start(remote, sink=tmp_path / "out", checkpoint=tmp_path / "cp", feedback=True)
    assert not (tmp_path / "cp" / "lease.json").exists()
