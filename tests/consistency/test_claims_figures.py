"""The paper's figures on the engine: where there is a claim, and where there must be none."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

import caesura as cz
from caesura import Stream, col
from caesura.events import Item, Page
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.punctuation import INFINITY
from caesura.runtime import Query
from caesura.runtime.graph.edge import Edge

EVENTS = pa.schema([("tag", pa.string()), ("x", pa.int64()), ("y", pa.int64())])
INSERTS = Properties(insert_only=True)


def stream(label: str) -> Stream:
    return Stream(Input(label=label, payload=EVENTS, known=INSERTS))


def event(name: str, x: int = 0, y: int = 0) -> Page:
    batch = pa.record_batch({"tag": [name], "x": [x], "y": [y]}, schema=EVENTS)
    return Page.of(batch, le=[0], re=[INFINITY])


def met(left: Stream, right: Stream, on: str) -> Stream:
    """Pairs by one column, named after both."""
    other = right.select(on, other=col("tag")).named(f"right of {on}")
    return left.join(other, on=on, name=f"join on {on}").select(
        "x", "y", tag=cz.functions.concat(col("tag"), col("other"))
    )


class Last:
    """Works on the steps named last, when nothing else has anything."""

    name = "last"

    def __init__(self, *labels: str) -> None:
        self.labels = labels

    def pick(self, ready: Iterable[Edge]) -> Edge:
        return min(ready, key=lambda e: e.target is not None and e.target.label in self.labels)


SLOW = ("right of y",)
"""Where b2 waits; what a2 sets off goes on."""


def names(items: Iterable[Item]) -> list[str]:
    """What came, a page's rows in the order of their names."""
    return [v for i in items if isinstance(i, Page) for v in sorted(i.payload.column("tag").to_pylist())]


def claimed(query: Query) -> list[int]:
    return [claim.output["out"] for claim in query.claims]


def test_figure_1_claims_around_l_and_not_inside_it() -> None:
    left, right = stream("left"), stream("right")
    query = Query({"out": met(left, right, "x").node}, claims=cz.heeding())
    for label, name in (("left", "a"), ("left", "b"), ("right", "k"), ("right", "l")):
        query.feed(label, event(name))
        query.run()
    assert names(query.take("out")) == ["ak", "bk", "al", "bl"]
    assert {2, 4} <= set(claimed(query)) <= {0, 2, 4}
    last = query.claims[-1].prefix
    assert (last["left"].rows, last["right"].rows) == (2, 2)


def test_figure_1_without_k_claims_nothing_between_al_and_bl() -> None:
    query = Query({"out": met(stream("left"), stream("right"), "x").node}, claims=cz.heeding())
    for label, name in (("left", "a"), ("left", "b"), ("right", "l")):
        query.feed(label, event(name))
    query.run()
    assert names(query.take("out")) == ["al", "bl"]
    assert 1 not in claimed(query)
    assert claimed(query)[-1] == 2


def figure_2() -> Query:
    """O1 and O2 read the right channel at their own pace; O3 takes both."""
    left, right = stream("left"), stream("right")
    o1 = Stream(met(left, right, "x").node)
    o2 = met(right, right, "y")
    o3 = o1.join(o2.select("x", other=col("tag")), on="x", name="O3").select("x", "tag", "other")
    return Query({"out": o3.node}, schedule=Last("join on x"), claims=cz.heeding())


def test_figure_2_makes_no_claim_while_o1_has_not_seen_l() -> None:
    query = figure_2()
    query.feed("left", event("a"))
    query.feed("right", event("k"))
    query.run()
    before = len(query.claims)
    query.feed("right", event("l"))
    seen_by_o1 = next(c for c in query.graph.cells if c.label == "join on x").operator.counters
    start = seen_by_o1.pages_in
    while query.step():
        if seen_by_o1.pages_in == start and query.claiming is not None:
            rights = [c.prefix["right"].rows for c in query.claims[before:]]
            assert 2 not in rights, "l is claimed, and O1 has not seen it"
    assert query.claims[-1].prefix["right"].rows == 2


def test_figure_4_is_no_claim_although_all_active_labels_are_out() -> None:
    """b2 waits in front of one join while the other has shown it passively."""
    a, b = stream("a"), stream("b")
    both = met(a, b, "x").union(met(a, b, "y"))
    query = Query({"out": both.node}, schedule=Last(*SLOW), claims=cz.heeding())
    query.feed("a", event("a1", 1, 2))
    query.feed("b", event("b1", 1, 9))
    query.run()
    assert names(query.take("out")) == ["a1b1"]
    at_rest = len(query.claims)
    slow = [e for c in query.graph.cells if c.label in SLOW for e in c.inputs]
    for label, one in (("b", event("b2", 3, 2)), ("a", event("a2", 3, 8))):
        query.feed(label, one)
        while any(e.items for c in query.graph.cells if c.label not in SLOW for e in c.inputs):
            query.step()
    assert names(query.take("out")) == ["a2b2"]
    assert any(edge.items for edge in slow), "b2 must still wait"
    assert all(c.prefix["b"].rows < 2 for c in query.claims[at_rest:])
    assert claimed(query)[-1] < 2
    query.run()
    assert names(query.take("out")) == ["a1b2"]
    assert claimed(query)[-1] == 3


def test_tokens_claim_the_same_figure_only_when_both_joins_have_passed_it() -> None:
    a, b = stream("a"), stream("b")
    both = met(a, b, "x").union(met(a, b, "y"))
    query = Query({"out": both.node}, schedule=Last(*SLOW), claims=cz.tokens(every=100))
    for label, one in (("a", event("a1", 1, 2)), ("b", event("b1", 1, 9)), ("b", event("b2", 3, 2))):
        query.feed(label, one)
    query.feed("a", event("a2", 3, 8))
    query.token()
    query.run()
    assert claimed(query) == [3]
    assert query.claims[0].prefix["b"].rows == 2
