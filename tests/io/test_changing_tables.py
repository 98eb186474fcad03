"""Tables that change: a version holds from the reading of the clock at which it was loaded until the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream
from caesura.events import History
from caesura.io import Offsets, Reader, Source
from caesura.io.ingress.shape import Shape
from caesura.io.sources.versions import CHANGE, COPY, VERSION, TableVersions, difference
from caesura.plan import NOTHING_NOW, Raw, SourceBatch
from caesura.punctuation import INFINITY

SECOND = 1_000_000
START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND


class Clock:
    """A clock that tests set, in seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        monkeypatch.setattr(TableVersions, "poll_seconds", 0.001)
        monkeypatch.setattr(TableVersions, "clock", lambda _: START + self.now * SECOND)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Visits(Reader):
    """Visits of person 7, by what the clock reads when they come, and the seconds at which they were."""

    schema, key = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64())]), "visits"

    def __init__(self, clock: Clock, *steps: tuple[int, list[int]]) -> None:
        self.set, self.steps = clock, steps

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        at = 0
        for now, seconds in self.steps:
            self.set.now = now
            yield from [NOTHING_NOW] * 4  # so that the table is read, and the clock
            times = pa.array([START + second * SECOND for second in seconds], pa.timestamp("us"))
            yield Raw(0, at, pa.record_batch([times, pa.array([7] * len(seconds))], schema=self.schema))
            at += len(seconds)

    def describe(self) -> str:
        return "visits"


def joined(visits: Visits, names: Stream, output: Any) -> dict[int, Any]:
    """The name that each visit found, by its second."""
    stream = Stream(Source(reader=visits, shape=Shape.of(time="ts"), name="visits"))
    rows = stream.join(names, on="id", how="left").run(output=output).history.rows()
    return {(le - START) // SECOND: payload[-1] for le, _, payload in rows}


@pytest.mark.parametrize("output", ["changes", "final"])
def test_a_visit_finds_the_version_that_held_at_its_time_also_when_it_is_late(
    clock: Clock, output: str
) -> None:
    named = {0: "Ada", 12: "Eve", 30: None}

    def people() -> list[dict[str, Any]]:
        name = named[max(second for second in named if second <= clock.now)]
        return [] if name is None else [{"id": 7, "name": name}]

    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    visits = Visits(clock, (0, []), (5, [2, 5]), (12, [11, 13]), (20, [3, 19]), (31, [4, 29, 32]))
    found = joined(visits, cz.table(people, reload="10s", schema=schema), output)
    assert found == dict.fromkeys((2, 3, 4, 5, 11), "Ada") | {
        13: "Eve",
        19: "Eve",
        29: "Eve",
        32: None,
    }


@pytest.mark.parametrize("output", ["changes", "final"])
@pytest.mark.parametrize(
    ("correct", "corrected"), [(None, ()), ("4s", (9, 11)), ("1h", (2, 5, 9, 11)), ("past", (2, 5, 9, 11))]
)
def test_a_version_corrects_what_was_joined_as_far_back_as_it_is_told(
    clock: Clock, output: str, correct: str | None, corrected: tuple[int, ...]
) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    people = lambda: [{"id": 7, "name": "Ada" if clock.now < 12 else "Eve"}]  # noqa: E731
    visits = Visits(clock, (0, []), (5, [2, 5, 9, 11]), (12, [13]))
    names = cz.table(people, reload="10s", schema=schema, correct=correct)
    assert joined(visits, names, output) == {
        at: "Eve" if at in (*corrected, 13) else "Ada" for at in (2, 5, 9, 11, 13)
    }


def loaded(reader: TableVersions, at: int = 0) -> list[tuple[Any, ...]]:
    """What is read from an offset on, until there is nothing."""
    rows: list[tuple[Any, ...]] = []
    for raw in reader.read({0: at}):
        if not isinstance(raw, Raw):
            break
        rows += [tuple(row.values()) for row in raw.batch.to_pylist()]
    return rows


def test_files_are_loaded_again_when_they_change_and_rows_that_stay_do_not_come_again(
    clock: Clock, tmp_path: Path
) -> None:
    folder = tmp_path / "names"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2, 2]}), folder / "a.parquet")
    reader = TableVersions(folder, reload="changed", history=tmp_path / "history")
    assert sorted(loaded(reader)) == [(1, "c", 0, 0), (2, "c", 0, 0), (2, "c", 1, 0)]
    clock.now = 5
    assert loaded(reader, 3) == []
    pq.write_table(pa.table({"id": [2, 3]}), folder / "a.parquet")
    clock.now = 9
    assert sorted(loaded(reader, 3)) == [(1, "d", 0, 1), (2, "d", 1, 1), (3, "c", 0, 1)]
    again = TableVersions(folder, reload="changed", history=tmp_path / "history")
    assert again.key == reader.key
    assert loaded(again) == loaded(reader), "the history is read again, offset by offset"


def test_what_was_recorded_between_two_offsets_is_read_without_loading(clock: Clock, tmp_path: Path) -> None:
    calls: list[int] = []

    def rows() -> list[dict[str, int]]:
        calls.append(clock.now)
        return [{"id": len(calls)}]

    reader = TableVersions(rows, reload="10s", history=tmp_path / "h")
    ends = []
    for clock.now in (0, 4, 10, 25):
        ends.append(reader.latest()[0])
    assert ends == [1, 1, 3, 5] and calls == [0, 0, 10, 25]
    between = [raw.batch.to_pylist() for raw in reader.read_between({0: 1}, {0: 3})]
    assert [[(row["id"], row[CHANGE]) for row in batch] for batch in between] == [[(2, "d"), (3, "c")]]
    assert calls == [0, 0, 10, 25]


def test_equal_rows_are_counted_and_values_of_any_type_are_compared() -> None:
    schema = pa.schema([("v", pa.float64()), ("w", pa.list_(pa.int64()))])
    old = pa.Table.from_pylist([{"v": 0.0, "w": [1]}, {"v": None, "w": None}, {"v": 2.5, "w": []}], schema)
    new = pa.Table.from_pylist([{"v": -0.0, "w": [1]}, {"v": 2.5, "w": []}, {"v": 2.5, "w": []}], schema)
    change = difference(old, new, 4).to_pylist()
    assert [(row["v"], row[CHANGE], row[COPY], row[VERSION]) for row in change] == [
        (None, "d", 0, 4),
        (2.5, "c", 1, 4),
    ]


def test_a_query_ends_with_its_other_sources_and_a_table_alone_with_its_first_version(clock: Clock) -> None:
    names: Callable[[], list[dict[str, Any]]] = lambda: [{"id": 7, "name": "Ada"}]  # noqa: E731
    table = cz.table(names, reload="10m")
    assert [row[2] for row in table.run().history.rows()] == [(7, "Ada")]
    moment = datetime.fromtimestamp(START / SECOND + 1, UTC).replace(tzinfo=None)
    visits = cz.from_rows([{"ts": moment, "id": 7}], time="ts")
    assert [row[2] for row in visits.join(table, on="id").run(output="final").history.rows()] == [(7, "Ada")]


@pytest.mark.parametrize("buckets", [1, 3])
def test_in_buckets_a_version_holds_from_the_reading_of_its_epoch(clock: Clock, buckets: int) -> None:
    versions = [[1, 2, 3], [1, 2, 2], [2]]
    names = cz.table(lambda: [{"id": n} for n in versions[clock.now // 10]], reload="10s")
    cluster = Cluster({"out": names.node}, buckets)
    (source,) = cluster.stages.sources
    assert isinstance(source, Source)
    at = 0
    for clock.now in (0, 10, 20):
        end = (source.reader.latest() or {})[0]
        rows = list(source.reader.read_between({0: at}, {0: end}))
        cluster.epoch([(source, raw) for raw in rows], clock=START + clock.now * SECOND)
        at = end
    lived = History.of(cluster.items["out"], names.schema).rows()
    ends = {INFINITY: None}
    found = [((le - START) // SECOND, ends.get(re, (re - START) // SECOND), id) for le, re, (id,) in lived]
    assert sorted(found, key=str) == [(0, 10, 3), (0, 20, 1), (0, None, 2), (10, 20, 2)]


@pytest.mark.parametrize(("correct", "safe"), [(None, True), ("1h", True), ("past", False)])
def test_a_table_that_changes_keeps_bounded_state_unless_it_corrects_all(
    clock: Clock, correct: str | None, safe: bool
) -> None:
    visits = Source(reader=Visits(clock), shape=Shape.of(time="ts"), policy=cz.delay("5s"), name="visits")
    table = cz.table(lambda: [{"id": 7, "n": 1}], reload="10m", correct=correct)
    found = Stream(visits).join(table, on="id").check()
    assert found.safe == safe, found
