"""Feedback on loops: what goes around unchanged reaches the seed, all else is kept back on the way out."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import loop_oracle as slow
import pytest
from cluster import Cluster
from depth import examples
from feedback_laws import check_feedback_laws, covers, patterns
from fixpoint_law_cases import CASES, LINKS, NODES, ROADS, nearest, reached
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Pattern, col, lit
from caesura.api import Stream
from caesura.events import History, Item, parse, violations
from caesura.feedback.messages import assumed
from caesura.fixpoint.node import Fixpoint
from caesura.ops.input import Input
from caesura.plan import Node, Properties
from caesura.runtime import Query
from caesura.runtime.query.result import run
from caesura.testing.case import LawCase
from caesura.testing.oracles.rows import Rows
from caesura.testing.strategies import streams

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))
from bucket_plans import scripted

EXAMPLES = examples(2)


def seeds(nodes: Node) -> Stream:
    return Stream(nodes).select(src=col("node"), at=col("node"), n=lit(0, "bigint"))


def walks(nodes: Node, links: Node) -> Node:
    """Every way of up to three hops, one row for each."""

    def hop(r: Stream) -> Stream:
        met = r.where(col("n") < 3).join(Stream(links), on={"at": "a"})
        return met.select("src", at=col("b"), n=col("n") + 1)

    return cz.fixpoint(seeds(nodes), hop).node


def doubled(nodes: Node, links: Node) -> Node:
    """Rows of the loop that meet rows of the loop with the same source."""

    def hop(r: Stream) -> Stream:
        met = r.where(col("n") < 2).join(r.where(col("n") < 2).select("src", to=col("at"), m=col("n")), "src")
        far = met.join(Stream(links), on={"to": "a"})
        return far.where(col("m") == col("n")).select("src", at=col("b"), n=col("n") + 1)

    return cz.fixpoint(seeds(nodes), hop).node


def moved(nodes: Node, links: Node) -> Node:
    """Each hop takes two ticks."""

    def hop(r: Stream) -> Stream:
        later = r.where(col("n") < 2).shift(2).join(Stream(links), on={"at": "a"})
        return later.select("src", at=col("b"), n=col("n") + 1)

    return cz.fixpoint(seeds(nodes), hop).node


def bounded(nodes: Node, links: Node) -> Node:
    """As many hops as are allowed; the row behind the last is marked."""

    def hop(r: Stream) -> Stream:
        return r.join(Stream(links), on={"at": "a"}).select("src", at=col("b"), n=col("n") + 1)

    return cz.fixpoint(seeds(nodes), hop, max_rounds=2).node


def reach(nodes: Node, links: Node) -> Node:
    """From where which node can be reached, each pair once."""

    def hop(r: Stream) -> Stream:
        return r.join(Stream(links), on={"at": "a"}).select("src", at=col("b"))

    seed = Stream(nodes).select(src=col("node"), at=col("node"))
    return cz.fixpoint(seed, hop, keep="distinct").node


def shortest(nodes: Node, links: Node) -> Node:
    """From where which node can be reached in how few hops."""

    def hop(r: Stream) -> Stream:
        met = r.where(col("n") < 4).join(Stream(links), on={"at": "a"})
        return met.select("src", at=col("b"), n=col("n") + 1)

    return cz.fixpoint(seeds(nodes), hop, keep=cz.least("n", per=["src", "at"])).node


def dangling(nodes: Node, links: Node) -> Node:
    """Ways that also end where no link leads on."""

    def hop(r: Stream) -> Stream:
        met = r.join(Stream(links), on={"at": "a"}, how="left")
        return met.select("src", at=col("b"), n=col("n") + 1)

    return cz.fixpoint(seeds(nodes), hop, max_rounds=2).node


def slow_walks(nodes: Rows, links: Rows, *, most: int = 3, later: int = 0, marks: bool = False) -> Rows:
    """Round by round: rows that meet a link, while they both live."""
    found = [(le, re, {"src": p["node"], "at": p["node"], "n": 0}) for le, re, p in nodes]
    last = list(found)
    while last:
        last = [
            (max(le + later, x), min(re + later, y), {"src": p["src"], "at": q["b"], "n": p["n"] + 1})
            for le, re, p in last
            for x, y, q in links
            if p["n"] < most
            and p["at"] is not None
            and p["at"] == q["a"]
            and max(le + later, x) < min(re + later, y)
        ]
        found += last
    return [(le, re, {**p, "cut": p["n"] >= most} if marks else p) for le, re, p in found]


def slow_doubled(nodes: Rows, links: Rows) -> Rows:
    found = [(le, re, {"src": p["node"], "at": p["node"], "n": 0}) for le, re, p in nodes]
    last = list(found)
    while last:
        last = [
            (start, end, {"src": p["src"], "at": link["b"], "n": p["n"] + 1})
            for a, b, p in last
            for c, d, q in last
            for e, f, link in links
            for start, end in [(max(a, c, e), min(b, d, f))]
            if p["n"] < 2 and p["src"] is not None and p["src"] == q["src"]
            if q["at"] is not None and q["at"] == link["a"] and start < end
        ]
        found += last
    return found


def slow_reach(nodes: Rows, links: Rows, *, counts: bool = False) -> Rows:
    """At every instant, all pairs, each with the fewest hops."""

    def hop(rows: list[Any], links: list[Any]) -> list[Any]:
        return [
            {"src": r["src"], "at": x["b"], "n": r["n"] + 1}
            for r in rows
            for x in links
            if r["at"] is not None and r["at"] == x["a"] and r["n"] < 4
        ]

    def best(rows: list[Any]) -> list[Any]:
        least: dict[Any, int] = {}
        for p in rows:
            at = (p["src"], p["at"])
            least[at] = min(p["n"], least.get(at, p["n"]))
        return [{"src": s, "at": a, **({"n": n} if counts else {})} for (s, a), n in least.items()]

    start = [(le, re, {"src": p["node"], "at": p["node"], "n": 0}) for le, re, p in nodes]
    return slow.snapshots(start, hop, links, best=best)


def case(name: str, build: Any, oracle: Any) -> LawCase:
    return LawCase(name, build=build, oracle=lambda *rows, **_: oracle(*rows), inputs=(NODES, LINKS))


OWN = [
    case("walks", walks, slow_walks),
    case("moved", moved, partial(slow_walks, most=2, later=2)),
    case("bounded", bounded, partial(slow_walks, most=3, marks=True)),
    case("doubled", doubled, slow_doubled),
    case("reach", reach, slow_reach),
    case("shortest", shortest, partial(slow_reach, counts=True)),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", [*OWN, *CASES], ids=str)
def test_law_6_holds_on_a_loop(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_feedback_laws(case, data)

    holds()


PLANS: dict[str, Any] = {
    "walks": walks,
    "doubled": doubled,
    "bounded": bounded,
    "dangling": dangling,
    "reached": lambda *a: reached(*a, "hybrid"),
    "reach": reach,
    "shortest": shortest,
    "reach in all buckets": lambda *a: crossing(reach(*a)),
    "walks in all buckets": lambda *a: crossing(walks(*a)),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize("name", PLANS)
def test_law_6_holds_on_a_loop_in_buckets(name: str, buckets: int) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        sources = []
        for number, spec in enumerate((NODES, LINKS)):
            _, items = data.draw(streams(spec, kinds=("time",), closed=False))
            sources.append(scripted(f"s{number}", spec.schema, items, [0], data.draw(CUTS), 3))
        node = PLANS[name](*sources)
        moments = st.dictionaries(st.integers(0, 3), st.lists(patterns(node.schema), max_size=2), max_size=2)
        said = data.draw(moments)
        items = spread(node, buckets, said)
        assert violations(items) == []
        whole, got = run(node).history, History.of(items, node.schema)
        assert not got.bag - whole.bag
        missing = list((whole.bag - got.bag).elements())
        assert all(covers([p for some in said.values() for p in some], node.schema, missing))

    holds()


CUTS = st.sampled_from(([2, 1], [1], [5]))


def crossing(node: Node) -> Node:
    assert isinstance(node, Fixpoint)
    return replace(node, across=True)


def spread(node: Node, buckets: int, said: dict[int, list[Pattern]]) -> list[Item]:
    """The plan in buckets, batch by batch, with things said before some of them."""
    cluster = Cluster({"out": node}, buckets)
    feeds = [(s, list(s.read({}))) for s in cluster.stages.sources]
    for number in range(max([4, *(len(raws) for _, raws in feeds)])):
        for pattern in said.get(number, ()):
            cluster.say(assumed(pattern, standing=True))
        cluster.epoch([(s, raws[number]) for s, raws in feeds if number < len(raws)])  # type: ignore[misc]
    cluster.epoch([], closes=True)
    cluster.drain()
    return cluster.items["out"]


SEEDS = " LE RE | node |\n 0 9 | 1 | +\n 0 9 | 2 | +"
WAYS = " LE RE | a b |\n 0 9 | 1 2 | +\n 0 9 | 2 3 | +\n 0 9 | 3 4 | +\n-- definite: * --"
INSERTS = Properties(insert_only=True)


def started(build: Any, *said: Pattern) -> tuple[Query, Stream]:
    """A loop that has its seeds and has heard something, but has no links yet."""
    nodes, links = (
        Input(label=label, payload=spec.schema, known=INSERTS)
        for label, spec in zip("ab", (NODES, LINKS), strict=True)
    )
    plan = Stream(build(nodes, links))
    query = plan.query()
    for item in parse(SEEDS, NODES.schema):
        query.feed("a", item)
    query.run()
    query.take("out")
    for pattern in said:
        query.assume(pattern)
    return query, plan


def started_items(plan: Stream) -> list[Item]:
    """What `started` has let out."""
    query = plan.query()
    for item in parse(SEEDS, NODES.schema):
        query.feed("a", item)
    query.run()
    return query.take("out")


def finish(query: Query, plan: Stream) -> list[tuple[Any, ...]]:
    """What still comes out."""
    for label, schema, text in (
        ("b", LINKS.schema, WAYS),
        ("a", NODES.schema, SEEDS + "\n-- definite: * --"),
    ):
        for item in parse(text, schema):
            query.feed(label, item)
    query.run()
    return sorted(p for _, _, p in History.of(query.take("out"), plan.schema).rows())


def test_what_goes_around_unchanged_is_told_to_the_seed_and_let_go_in_the_loop() -> None:
    query, plan = started(walks, Pattern(src=1))
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["node = 1"]
    came = finish(query, plan)
    assert came == sorted([(2, 2, 0)] + 2 * [(2, 3, 1), (2, 4, 2)])
    counted = query.counters()
    assert counted["join"].feedback["purged rows"] == 1
    assert counted["join"].rows_out == 4  # both seeds of 2, two hops each; without feedback there are 10
    assert all(c.feedback.get("guard state", 0) == 0 for c in counted.values())


def test_other_rows_are_kept_back_on_their_way_out_but_go_around() -> None:
    query, plan = started(walks, Pattern(at=2))
    assert query.upstream_feedback("a") == []
    came = finish(query, plan)
    assert (1, 3, 2) in came and (1, 4, 3) in came
    assert not [row for row in came if row[1] == 2]
    assert query.counters()["fixpoint"].feedback["stopped at the output"] == 3


@pytest.mark.parametrize("build", [reach, shortest])
def test_a_loop_that_replaces_rows_is_told_of_values_that_it_holds_no_row_of(build: Any) -> None:
    query, plan = started(build, Pattern(src=3), Pattern(src=1))
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["node = 3"]  # of 1 there is a row
    came = finish(query, plan)
    assert {row[0] for row in came} == {2}
    counted = query.counters()
    assert counted["fixpoint"].feedback["waiting to give up"] == 1
    assert all(c.feedback.get("guard state", 0) == 0 for c in counted.values())


def test_a_row_that_was_sent_is_still_replaced_by_a_better_one() -> None:
    query, plan = started(shortest)
    head = " LE RE | a b |\n"
    ways = [f"{head} 0 9 | 1 2 | +\n 0 9 | 2 3 | +", f"{head} 0 9 | 1 3 | +\n-- definite: * --"]
    items: list[Item] = []
    for text in ways:
        for item in parse(text, LINKS.schema):
            query.feed("b", item)
        query.run()
        items += query.take("out")
        query.assume(Pattern(src=1))
    for item in parse(" LE RE | node |\n-- definite: * --", NODES.schema):
        query.feed("a", item)
    query.run()
    items += query.take("out")
    rows = {p for _, _, p in History.of([*started_items(plan), *items], plan.schema).rows()}
    assert (1, 3, 2) not in rows  # the way of one hop may be missing, that of two may not stay
    assert {(2, 2, 0), (2, 3, 1)} <= rows


def test_values_that_a_loop_held_are_told_when_punctuation_has_freed_them() -> None:
    query, _ = started(reach, Pattern(src=1))
    for label, schema in (("a", NODES.schema), ("b", LINKS.schema)):
        for item in parse(f" LE RE | {' '.join(schema.names)} |\n-- 10 --", schema):
            query.feed(label, item)
    query.run()
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["node = 1"]


@pytest.mark.parametrize("build", [nearest, reached])
def test_a_loop_that_replaces_rows_tells_nobody(build: Any) -> None:
    spec = ROADS if build is nearest else LINKS
    nodes, links = (Input(label=n, payload=s.schema) for n, s in (("a", NODES), ("b", spec)))
    query = Stream(build(nodes, links, "hybrid")).query()
    query.assume(Pattern(node=1))
    assert query.upstream_feedback("a") == query.upstream_feedback("b") == []


def test_a_loop_says_what_it_would_do() -> None:
    nodes, links = (Input(label=n, payload=s.schema, place="") for n, s in (("a", NODES), ("b", LINKS)))
    plan = Stream(walks(nodes, links))
    told = plan.explain("feedback", pattern=Pattern(src=1)).splitlines()
    assert next(line for line in told if "fixpoint" in line).split(": ", 1)[1] == (
        "stops src = 1 at its inputs; sends src = 1 to r1; sends src = 1 to r6"
    )
    other = plan.explain("feedback", pattern=Pattern(at=1)).splitlines()
    assert other[1].split(": ", 1)[1] == (
        "keeps back at = 1 at its output; sends nothing on, since it has no exact form over an input"
    )
