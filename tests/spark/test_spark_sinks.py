"""Sinks take every epoch once, whatever runs again, and belong to one checkpoint."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import deltalake
import pytest
import spark_plans as given

import caesura as cz
from caesura.cli.late import rejected
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.runtime.query.result import run
from caesura.spark import DeltaSink
from caesura.spark.sinks.epochs import EpochWriter


@pytest.fixture
def written() -> list[int]:
    """The numbers of epochs, as they were written."""
    return []


@pytest.fixture
def every_epoch_twice(written: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sinks are given every epoch twice, as after a kill between their commit and Spark's."""
    write = EpochWriter.write

    def twice(self: EpochWriter, epoch: int, packets: Any) -> None:
        kept = packets.persist()
        for _ in range(2):
            write(self, epoch, kept)
            written.append(epoch)
        kept.unpersist()

    monkeypatch.setattr(EpochWriter, "write", twice)


@pytest.mark.usefixtures("every_epoch_twice")
def test_a_delta_table_has_every_epoch_once_and_goes_with_one_checkpoint(
    spark: Any, tmp_path: Path, written: list[int]
) -> None:
    given.write(given.readings(), tmp_path / "readings", [130, 170])
    points = cz.read.parquet(tmp_path / "readings", time="ts", punctuate=cz.delay(4), name="readings")
    stream = points.group_by("seg").tumbling(10).agg(n=cz.count())
    out, options = tmp_path / "out", {"trigger": "available", "files_per_epoch": 1, "output": "final"}
    stream.start(spark, sink=DeltaSink(str(out)), checkpoint=tmp_path / "cp", **options).wait()

    wanted = run(stream.node, output="final")
    bound = max(b for i in wanted.items if not hasattr(i, "le") and (b := i.pattern.time_bound or 0) < 2**62)
    table = deltalake.DeltaTable(str(out / "out"))
    rows = [tuple(r.values()) for r in table.to_pyarrow_table().to_pylist()]
    assert Counter(r for r in rows if r[1] < bound) == Counter(
        tuple(r.values()) for r in wanted.changes().to_pylist() if r["LE"] < bound
    )
    assert written == [0, 0, 1, 1, 2, 2]
    assert table.version() == 3  # one for each of three epochs, after its making
    stream.create_view(spark, "counts", sink=DeltaSink(str(out)), output="final")
    [seen] = spark.sql("SELECT count(*) AS rows, sum(n) AS n FROM counts WHERE RE > LE").collect()
    assert (seen.rows, seen.n) == (len(rows), sum(row[-1] for row in rows))
    with pytest.raises(StreamError, match="written from another checkpoint"):
        stream.start(spark, sink=out, checkpoint=tmp_path / "other", **options).wait()


@pytest.mark.usefixtures("every_epoch_twice")
@pytest.mark.parametrize("kind", ["now", "history"])
def test_a_table_with_a_key_follows_the_stream_also_in_a_second_start(
    spark: Any, tmp_path: Path, written: list[int], kind: str
) -> None:
    folder = given.write(given.readings(), tmp_path / "readings", [130, 170])
    later = (folder / "002.parquet").rename(tmp_path / "later")
    points = cz.read.parquet(folder, time="ts", punctuate=cz.delay(4), name="readings")
    if kind == "now":
        stream = points.latest(key="seg", order=["car", "mph"]).upserts(key="seg")
    else:
        stream = points.group_by("seg").tumbling(10).agg(n=cz.count()).upserts(key=["seg", "LE"])
    options = {"trigger": "available", "checkpoint": tmp_path / "cp"}
    options["bounded_columns"] = {"readings": ["seg"]}
    sink = cz.duckdb(tmp_path / "now.db", "now")
    stream.start(spark, sink=sink, files_per_epoch=1, **options).wait()
    later.rename(folder / "002.parquet")
    stream.start(spark, sink=cz.duckdb(tmp_path / "now.db", "now"), **options).wait()

    expected = run(stream.node)
    rows = [(row["LE"], row["RE"], row) for row in expected.table().to_pylist()]
    found = sorted(tuple(str(v) for v in row) for row in sink.read_back())
    if kind == "now":
        wanted = [(p["seg"], p["car"], p["mph"]) for _, end, p in rows if end is None]
    else:
        wanted = [(le, end, p["seg"], p["n"]) for le, end, p in rows]
    assert found == sorted(tuple(str(v) for v in row) for row in wanted) and found
    assert len(written) >= 6
    late = rejected(Place.of(tmp_path / "cp"))["readings"]
    assert sorted(late["LE"].to_pylist()) == sorted(expected.late["readings"]["LE"].to_pylist()) != []


@pytest.mark.usefixtures("every_epoch_twice")
def test_the_inserts_of_a_script_are_one_query_with_a_sink_each(
    spark: Any, tmp_path: Path, written: list[int]
) -> None:
    given.write(given.readings(), tmp_path / "readings", [130, 170])
    script = cz.script(
        f"""
        CREATE STREAM readings FROM parquet '{tmp_path}/readings' (TIME ts DELAY 4);
        CREATE SINK counts TO parquet '{tmp_path}/counts';
        CREATE SINK fastest TO duckdb '{tmp_path}/fastest.db' (TABLE 'fastest') KEY (seg);
        SET checkpoint = '{tmp_path}/checkpoint';
        INSERT INTO counts SELECT seg, count(*) AS n FROM readings GROUP BY seg, TUMBLE(ts, 10) EMIT FINAL;
        INSERT INTO fastest SELECT seg, max(mph) AS mph FROM readings GROUP BY seg;
        """
    )
    with pytest.warns(UserWarning, match="never freed"):
        query = script.start(spark, trigger="available", allow_unbounded=True)
    query.wait()
    assert len(written) == 2 * len(set(written))
    best = {row["seg"]: row["mph"] for row in query.table("fastest").to_pylist()}
    counts = script.inserts["counts"].stream.run(output="final").table().to_pylist()
    views = script.inserts["fastest"].stream.run().table().to_pylist()
    assert best == {row["seg"]: row["mph"] for row in views if row["RE"] is None}
    shown = Counter((r["LE"], r["seg"], r["n"]) for r in query.table("counts").to_pylist())
    assert shown and shown <= Counter((r["LE"], r["seg"], r["n"]) for r in counts)
