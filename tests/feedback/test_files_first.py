"""Row groups and files with desired rows are read first; what is read, and what is late, stays the same."""

from __future__ import annotations

import statistics
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Pattern, Stream
from caesura.events import History, Page
from caesura.runtime import Query

Rows = list[tuple[int, int]]
EXAMPLES = examples(30)


def written(folder: Path, files: list[Rows], *, group: int = 4) -> Path:
    """Files of (ts, id) rows, with row groups of some rows."""
    for number, rows in enumerate(files):
        table = pa.table({"ts": [ts for ts, _ in rows], "id": [i for _, i in rows]})
        pq.write_table(table, folder / f"{number:03}.parquet", row_group_size=group)
    return folder


def places(query: Query, wanted: int) -> list[int]:
    """Where the rows of an id stand in what came out."""
    ids = [i for page in query.take("out") if isinstance(page, Page) for i in page.payload["id"].to_pylist()]
    return [place for place, i in enumerate(ids) if i == wanted]


def by_id(ids: int = 5, each: int = 12) -> list[Rows]:
    """A file for each id, all of the same stretch of time."""
    return [[(ts, number) for ts in range(each)] for number in range(ids)]


@pytest.mark.parametrize("policy", [None, cz.delay(20)], ids=["at the end", "within the lag"])
def test_files_with_desired_rows_are_read_first(policy: cz.Policy | None, tmp_path: Path) -> None:
    plan = cz.read.parquet(written(tmp_path, by_id()), time="ts", batch_size=4, punctuate=policy)
    medians, said = {}, {}
    for wish in (False, True):
        query = plan.query()
        if wish:
            query.desire(Pattern(id=3))
        query.run()
        said[wish] = query.counters()["read"].feedback.get("rows read first", 0)
        medians[wish] = statistics.median(places(query, 3))
    assert medians == {False: 41.5, True: 5.5}
    assert said == {False: 0, True: 12}


def test_a_wish_in_the_middle_counts_from_the_next_row_group_on(tmp_path: Path) -> None:
    query = cz.read.parquet(written(tmp_path, by_id()), time="ts", batch_size=4).query()
    query.step()
    query.desire(Pattern(id=4))
    query.run()
    assert places(query, 4) == list(range(4, 16))


def test_beyond_the_lag_nothing_is_read_before_its_time(tmp_path: Path) -> None:
    files = [[(100 * n + ts, n) for ts in range(4)] for n in range(4)]
    plan = cz.read.parquet(written(tmp_path, files), time="ts", batch_size=4, punctuate=cz.delay(10))
    query = plan.query()
    query.desire(Pattern(id=3))
    query.run()
    assert places(query, 3) == [12, 13, 14, 15]
    assert query.late() == {}


def test_punctuation_in_the_data_keeps_the_order(tmp_path: Path) -> None:
    table = pa.table({"ts": [1, None, 5], "id": [0, None, 3], "p": [None, "time < 4", None]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    plan = cz.read.parquet(tmp_path, time="ts", batch_size=1, punctuate=cz.in_data("p"))
    query = plan.query()
    query.desire(Pattern(id=3))
    query.run()
    assert places(query, 3) == [1]


TIMES = st.lists(st.tuples(st.integers(0, 24), st.integers(0, 3)), min_size=1, max_size=12)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    files=st.lists(TIMES, min_size=1, max_size=4),
    lag=st.sampled_from([None, 4, 12, 30]),
    group=st.integers(1, 3),
    wish=st.integers(0, 3),
    at=st.integers(0, 2),
    again=st.integers(1, 8),
)
def test_a_wish_changes_the_order_only(
    files: list[Rows], lag: int | None, group: int, wish: int, at: int, again: int
) -> None:
    with TemporaryDirectory() as folder:
        path = written(Path(folder), files, group=group)
        policy = None if lag is None else cz.delay(lag)
        plan = cz.read.parquet(path, time="ts", batch_size=group, punctuate=policy)
        assert outcome(plan, None, at, again) == outcome(plan, wish, at, again)


def outcome(plan: Stream, wish: int | None, at: int, again: int) -> tuple[object, object]:
    """The history and the late rows, with a wish after some steps and a restart after some more."""
    query, items = plan.query(), []
    late: list[object] = []
    for number in range(at + again):
        if number == at and wish is not None:
            query.desire(Pattern(id=wish))
        query.step()
    while any(edge.items for edge in query.graph.edges):
        query.step()
    items += query.take("out")
    late += [row for table in query.late().values() for row in table.to_pylist()]
    revived = plan.query()
    revived.restore(query.snapshot())
    revived.run()
    items += revived.take("out")
    late += [row for table in revived.late().values() for row in table.to_pylist()]
    kept = [(row["reason"].split(" is ")[0], row.get("id")) for row in late]  # type: ignore[index]
    return History.of(items, plan.schema), sorted(map(str, kept))
