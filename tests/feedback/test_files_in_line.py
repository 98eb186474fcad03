"""On Spark, files with desired rows are read in earlier epochs, and the same rows are late."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Pattern, col
from caesura.io.sources.pruning import Pruning, ValueRange
from caesura.io.sources.source import Source
from caesura.plan.cut import cut
from caesura.punctuation import value

pytest.importorskip("pyspark")
from depth import examples

from caesura.spark.loop_log.log import LoopLog
from caesura.spark.worker import priority
from caesura.spark.worker.admission import EpochLimits
from caesura.spark.worker.job import Job, as_batch
from caesura.spark.worker.priority import WaitingFile, choose, lined_up, note_wanted, wait, waits, wanted_of

EXAMPLES = examples(60)
Rows = list[tuple[int, int]]


def told(lag: int | None, *ids: int) -> Pruning:
    """Rows of these ids are wanted first."""
    return Pruning(lambda: [], {"id": "id"}, "ts", lambda: [Pattern(id=value(i)) for i in ids], lag)


def waiting(epoch: int, name: str, rows: Rows) -> WaitingFile:
    spans = {}
    for place, column in enumerate(("ts", "id")):
        values = [row[place] for row in rows]
        spans[column] = ValueRange(min(values), max(values))
    return WaitingFile(epoch, name, spans, len(rows), 10)


def late(order: list[str], files: dict[str, Rows], lag: int) -> list[tuple[str, int]]:
    """From scratch: the rows that are behind the latest time before them by more than the lag."""
    found, top = [], -(10**9)
    for name in order:
        for number, (ts, _) in enumerate(files[name]):
            if ts < top - lag:
                found.append((name, number))
            top = max(top, ts)
    return sorted(found)


def some_rows(random: Random) -> Rows:
    return [(random.randint(0, 12), random.randint(0, 2)) for _ in range(random.randint(1, 3))]


@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_the_same_rows_are_late_in_whatever_order_files_are_read(seed: int) -> None:
    random = Random(seed)
    lag = random.choice([2, 4, 7, 20])
    most = random.choice([EpochLimits(), EpochLimits(files=1), EpochLimits(files=2), EpochLimits(bytes=15)])
    files: dict[str, Rows] = {}
    line: list[WaitingFile] = []
    order: list[str] = []
    for number in range(60):
        for place in range(random.randint(0, 3) if number < 5 else 0):
            files[f"{number:02}-{place}"] = rows = some_rows(random)
            line.append(waiting(number, f"{number:02}-{place}", rows))
        wished = [random.randint(0, 2)] if random.random() < 0.7 else []
        chosen, line = choose(line, told(lag, *wished), most, number + 1)
        order += [file.path for file in sorted(chosen, key=lambda f: (f.epoch, f.path))]
    assert sorted(order) == sorted(files)
    assert late(order, files, lag) == late(sorted(files), files, lag)


def names(chosen: tuple[list[WaitingFile], list[WaitingFile]]) -> tuple[str, str]:
    read, left = chosen
    return "".join(f.path for f in read), "".join(f.path for f in left)


LINE = [waiting(0, name, [(t, i)]) for name, t, i in (("a", 1, 0), ("b", 2, 1), ("c", 3, 0), ("d", 4, 1))]


def test_wanted_files_come_first_as_many_as_an_epoch_takes() -> None:
    assert names(choose(LINE, told(9, 1), EpochLimits(files=2), 9)) == ("bd", "ac")
    assert names(choose(LINE, told(9, 1), EpochLimits(files=3), 9)) == ("bda", "c")
    assert names(choose(LINE, told(9, 1), EpochLimits(bytes=10), 9)) == ("b", "acd")
    assert names(choose(LINE, told(9, 1), EpochLimits(), 9)) == ("bd", "ac")


def test_where_nothing_is_wanted_all_are_read_in_their_order() -> None:
    assert names(choose(LINE, told(9, 7), EpochLimits(), 9)) == ("abcd", "")
    assert names(choose(LINE, None, EpochLimits(files=3), 9)) == ("abc", "d")


def test_a_file_that_others_would_make_late_goes_first() -> None:
    far = [waiting(0, "a", [(1, 0)]), waiting(0, "b", [(50, 1)])]
    assert names(choose(far, told(9, 1), EpochLimits(files=1), 9)) == ("a", "b")
    assert names(choose(far, told(9, 1), EpochLimits(), 9)) == ("ab", "")
    assert names(choose(far, told(None, 1), EpochLimits(files=1), 9)) == ("b", "a")  # nothing is ever late


def test_others_wait_while_wanted_files_may_be_to_come_but_not_for_ever() -> None:
    line = LINE[::2]
    assert names(choose(line, told(9, 1), EpochLimits(files=1), 1)) == ("", "ac")
    assert names(choose(line, told(9, 1), EpochLimits(files=1), 2)) == ("a", "c")  # Spark has named no more
    more = [*line, waiting(priority.PATIENCE - 1, "e", [(5, 0)])]
    assert names(choose(more, told(9, 1), EpochLimits(files=1), priority.PATIENCE - 1)) == ("", "ace")
    assert names(choose(more, told(9, 1), EpochLimits(files=1), priority.PATIENCE)) == ("a", "ce")


def job(folder: Path, **options: Any) -> tuple[Job, Source]:
    table = pa.table({"ts": [1, 2], "seg": [3, 4], "v": [1, 2]})
    pq.write_table(table, folder / "a.parquet")
    points = cz.read.parquet(folder, time="ts", punctuate=cz.delay(5), **options)
    plan = points.select(id=col("seg"), v=col("v") * 2).group_by("id").tumbling(10).agg(n=cz.count())
    stages = cut({"out": plan.node}, 2)
    [source] = stages.sources
    assert isinstance(source, Source)
    return Job("q", stages, 2, "arrival", closes=False, loop=f"{folder}/cp/loop", priorities=True), source


def at(epoch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priority, "epoch_here", lambda: epoch)


def test_tasks_see_the_priorities_of_earlier_epochs_over_their_own_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, source = job(tmp_path)
    [exchange] = [e.label for e in mine.stages.stages[1].arrivals]
    at(4, monkeypatch)
    note_wanted(mine, 1, 1, {exchange: [Pattern(id=value(3))]})
    assert wanted_of(mine, source) == []  # nobody in this epoch could have known
    at(5, monkeypatch)
    assert wanted_of(mine, source) == [Pattern(seg=value(3))]
    note_wanted(mine, 1, 1, {})
    assert wanted_of(mine, source) == [Pattern(seg=value(3))]
    at(6, monkeypatch)
    assert wanted_of(mine, source) == []


def test_new_files_wait_while_others_are_wanted_or_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, source = job(tmp_path)
    at(5, monkeypatch)
    assert not wait(mine, source, None, EpochLimits(files=1))
    assert wait(mine, source, told(5, 3), EpochLimits(files=1))
    line = as_batch([waits(source.fingerprint, "a", 3)], mine.keys)
    LoopLog(mine.loop).write(4, 0, line)
    assert wait(mine, source, None, EpochLimits(files=1))
    assert not wait(mine, source, None, EpochLimits())  # all that waits is read in this epoch, in its order


def test_late_rows_that_are_moved_keep_the_order_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, source = job(tmp_path, late="adjust")
    at(5, monkeypatch)
    assert not wait(mine, source, told(5, 3), EpochLimits(files=1))


def test_statistics_of_a_file_that_waits_are_read_once(tmp_path: Path) -> None:
    _, source = job(tmp_path)
    header = {"source": source.fingerprint, "path": (tmp_path / "a.parquet").as_uri(), "epoch": 2}
    [file] = lined_up(source, [header, header])
    assert (file.epoch, file.rows, file.spans["seg"]) == (2, 2, ValueRange(3, 4))
