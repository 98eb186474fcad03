"""Pages that wait for windows to close: what leaves, and when, is what would leave if they did not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col
from caesura.events import History, Item, Page, draw
from caesura.ops.input import Input
from caesura.plan import Node, Properties
from caesura.plan.prune import prune
from caesura.punctuation import Pattern, Punctuation
from caesura.runtime import Query
from caesura.runtime.graph import patience
from caesura.runtime.query.result import delivered, query_of
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

SPEC = InputSpec({"id": "key", "v": "float"}, key="id", max_rows=12, insert_only=True)
MADE: dict[str, Any] = {"n": cz.count(), "s": cz.sum("v"), "m": cz.max("v")}
PLANS: dict[str, Any] = {
    "hopping": lambda s: s.where(col("v") > 0).group_by("id").hopping(6, every=2).agg(**MADE),
    "tumbling": lambda s: s.select("id", v=col("v") + 1).group_by("id").tumbling(5, offset=2).agg(**MADE),
    "gaps": lambda s: s.hopping(2, every=5).agg(**MADE),
    "in a row": lambda s: s.group_by("id").tumbling(3).agg(**MADE).tumbling(6).agg(k=cz.sum("n")),
    "two": lambda s: s.tumbling(4).agg(n=cz.count()).union(s.tumbling(6).agg(n=cz.count())),
    "by filter": lambda s: s.where(col("v") > 1).tumbling(4).agg(n=cz.count()).union(s.select(n=col("id"))),
}


def source(points: bool = False) -> Stream:
    return Stream(Input(label="rows", payload=SPEC.schema, known=Properties(insert_only=True, points=points)))


def plain(node: Node) -> Query:
    return Query(prune({"out": delivered(node, "final")}), speculate="watermark")


def left(items: list[Item], node: Node) -> tuple[str, list[str]]:
    """What some items mean, however they are cut into pages."""
    said = [str(item) for item in items if not isinstance(item, Page)]
    return draw([History.of(items, node.schema).ordered()], schema=node.schema), said


@pytest.mark.thin(3)
@pytest.mark.parametrize("limit", [1, 3, 4096])
@pytest.mark.parametrize("name", PLANS)
def test_what_leaves_after_every_item_is_what_leaves_without_waiting(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "MAX_WAITING", limit)

    @settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
    @given(streams(SPEC), st.sets(st.integers(0, 20)))
    def agrees(drawn: Any, looks: set[int]) -> None:
        node = PLANS[name](source()).node
        waiting, eager = query_of(node, "final", None, None), plain(node)
        for number, item in enumerate(drawn[1]):
            for query in (waiting, eager):
                query.feed("rows", item)
                query.run()
            assert left(waiting.take("out"), node) == left(eager.take("out"), node)
            if number in looks:
                assert waiting.state_rows == eager.state_rows

    agrees()


def fed(query: Query, *times: int) -> None:
    for t in times:
        query.feed("rows", Page.of(pa.record_batch({"id": [1], "v": [2.0]}), le=[t], re=[t + 1]))
        query.feed("rows", Punctuation(Pattern.before(t)))
        query.run()


def test_small_pages_are_taken_together_when_a_window_closes() -> None:
    query = query_of(PLANS["tumbling"](source()).node, "final", None, None)
    fed(query, *range(2, 12))
    pages = {cell.label: cell.operator.counters.pages_in for cell in query.graph.cells}
    assert pages["tumbling"] < 5
    assert query.counters()["tumbling"].rows_in == 10


def test_a_snapshot_has_what_waits() -> None:
    node = PLANS["tumbling"](source()).node
    first, second = (query_of(node, "final", None, None) for _ in range(2))
    fed(first, 3, 4)
    second.restore({name: data for name, data in first.snapshot().items() if data is not None})
    fed(second, 5, 9)
    assert [row[3] for row in History.of(second.take("out"), node.schema).page.rows()] == [(1, 3, 9.0, 3.0)]


def test_feedback_ends_the_waiting() -> None:
    query = query_of(PLANS["tumbling"](source()).node, "final", None, None)
    fed(query, 3, 4)
    query.assume(col("id") == 1)
    fed(query, 5, 9)
    assert not [item for item in query.take("out") if isinstance(item, Page)]
    assert all(edge.patience is None for edge in query.graph.edges)


def test_who_looks_at_a_query_makes_it_read_nothing_more() -> None:
    rows = cz.from_rows([{"ts": t, "id": 1, "v": 2.0} for t in range(40)], time="ts", batch_size=1)
    query = PLANS["tumbling"](rows).query(output="final")
    for _ in range(9):
        query.step()
    read = query.counters()["read"].rows_out
    assert 0 < read < 40
    assert query.counters()["tumbling"].rows_in == read
    query.run()
    assert query.counters()["tumbling"].rows_in == 40
