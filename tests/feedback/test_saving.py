"""What feedback saves: files that are not read, work that is not done; and audits that check it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from feedback_streams import ANY, feed, rows, stream

import caesura as cz
from caesura import Pattern, col
from caesura.errors import PlanError
from caesura.events import History, Page
from caesura.punctuation import between, ge


def folder(path: Path, *, stamps: bool = False) -> Path:
    """Four files of 100 rows in groups of 25, each of one segment; a null and a NaN in the third."""
    for number in range(4):
        ts = list(range(number * 100, number * 100 + 100))
        v = [float(t) for t in ts]
        seg: list[int | None] = [number % 2] * 100
        if number == 2:
            seg[30], v[80] = None, float("nan")
        when = [datetime(2024, 1, 1) + timedelta(seconds=t) for t in ts] if stamps else ts
        table = pa.table({"ts": when, "seg": pa.array(seg, pa.int64()), "v": v})
        pq.write_table(table, path / f"{number}.parquet", row_group_size=25)
    return path


def plan(path: Path, batch: int = 25) -> cz.Stream:
    return cz.read.parquet(path, time="ts", punctuate=cz.delay(5), batch_size=batch).where(col("v") >= 0)


@pytest.mark.parametrize("batch", [25, 60, 65_536])
def test_row_groups_that_nobody_wants_are_not_read(tmp_path: Path, batch: int) -> None:
    stream_ = plan(folder(tmp_path), batch)
    query = stream_.query()
    query.assume(Pattern(seg=0))
    query.run()
    told = query.counters()["read"].feedback
    assert told["rows not read"] == 175  # one group has a null, which was not assumed away
    assert told["bytes not read"] > 0
    got = History.of(query.take("out"), stream_.schema)
    assert sorted({row[2][0] for row in got.rows()}, key=str) == [1, None]
    assert len(got) == 201


def test_a_group_with_nan_is_read_unless_the_bound_takes_it_too(tmp_path: Path) -> None:
    folder(tmp_path)
    for pattern, skipped in ((Pattern(v=between(200.0, 299.0)), 0), (Pattern(v=ge(200.0)), 200)):
        query = plan(tmp_path).select("v").query()
        query.assume(pattern)
        query.run()
        assert query.counters()["read"].feedback.get("rows not read", 0) == skipped


def test_what_is_not_read_still_moves_time_on(tmp_path: Path) -> None:
    query = plan(folder(tmp_path)).query()
    query.assume(True)
    query.run()
    told = [str(i) for i in query.take("out") if not isinstance(i, Page)]
    assert told[:3] == ["definite: time < 19", "definite: time < 44", "definite: time < 69"]
    assert query.counters()["read"].rows_in == 0


def test_times_prune_too(tmp_path: Path) -> None:
    folder(tmp_path, stamps=True)
    stream_ = cz.read.parquet(tmp_path, time="ts", batch_size=25).where(col("v") >= 0)
    query = stream_.query()
    query.assume(cz.start() >= datetime(2024, 1, 1, 0, 1, 40))
    query.run()
    assert query.counters()["read"].feedback["rows not read"] == 300


@pytest.mark.parametrize("batch", [25, 60, 65_536])
def test_a_restart_goes_on_behind_what_was_not_read(tmp_path: Path, batch: int) -> None:
    stream_ = plan(folder(tmp_path), batch)
    query, again = stream_.query(), stream_.query()
    query.assume(Pattern(seg=0))
    for _ in range(9):
        query.step()
    before = query.take("out")
    while any(edge.items for edge in query.graph.edges):
        query.step()
        before += query.take("out")
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    again.run()
    got = History.of([*before, *again.take("out")], stream_.schema)
    assert len([r for r in got.rows() if r[2][0] == 1]) == 200


def test_an_audit_runs_twice_and_says_what_was_left_out() -> None:
    readings = cz.from_rows([{"ts": t, "seg": t % 3} for t in range(60)], time="ts", punctuate=cz.delay(2))
    windows = readings.group_by("seg").tumbling(10).agg(n=cz.count())
    found = windows.audit(col("seg") == 1, (2, col("n") > 100))
    assert found.holds
    assert (found.rows, found.left_out) == (18, 6)
    assert str(found).splitlines()[0] == "holds: 6 of 18 rows left out"


def test_an_audit_refuses_what_depends_on_arrival() -> None:
    with pytest.raises(PlanError, match="depends on arrival"):
        cz.from_rows([{"ts": 1}], time="ts").with_columns(a=cz.lit(1)).pace(within=5).audit(True)


ARCHIVE = cz.Archive(pa.table({"id": [1, 2], "v": [50, 60]}), ("id",), "v")


def test_punctuation_waits_for_the_rows_that_wait_to_be_filled() -> None:
    query = stream(id="int", v="int").impute("v", ARCHIVE, budget=1).query()
    feed(query, " LE RE | id v |\n 1 2 | 1 null | +\n 3 4 | 2 null | +\n 5 6 | 1 null | +\n-- 7 --")
    told = [str(i) for i in query.take("out") if not isinstance(i, Page)]
    assert told == ["definite: time < 5"]  # the row from 5 on still waits
    assert query.counters()["impute"].state_rows == 1
    feed(query, " LE RE | id v |\n-- definite: * --")
    assert query.counters()["impute"].state_rows == 0


def test_rows_that_wait_survive_a_restart() -> None:
    plan_ = stream(id="int", v="int").impute("v", ARCHIVE, budget=1)
    query, again = plan_.query(), plan_.query()
    feed(query, " LE RE | id v |\n 1 2 | 1 null | +\n 3 4 | 2 null | +\n-- 2 --")
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    feed(again, " LE RE | id v |\n-- definite: * --")
    assert len(rows(query, plan_)) + len(rows(again, plan_)) == 2


def test_impute_takes_any_slow_function_and_refuses_streams_that_correct() -> None:
    plan_ = stream(id="int", v="int").impute("v", lambda batch: [7] * batch.num_rows)
    query = plan_.query()
    feed(query, " LE RE | id v |\n 1 2 | 1 null | +")
    assert rows(query, plan_) == [(1, 2, 1, 7)]
    with pytest.raises(PlanError, match="corrects its rows"):
        stream(known=ANY, id="int", v="int").impute("v", ARCHIVE)


def test_windows_that_lost_unread_rows_stay_suppressed_after_a_withdrawal(tmp_path: Path) -> None:
    table = pa.table({"ts": list(range(200)), "seg": [1] * 200})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=25)
    stream_ = cz.read.parquet(tmp_path, time="ts", punctuate=cz.delay(5), batch_size=25)
    windows = stream_.group_by("seg").tumbling(50).agg(n=cz.count())
    query = windows.query()
    said = query.assume(Pattern(seg=1))
    query.step()  # the first 25 rows are not read
    assert query.counters()["read"].feedback["rows not read"] == 25
    query.withdraw(said)
    query.run()
    assert rows(query, windows) == [(50, 100, 1, 50), (100, 150, 1, 50), (150, 200, 1, 50)]


def test_an_imputation_is_the_same_step_when_the_plan_is_made_again() -> None:
    def made(value: int, by: int) -> str:
        archive = cz.Archive(pa.table({"id": [1, 2], "v": [50, value]}), ("id",), "v")
        readings = stream(id="int", v="int").impute("v", archive)
        return readings.impute("v", lambda batch: [by] * batch.num_rows).node.fingerprint

    assert made(60, 7) == made(60, 7)
    assert len({made(60, 7), made(61, 7), made(60, 8)}) == 3


def test_a_source_of_rows_with_an_end_is_read_whole(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(100)), "b": list(range(10, 110)), "seg": [1] * 100})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=25)
    intervals = cz.read.parquet(tmp_path, time="a", end="b", batch_size=25)
    query = intervals.query()
    query.assume(Pattern(seg=1))
    query.run()
    told = query.counters()["read"]
    assert (told.rows_in, told.feedback.get("rows not read", 0)) == (100, 0)
    assert told.feedback["stopped at the output"] == 100


@pytest.mark.parametrize(("take", "value"), [("last", 50), ("first", 48), ("mean", 49), ("sum", 98)])
def test_an_archive_with_several_rows_for_a_key_takes_the_one_that_is_asked_for(take, value):
    table = pa.table({"id": [3, 3, 4], "mph": [48, 50, 51]})
    assert cz.Archive(table, ("id",), "mph", take=take)(pa.record_batch({"id": [3]})).to_pylist() == [value]
    with pytest.raises(PlanError, match="several rows for a key"):
        cz.Archive(table, ("id",), "mph")
