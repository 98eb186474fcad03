"""Bounds on state and lag from rates and periods, held against what is measured when the plan runs."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import caesura as cz
from caesura import qre
from caesura.api.grouped import Grouped
from caesura.contracts import ContractError
from caesura.contracts.bounds import SourceRate as Rate
from caesura.contracts.bounds import bounds
from caesura.events import Page
from caesura.expr import col
from caesura.ops.aggregate import Aggregate, Totals, Tumbling
from caesura.ops.deliver import Deliver
from caesura.ops.input import Input
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.pace import Pace
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.plan import Node, Properties
from caesura.punctuation import MIN_TIME, Intent, Pattern, Punctuation, cti, value
from caesura.runtime import Query

LONGEST, LAG, PERIOD, PER_TICK, TICKS = 3, 4, 5, 2, 60
SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64())])
PACE = Rate(events=PER_TICK, per=1, within=LAG + PERIOD)
COUNT = (("n", Aggregate("count")), ("top", Aggregate("max", col("x"))))
KEYED = {"a": "{[[time:+]], [[id:#]]}", "b": "{[[time:+]], [[id:#]]}"}

PLANS: dict[str, Callable[[Node, Node], Node]] = {
    "where": lambda a, b: Where(inputs=(a,), predicate=col("x") >= 0),
    "inner join": lambda a, b: Join(inputs=(a, renamed(b)), on=(("id", "id"),)),
    "left join": lambda a, b: Join(inputs=(a, renamed(b)), on=(("id", "id"),), how="left"),
    "distinct": lambda a, b: Layers(inputs=(a,), count="distinct"),
    "difference": lambda a, b: Layers(inputs=(a, b), count="bag"),
    "tumbling": lambda a, b: Tumbling(inputs=(a,), group=("id",), size=6, aggregates=COUNT),
    "totals": lambda a, b: Totals(inputs=(a,), group=("id",), aggregates=COUNT),
    "final": lambda a, b: Deliver(inputs=(a,), mode="final"),
    "hopping": lambda a, b: by_id(a).hopping(6, every=4).agg(n=cz.count()).node,
    "snapshot": lambda a, b: by_id(a).snapshot().agg(n=cz.count()).node,
    "session": lambda a, b: by_id(a).session(2).agg(n=cz.count()).node,
    "count by start": lambda a, b: by_id(a).count_by_start(2).agg(n=cz.count()).node,
    "query": lambda a, b: qre.over(a, qre.iter1(qre.atom(op=col("x")), qre.sum())),
    "query per key": lambda a, b: qre.over(
        a, qre.partition(qre.iter1(qre.atom(op=col("x")), qre.sum()), by="id")
    ),
    "union": lambda a, b: Union(inputs=(a, b)),
    "pace": lambda a, b: Pace(inputs=(a, b), within=3),
    "final windows over longer events": lambda a, b: Deliver(
        inputs=(
            Tumbling(
                inputs=(Lifetime(inputs=(a,), rule="set_duration", amount=7),),
                group=("id",),
                size=6,
                aggregates=COUNT,
            ),
        ),
        mode="final",
    ),
}


def by_id(node: Node) -> Grouped:
    return cz.Stream(node).group_by("id")


def renamed(node: Node) -> Node:
    return Select(inputs=(node,), columns=(("id", col("id")), ("y", col("x"))))


def page(tick: int) -> Page:
    """Two events that start at a tick: one id that ends soon, and one that comes again."""
    ids, xs = [tick, tick // 4], [tick, -tick]
    rows = pa.RecordBatch.from_arrays([pa.array(ids), pa.array(xs)], schema=SCHEMA)
    return Page.of(rows, le=[tick, tick], re=[tick + LONGEST, tick + 1])


def measured(node: Node) -> tuple[dict[str, int], int]:
    """The most rows that each step held, and the most that the output's CTI was behind."""
    query = Query({"out": node}, unused="ab")
    most: dict[str, int] = {}
    out, behind = MIN_TIME, 0
    for tick in range(TICKS):
        for label in "ab":
            query.feed(label, page(tick))
        query.run()
        for name, counters in query.counters().items():
            most[name] = max(most.get(name, 0), counters.state_rows)
        if tick % PERIOD == 0:
            for label in "ab":
                query.feed(label, cti(tick - LAG))
                for done in range(tick - LAG - PERIOD, tick - LAG):
                    query.feed(label, Punctuation(Pattern(id=value(done))))
        query.run()
        for item in query.take("out"):
            if not isinstance(item, Page) and item.intent is Intent.DEFINITE and item.pattern.time_bound:
                out = max(out, item.pattern.time_bound) if not item.pattern.without_time().attributes else out
        behind = max(behind, tick - out) if out > 0 else behind
    return most, behind


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", PLANS)
def test_a_plan_holds_no_more_and_lags_no_more_than_was_computed(name: str) -> None:
    known = Properties(max_duration=LONGEST)
    a, b = (Input(label=label, payload=SCHEMA, known=known) for label in "ab")
    node = PLANS[name](a, b)
    labels = {child.label for child in _inputs(node)}
    schemes = {label: KEYED[label] for label in labels}
    promised = bounds(node, dict.fromkeys(labels, PACE), schemes=schemes)
    most, behind = measured(node)
    for bound, rows in zip(promised, most.values(), strict=True):
        assert rows <= bound.rows, (str(bound), rows)
    last = promised[-1]
    assert last.behind is not None and behind <= last.behind
    assert last.rows <= 60 * max(1, list(most.values())[-1]) ** (2 if name == "left join" else 1)


def _inputs(node: Node) -> list[Input]:
    return [node] if isinstance(node, Input) else [i for child in node.inputs for i in _inputs(child)]


def test_the_thesis_own_numbers_bound_a_window_count():
    clicks = Input(label="clicks", payload=SCHEMA, known=Properties(points=True, max_duration=1))
    node = Layers(inputs=(clicks,), count="distinct")
    one, two = bounds(node, {"clicks": Rate(events=1000, per=5, within=5)})
    assert one.rows == 0 and two.rows == 2 * 1000 * 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rates": {}}, "nothing is known of the rate of 'a'"),
        ({"rates": {"z": PACE}}, "no source 'z'"),
        ({"rates": {"a": PACE}}, "nothing bounds the lifetimes of 'a'"),
        ({"rates": {"a": PACE}, "schemes": {"a": "none"}}, "an unsafe plan has no bounds"),
    ],
)
def test_bounds_are_refused_where_something_is_not_known(given, said):
    node = Where(inputs=(Input(label="a", payload=SCHEMA),), predicate=col("x") > 0)
    node = Layers(inputs=(node,), count="distinct") if "schemes" in given else node
    with pytest.raises(ContractError, match=said):
        bounds(node, **given)


def test_a_pace_that_describes_no_stream_is_refused():
    with pytest.raises(ContractError, match="describes no stream"):
        Rate(events=0, per=1, within=0)


def reachable(edges: cz.Stream) -> cz.Stream:
    """Who reaches whom while the edges between them live."""
    hops = edges.select(b=col("a"), c=col("b"))
    return cz.fixpoint(
        edges, lambda r: r.join(hops, on="b").select("a", b=col("c")), keep="distinct", name="reach"
    )


def test_a_loop_holds_no_more_than_follows_from_the_rate_of_what_goes_around_it() -> None:
    rows = [{"ts": t, "a": t % 7, "b": (t + 1) % 7} for t in range(80)]
    read = cz.from_rows(rows, time="ts", punctuate=cz.delay(2), batch_size=1, name="edges")
    loop = reachable(read.set_duration(3))
    rates = {"edges": (1, 1, 3), "reach": (6, 1, 4)}
    promised = loop.bounds(rates, lifetimes={"reach": 3})
    query = loop.query()
    most: dict[str, int] = {}
    while query.step():
        for name, counters in query.counters().items():
            most[name] = max(most.get(name, 0), counters.state_rows)
    assert most["join"] > 0 and most["reach"] > 0
    for bound, rows_held in zip(promised, most.values(), strict=True):
        assert rows_held <= bound.rows, (str(bound), rows_held)


def test_a_loop_without_a_rate_or_a_lifetime_has_no_bounds() -> None:
    read = cz.from_rows([{"ts": 1, "a": 1, "b": 2}], time="ts", punctuate=cz.delay(2), name="edges")
    loop = reachable(read.set_duration(3))
    with pytest.raises(ContractError, match="how many rows go around the loop 'reach'"):
        loop.bounds({"edges": (1, 1, 3)})
    with pytest.raises(ContractError, match="nothing bounds the lifetimes of 'reach'"):
        loop.bounds({"edges": (1, 1, 3), "reach": (6, 1, 4)})
