"""Rows that are stopped above a `pace`, which ignores them, can be asked for with the reason, everywhere."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from feedback_streams import feed, stream
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_feedback_buckets import EXAMPLES, Rows, loose, run, source, timed

from caesura import Pattern, Stream, col
from caesura.events import Page
from caesura.punctuation import lt
from caesura.runtime import Query
from caesura.runtime.graph.rejected import together

WHY = "more than 5 behind the furthest start: 'pace' ignores it"
MANY = " LE RE | id |\n 3 4 | 2 | +\n 6 7 | 3 | +\n 2 3 | 4 | +\n 1 9 | 5 | +"


def test_rows_stopped_above_pace_are_late_with_the_reason_and_survive_a_restart() -> None:
    plan = stream(id="int").where(col("id") > 0).pace(within=5)
    query, again = plan.query(), plan.query()
    feed(query, " LE RE | id |\n 10 11 | 1 | +")
    feed(query, " LE RE | id |\n 3 4 | 2 | +\n 6 7 | 3 | +")
    assert query.counters()["pace"].extra.get("too late", 0) == 0
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    for each in (query, again):
        late = each.late()
        assert late["a stopped"].to_pylist() == [{"reason": WHY, "kind": "+", "LE": 3, "RE": 4, "id": 2}]
        assert each.late() == {}
        feed(each, " LE RE | id |\n 4 5 | 6 | +")
        assert each.late()["a stopped"].column("id").to_pylist() == [6]


def test_a_row_that_its_consumer_ignores_is_only_counted() -> None:
    query = stream(id="int").where(col("id") > 0).pace(within=5).query()
    query.assume(Pattern(id=3))
    query.assume(Pattern(LE=lt(2)))
    feed(query, " LE RE | id |\n 10 11 | 1 | +")
    feed(query, MANY)
    assert sorted(query.late()["a stopped"].column("id").to_pylist()) == [2, 4, 5]
    assert query.counters()["input"].feedback["stopped at the output"] == 4
    feed(query, " LE RE | id |\n 8 9 | 3 | +")
    assert query.late() == {}


def test_of_very_many_stopped_rows_the_first_are_kept_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("caesura.feedback.guard.MAX_NOTED_ROWS", 2)
    query = stream(id="int").pace(within=5).query()
    feed(query, " LE RE | id |\n 10 11 | 1 | +")
    feed(query, MANY)
    feed(query, MANY)
    assert query.late()["a stopped"].column("id").to_pylist() == [2, 4]
    assert query.counters()["input"].feedback["stopped at the output"] == 6
    feed(query, MANY)
    assert query.late()["a stopped"].column("id").to_pylist() == [2, 4]


def test_tables_of_one_name_with_other_columns_stay_apart() -> None:
    a, b = pa.table({"id": [1]}), pa.table({"v": ["x"]})
    assert [(n, t.num_rows) for n, t in together("where", [a, b, a])] == [("where", 2), ("where 2", 1)]


PLANS = {
    "pace": lambda a, b: a.pace(b, within=5),
    "where": lambda a, b: a.where(col("v") >= 0).pace(b, within=5),
    "keyed": lambda a, b: a.distinct().pace(b.distinct(), within=5),
    "shifted": lambda a, b: a.shift(3).shift(-3).pace(b, within=5),
    "two": lambda a, b: a.pace(b, within=9).where(col("v") >= 0).pace(within=5),
    "read by others": lambda a, b: a.distinct().pace(b, within=5),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("buckets", [0, 1, 3])
def test_a_row_leaves_or_is_late(name: str, buckets: int) -> None:
    """Zero buckets is the embedded host."""

    @settings(max_examples=2 * EXAMPLES, deadline=None)
    @example([[(3, 0, 0)], [(-20, 0, 0)] * 2, [(3, 1, 0)], [(-20, 1, 0)] * 2], [[(0, 0, 0)]] * 4, 100)
    @given(*[st.lists(loose, min_size=4, max_size=4)] * 2, st.sampled_from((3, 100)))
    def holds(some: list[Rows], others: list[Rows], lag: int) -> None:
        came = [numbered(timed(some), 0), numbered(timed(others), 1000)]
        a, b = (Stream(source(g, lag, key)) for g, key in zip(came, "ab", strict=True))
        plan, beside = PLANS[name](a, b), {"all": a.distinct()} if name == "read by others" else {}
        if buckets:
            cluster = run(plan, buckets, 4, {}, beside=beside)
            items, late = cluster.items["out"], cluster.late
        else:
            query = Query({name: each.node for name, each in {"out": plan, **beside}.items()})
            query.run()
            items, late = query.take("out"), {n: t.to_batches() for n, t in query.late().items()}
        left = Counter(row[1] for page in items if isinstance(page, Page) for *_, row in page.rows())
        told = Counter(v for tables in late.values() for table in tables for v in table["v"].to_pylist())
        assert left + told == Counter(v for g in came for rows in g for _, _, v in rows)
        stopped = [t for n, tables in late.items() if n.endswith(" stopped") for t in tables]
        found.update(reason for table in stopped for reason in table["reason"].to_pylist())

    found: Counter[str] = Counter()
    holds()
    assert found[WHY] > 0
    assert all("ignores it" in why for why in found)


def numbered(batches: list[Rows], first: int) -> list[Rows]:
    """Batches whose rows are told apart by their last column."""
    numbers = iter(range(first, first + 1000))
    return [[(t, i, next(numbers)) for t, i, _ in rows] for rows in batches]
