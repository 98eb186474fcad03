"""Rows that are struck from the list of `impute` can be asked for, with the reason, on every host."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from feedback_streams import feed, rows, stream
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_feedback_buckets import EXAMPLES, Rows, run, source, timed
from test_taking_turns import SOME, tens

import caesura as cz
from caesura import Pattern, Stream, col
from caesura.events import Page


def test_rows_struck_from_the_list_are_late_with_the_reason_and_survive_a_restart() -> None:
    plan = stream(id="int", v="int").impute("v", tens, budget=1)
    query, again = plan.query(), plan.query()
    feed(query, SOME)
    query.assume(Pattern(id=3))
    assert query.counters()["impute"].extra["struck"] == 1
    assert query.state_rows == 1
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    for each in (query, again):
        [late] = each.late()["impute"].to_pylist()
        reason = "waited to be filled when feedback came: assumed id = 3"
        assert late == {"reason": reason, "kind": "+", "LE": 1, "RE": 2, "id": 3, "v": None}
        assert each.late() == {}
        each.run()
        assert 30 not in [row[3] for row in rows(each, plan)]


def test_of_very_many_struck_rows_the_first_are_kept_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("caesura.ops.impute.KEEP", 2)
    query = stream(id="int", v="int").impute("v", tens, budget=1).query()
    feed(query, SOME + "\n 1 2 | 4 null | +")
    query.assume(Pattern(id=[2, 3, 4]))
    assert query.late()["impute"].num_rows == 2
    assert query.counters()["impute"].extra["struck"] == 3


def test_rows_that_were_struck_are_missed_in_no_result_after_a_withdrawal() -> None:
    plan = stream(id="int", v="int").impute("v", tens, budget=1)
    windows = plan.group_by("id").tumbling(10).agg(n=cz.count())
    query = windows.query()
    feed(query, SOME)
    query.withdraw(query.assume(Pattern(id=3)))
    feed(query, " LE RE | id v |\n 4 5 | 3 7 | +\n 14 15 | 3 7 | +\n-- definite: * --")
    query.run()
    assert [row for row in rows(query, windows) if row[2] == 3] == [(10, 20, 3, 1)]


many = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(-2, 5)), min_size=3, max_size=6)


def spoken_to(plan: Stream, steps: int, said: Pattern) -> tuple[list[Any], list[pa.RecordBatch], int]:
    """What leaves the embedded host, what is late, and how many rows had come when feedback did."""
    query = plan.query()
    for _ in range(steps):
        query.step()
    early = query.counters()["impute"].rows_in
    query.assume(said)
    query.run()
    while query.step():
        pass
    tables = query.late()
    return query.take("out"), tables["impute"].to_batches() if "impute" in tables else [], early


@pytest.mark.parametrize("buckets", [0, 1, 3])
def test_a_row_that_came_before_feedback_leaves_or_is_struck(buckets: int) -> None:
    """Zero buckets is the embedded host."""

    @settings(max_examples=2 * EXAMPLES, deadline=None)
    @example([[(0, 0, -1)] * 4] * 4, 2, 0, 1)
    @given(st.lists(many, min_size=4, max_size=4), st.integers(1, 3), st.integers(0, 1), st.integers(1, 2))
    def holds(given_: list[Rows], when: int, key: int, budget: int) -> None:
        came, said = timed(given_), Pattern(id=key)
        plan = Stream(source(came, 100)).impute("v", tens, missing=col("v") < 2, budget=budget)
        if buckets:
            cluster = run(plan, buckets, 4, {when: [said]})
            items, late = cluster.items["out"], cluster.late.get("impute", [])
            early = sum(map(len, came[:when]))
        else:
            items, late, early = spoken_to(plan, when, said)
        left = Counter(
            (le, row[0]) for page in items if isinstance(page, Page) for le, _, _, row in page.rows()
        )
        rows_ = [(t, i) for some in came for t, i, _ in some]
        told = [row for table in late for row in table.to_pylist()]
        reason = f"waited to be filled when feedback came: assumed id = {key}"
        assert {row["reason"] for row in told} <= {reason}
        wanted = Counter(row for row in rows_[:early] if row[1] == key) - left
        assert Counter((row["LE"], row["id"]) for row in told) == wanted
        assert not Counter(row for row in rows_ if row[1] != key) - left
        found.append(len(told))

    found: list[int] = []
    holds()
    assert sum(found) > 0
