"""RoundSize that grow, and pages in ranges: the rows, late rows and counts of one thread."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col
from caesura.runtime.graph import row_ranges
from caesura.runtime.graph.row_ranges import RowRanges
from caesura.runtime.threads import dealing, round_size
from caesura.runtime.threads.round_size import RoundSize

EXAMPLES = examples(12, short=4)


class Shelf:
    """A reader that has so many rows at hand."""

    def __init__(self, rows: int, limit: int | None = None) -> None:
        self.rows, self.limit, self.done = rows, limit, False

    @property
    def waiting(self) -> int:
        return min(self.rows, self.limit or self.rows)


def page_of(count: int, width: int = 1) -> dict[str, list[Any]]:
    batch = pa.record_batch({f"c{i}": np.arange(count) for i in range(width)})
    return {"rows": [cz.events.Page(np.arange(count), np.arange(count) + 1, batch)]}


def test_rounds_grow_where_they_gain_until_they_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_size, "FIRST_ROWS", 4)
    monkeypatch.setattr(round_size, "ROUND_ROWS", 8)
    monkeypatch.setattr(round_size, "MOST_ROWS", 100)
    free, slow = Shelf(1000), Shelf(1000, limit=3)
    some: Any = [free, slow]
    made = RoundSize(some)
    sizes = [made.rows]
    for gains in (True, True, True, False, True):
        made.follow(page_of(5), gains=gains)
        sizes.append(made.rows)
        assert (free.limit, slow.limit) == (made.rows, 3)
    assert sizes == [4, 16, 64, 100, 8, 32]
    monkeypatch.setattr(round_size, "MOST_BYTES", 20 * 24)  # an event of one column has 24 bytes
    made.follow(page_of(5), gains=True)
    assert made.rows == 20
    made.follow(page_of(5, width=50), gains=True)
    assert made.rows == 8
    made.follow({"rows": []}, gains=True)
    assert made.rows == 8


def test_a_round_ends_where_the_next_rows_would_make_it_too_large() -> None:
    some: Any = [Shelf(70)]
    made = RoundSize(some)
    made.rows = 100
    assert [made.go_on(count) for count in (0, 5, 6, 30, 31, 100)] == [True, True, True, True, False, False]
    some[0].done = True
    assert made.go_on(31)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows of few times, some late, of keys that a look-up may have once, not at all, or twice; some null."""
    count = draw(st.sampled_from((0, 1, 40, 700)))
    random = np.random.default_rng(draw(st.integers(0, 999)))
    keys = random.integers(0, draw(st.sampled_from((3, 7, 3000))), count)
    nulls = random.random(count) < draw(st.sampled_from((0.0, 0.05)))
    return pa.table(
        {
            "ts": np.sort(random.integers(0, draw(st.sampled_from((1, 90, 2000))), count))
            + random.integers(-9, 1, count),
            "k": pa.array(np.where(nulls, 0, keys), mask=nulls, type=pa.int64()),
            "kind": random.integers(0, 3, count, np.int8),
            "v": random.normal(0, 1, count) * 10.0 ** random.integers(-9, 9, count),
        }
    )


@st.composite
def sides(draw: st.DrawFn) -> Stream:
    """What is looked up: whole or with keys missing or twice, from the beginning or not, ended or not."""
    keys = draw(st.sampled_from(([*range(3000)], [0, 1, 2, 5], [0, 1, 1, 2, 3], [])))
    since = draw(st.sampled_from((-50, 30)))
    table = pa.table(
        {
            "since": pa.array([since] * len(keys), pa.int64()),
            "until": pa.array([draw(st.sampled_from((5000, 60)))] * len(keys), pa.int64()),
            "k": pa.array(keys, pa.int64()),
            "group": pa.array([k % 4 for k in keys], pa.int64()),
        }
    )
    ends: Any = draw(st.sampled_from(({}, {"punctuate": cz.delay(100)})))
    return cz.from_arrow(table, time="since", end="until", **ends)


def summed(rows: Stream) -> Stream:
    return rows.group_by("group").tumbling(10).agg(n=cz.count(), s=cz.sum("v"), m=cz.min("v"))


PLANS: dict[str, Any] = {
    "looked up and counted": lambda a, b: (
        a.where(col("kind") == 0).join(b, on="k").group_by("group").tumbling(10).agg(n=cz.count())
    ),
    "looked up and summed": lambda a, b: summed(a.where(col("kind") == 0).join(b, on="k")),
    "looked up without a filter": lambda a, b: summed(a.join(b, on="k")),
    "hopping": lambda a, b: a.group_by("k").hopping(30, every=10).agg(n=cz.count(), m=cz.avg("v")),
}


def late_rows(late: dict[str, pa.Table]) -> Counter[str]:
    return Counter(f"{name} {row}" for name, table in late.items() for row in table.to_pylist())


@pytest.mark.parametrize("name", PLANS)
def test_rounds_of_any_size_give_what_one_thread_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for room, key, value in (
        (round_size, "FIRST_ROWS", 32), (round_size, "ROUND_ROWS", 64), (round_size, "MOST_ROWS", 400),
        (row_ranges, "MIN_ROWS", 4), (row_ranges, "MAX_ROWS", 24),
        (dealing, "LEAST", 16), (dealing, "MANY", 0),
    ):  # fmt: skip
        monkeypatch.setattr(room, key, value)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(tables(), sides(), st.integers(2, 3), st.sampled_from(("final", "changes")))
    def agrees(table: pa.Table, side: Stream, threads: int, output: Any) -> None:
        stream = PLANS[name](cz.from_arrow(table, time="ts", punctuate=cz.delay(5)), side)
        one, more = stream.run(output=output), stream.run(output=output, threads=threads)
        assert one.history == more.history
        assert late_rows(one.late) == late_rows(more.late)
        for step, counters in one.counters.items():
            other = more.counters[step]
            assert counters.rows_in == other.rows_in
            assert counters.state_rows == other.state_rows
            if output == "final":
                assert counters.rows_out == other.rows_out

    agrees()


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_retracts_in_ranges_of_large_rounds_give_what_one_thread_gives(
    seed: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_size, "FIRST_ROWS", 32)
    monkeypatch.setattr(row_ranges, "MIN_ROWS", 4)
    monkeypatch.setattr(row_ranges, "MAX_ROWS", 24)
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for t in np.sort(random.integers(0, 300, 400)).tolist():
        row = {
            "ts": t,
            "end": t + 1,
            "new": None,
            "sign": "insert",
            "k": int(random.integers(0, 6)),
            "v": 1.5,
        }
        rows.append(row)
        if random.random() < 0.4:  # taken back, and perhaps put in again and taken back again
            gone = row | {"sign": "retract", "new": t}
            rows += [gone, row, gone][: int(random.choice([1, 2, 3]))]
    schema = {"ts": pa.int64(), "end": pa.int64(), "new": pa.int64(), "sign": pa.string()}
    typed = pa.schema([*schema.items(), ("k", pa.int64()), ("v", pa.float64())])
    side = cz.from_rows([{"a": -5, "b": 900, "k": k, "group": k % 2} for k in range(5)], time="a", end="b")
    source = cz.from_arrow(
        pa.Table.from_pylist(rows, typed),
        time="ts",
        end="end",
        kind="sign",
        new_end="new",
        punctuate=cz.delay(4),
    )
    stream = summed(source.join(side, on="k"))
    one, more = stream.run(output="final"), stream.run(output="final", threads=threads)
    assert len(one.history) > 0 and one.history == more.history


def test_what_one_range_learns_all_know_before_they_are_used_again() -> None:
    from concurrent.futures import ThreadPoolExecutor

    ranges = RowRanges()
    with ThreadPoolExecutor(1) as threads:
        ranges.divide(threads, 2)
        first, _, _ = ranges.cut(2 * row_ranges.MIN_ROWS)[1]
        far = np.array([7, 5000])  # beyond the keys that there is room for at first
        ranges.teach(first, row_ranges.Learned(far, np.array([0, 1]), 2))
        used = [one for one, _, _ in ranges.cut(4 * row_ranges.MAX_ROWS)]
        assert len(used) == 4
        assert all(one.places.knows(far).all() and one.places.groups == 2 for one in used)
        ranges.forget()
        assert not any(one.places.knows(far).any() for one in used)
        assert all(one.places.groups == 0 for one, _, _ in ranges.cut(4 * row_ranges.MAX_ROWS))
