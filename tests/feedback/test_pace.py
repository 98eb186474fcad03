"""PACE: a part of the union, nothing too far behind the furthest start, all that is left out counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from feedback_streams import ANY, counted, feed, rows, stream
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Pattern, col
from caesura.events import History, Item, Page, violations
from caesura.events.chunks import Chunks
from caesura.runtime import Query
from caesura.testing.case import LABELS
from caesura.testing.spec import InputSpec, plain_rows
from caesura.testing.strategies import interleaved, streams

SPEC = InputSpec({"id": "key"}, key="id")


def test_rows_too_far_behind_are_left_out_counted_and_kept_for_who_asks() -> None:
    plan = stream(id="int").pace(within=5)
    query = plan.query()
    feed(query, " LE RE | id |\n 10 11 | 1 | +\n 3 4 | 2 | +\n 6 7 | 3 | +\n 12 13 | 4 | +\n 6 7 | 5 | +")
    assert [row[2] for row in rows(query, plan)] == [3, 1, 4]
    assert query.counters()["pace"].extra["too late"] == 2
    late = query.late()["pace"]
    assert late.column("id").to_pylist() == [2, 5]
    assert late.column("reason").to_pylist()[0] == "more than 5 behind the furthest start"


def test_both_inputs_are_told_what_is_too_late() -> None:
    query = stream(id="int").pace(stream("b", id="int"), within=5).query()
    feed(query, " LE RE | id |\n 10 11 | 1 | +")
    assert [[str(m.pattern) for m in query.upstream_feedback(label)] for label in "ab"] == [
        ["LE < 5"],
        ["LE < 5"],
    ]
    query = stream(id="int").pace(within=5, tells="nobody").query()
    feed(query, " LE RE | id |\n 10 11 | 1 | +")
    assert query.upstream_feedback("a") == []


def test_on_inserts_a_slow_input_does_not_hold_the_output_back() -> None:
    query = stream(id="int").pace(stream("b", id="int"), within=5).query()
    feed(query, " LE RE | id |\n 10 11 | 1 | +")
    assert [str(i) for i in query.take("out") if not isinstance(i, Page)] == ["definite: time < 5"]


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(st.data())
def test_the_law_of_pace(data: st.DataObject) -> None:
    within, tells = data.draw(st.sampled_from((0, 3, 8))), data.draw(st.sampled_from(("upstream", "nobody")))
    plan = stream(known=ANY, id="int").pace(stream("b", ANY, id="int"), within=within, tells=tells)
    query = plan.query()
    given_ = [data.draw(streams(SPEC))[1] for _ in range(2)]
    todo = [iter(items) for items in given_]
    saved: Chunks = {}
    stops = data.draw(st.integers(0, 20))
    items, mark = [], cz.INFINITY * -1
    order = interleaved([len(g) for g in given_], data.draw(st.integers(0, 9)))
    for position, number in enumerate(order):
        item = next(todo[number])
        if position == stops:
            query = restarted(query, plan, saved)
        query.feed(LABELS[number], item)
        query.run()
        fresh = query.take("out")
        items += fresh
        if isinstance(item, Page) and len(item):
            starts = item.le if item.retracts is None else item.le[~item.retracts]
            came = [p for p in fresh if isinstance(p, Page)]
            first = min((row[0] for p in came for row in p.rows() if row[2] is None), default=cz.INFINITY)
            assert first >= mark - within
            mark = max(mark, *map(int, starts), mark)
    assert violations(items) == []
    union = [row for g in given_ for row in plain_rows(g, ["id"])]
    whole = History.from_rows([(le, re, tuple(p.values())) for le, re, p in union], plan.schema)
    assert not History.of(items, plan.schema).bag - whole.bag
    every_row_is_told(query, items, [item for g in given_ for item in g], tells)
    assert all(told.get("guard state", 0) == 0 for told in counted(query).values())


def restarted(query: Query, plan: cz.Stream, saved: Chunks) -> Query:
    """The query taken up again from what it has saved."""
    saved |= query.snapshot()
    again = plan.query()
    again.restore({name: data for name, data in saved.items() if data is not None})
    return again


def every_row_is_told(query: Query, items: list[Item], came: list[Item], tells: str) -> None:
    """What came has left, or is in the late table; all that is in the late table is counted."""
    late = query.late()
    told = [row for table in late.values() for row in table.to_pylist()]
    missing = Counter((row["kind"], row["LE"], row["RE"], row["id"]) for row in told)
    assert changes(items) + missing == changes(came)
    counters = query.counters()
    above = [c.feedback.get("stopped at the output", 0) for n, c in counters.items() if n.startswith("input")]
    assert len(told) == counters["pace"].extra.get("too late", 0) + sum(above)
    assert tells == "upstream" or sum(above) == 0


def changes(items: list[Item]) -> Counter[tuple[Any, ...]]:
    """Inserts and retracts, each with the row that it is of."""
    rows = (row for page in items if isinstance(page, Page) for row in page.rows())
    ends = ((le, None if re == cz.INFINITY else re, new, row[0]) for le, re, new, row in rows)
    return Counter(("+" if new is None else "-", le, re, id_) for le, re, new, id_ in ends)


def test_rows_left_out_are_kept_for_who_asks_over_a_restart() -> None:
    plan = stream(id="int").pace(within=5)
    query, again = plan.query(), plan.query()
    feed(query, " LE RE | id |\n 10 11 | 1 | +\n 3 4 | 2 | +")
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    assert again.late()["pace"].column("id").to_pylist() == [2]
    assert again.counters()["pace"].extra["too late"] == 1
    assert again.late() == {}


def test_imputation_catches_up_because_pace_speaks() -> None:
    archive = cz.Archive(pa.table({"id": [1, 2], "v": [50, 60]}), ("id",), "v")
    came = {}
    for tells in ("nobody", "upstream"):
        readings = stream(id="int", v="int")
        dirty = readings.where(col("v").is_null()).impute("v", archive, budget=1)
        plan = readings.where(col("v").is_not_null()).pace(dirty, within=6, tells=tells)  # type: ignore[arg-type]
        query = plan.query()
        for t in range(0, 120, 4):
            nulls = "\n".join(f" {t} {t + 1} | {1 + n % 2} null | +" for n in range(5))
            body = f"{nulls}\n {t + 2} {t + 3} | 1 7 | +"
            feed(query, f" LE RE | id v |\n {body}\n-- {t + 3} --")
        feed(query, " LE RE | id v |\n-- definite: * --")
        came[tells] = len(rows(query, plan))
    assert came["upstream"] > 1.5 * came["nobody"]


def test_desired_rows_are_filled_first_and_nothing_else_changes() -> None:
    archive = cz.Archive(pa.table({"id": [1, 2], "v": [50, 60]}), ("id",), "v")
    order: dict[bool, list[int]] = {}
    for desired in (False, True):
        plan = stream(id="int", v="int").impute("v", archive, budget=1)
        query = plan.query()
        if desired:
            query.desire(Pattern(id=2))
        body = "\n".join(f" {t} {t + 1} | {1 + t % 2} null | +" for t in range(10))
        feed(query, f" LE RE | id v |\n{body}")
        for t in range(10, 20):
            feed(query, f" LE RE | id v |\n {t} {t + 1} | 1 9 | +")
        pages = [p for p in query.take("out") if isinstance(p, Page)]
        filled = [r[3] for p in pages for r in p.rows() if r[3][1] in (50, 60)]
        order[desired] = [i for i, row in enumerate(filled) if row[0] == 2]
        assert sorted(filled) == [(1, 50)] * 5 + [(2, 60)] * 5
    assert sorted(order[True])[2] < sorted(order[False])[2]
