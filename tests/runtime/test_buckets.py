"""Any number of buckets, any cut into epochs: the same history and the same late rows as one query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from bucket_plans import PLANS, Build, has_rows, inserts, scripted
from cluster import Cluster
from depth import DEPTH, examples, seed_of
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col, lit
from caesura.events import History, Item, violations
from caesura.io import Source
from caesura.plan import Node, Raw
from caesura.plan.prune import prune
from caesura.punctuation import Pattern, Punctuation
from caesura.runtime import Query
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

EXAMPLES = examples(4, short=2)
EACH = examples(4, short=1)
BUCKETS = (3,) if DEPTH == 1 else (1, 2, 5)
LEFT = InputSpec({"id": "key", "v": "float"}, key="id", max_rows=7)
RIGHT = InputSpec({"id": "key", "s": "name"}, key="id", max_rows=7)
LOOKED_UP = "join with a table"
"""Its late rows show the lifetimes that the lookup gave them, and retracts are matched behind it."""
FILTERED = {"where and select", "a diamond"}
"""Plans whose first step drops rows before the gate judges them; their late rows are fewer."""


@pytest.fixture(autouse=True, scope="module")
def _small_packets() -> Iterator[None]:
    """Packets of a row or two, so that what a chunk says travels in many, and courses of two rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("caesura.runtime.packets.packet.MAX_BYTES", 100)
        patch.setattr("caesura.io.ingress.future_bound.ROWS", 2)
        yield


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4)
lanes = st.lists(st.integers(0, 1), min_size=1, max_size=3)


@st.composite
def sources(draw: st.DrawFn, name: str, spec: InputSpec) -> Source:
    """A source of random rows in random lanes and batches, some late."""
    _, items = draw(streams(spec, kinds=("time",), closed=False))
    lag = draw(st.sampled_from((2, 6, 40)))
    future = draw(st.sampled_from((None, 1, 5)))
    if draw(st.booleans()):
        return inserts(name, spec.schema, items, draw(sizes), lag, future)
    return scripted(name, spec.schema, items, draw(lanes), draw(sizes), lag, future)


def alone(node: Node, pace: Any) -> tuple[list[Item], Counter[Any]]:
    query = Query(prune({"out": node}), speculate=pace)
    query.run()
    late = [row for table in query.late().values() for row in table.to_pylist()]
    return query.take("out"), Counter(map(_told, late))


def spread(
    node: Node, buckets: int, given: Sequence[Source], epochs: Sequence[int], pace: Any
) -> tuple[list[Item], Counter[Any]]:
    """The plan in buckets; each epoch takes so many batches of each source."""
    cluster = Cluster({"out": node}, buckets, speculate=pace)
    known = {s.fingerprint for s in cluster.stages.sources}
    waiting = [(s, list(s.read({}))) for s in given if s.fingerprint in known]
    turn = 0
    while True:
        size = epochs[turn % len(epochs)]
        batch: list[tuple[Source, Raw]] = [(s, raw) for s, raws in waiting for raw in raws[:size]]
        waiting = [(s, raws[size:]) for s, raws in waiting]
        turn += 1
        last = not any(raws for _, raws in waiting)
        cluster.epoch(batch, closes=last)
        if last:
            break
    late = [row for batches in cluster.late.values() for b in batches for row in b.to_pylist()]
    return cluster.items["out"], Counter(map(_told, late))


def _told(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("reason", "lane", "kind", "LE", "RE", "RE_new"))


@pytest.mark.thin(8)
@pytest.mark.parametrize("name", PLANS)
def test_buckets_and_epochs_do_not_show(name: str) -> None:
    build: Build = PLANS[name]

    @seed(seed_of(name))
    @settings(max_examples=EACH, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        sources("a", LEFT),
        sources("b", RIGHT),
        st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(any),
        st.sampled_from(("arrival", "watermark")),
    )
    def agrees(a: Source, b: Source, epochs: list[int], pace: str) -> None:
        assume(has_rows(a))
        node = build(Stream(a), Stream(b)).node
        items, late = alone(node, pace)
        wanted = History.of(items, node.schema)
        for buckets in BUCKETS:
            got, told = spread(node, buckets, [a, b], epochs, pace)
            assert violations(got) == []
            assert History.of(got, node.schema) == wanted
            if name != LOOKED_UP:
                assert told <= late if name in FILTERED else told == late

    agrees()


FIRST: dict[str, Callable[[Stream], Stream]] = {
    "where": lambda s: s.where(col("id") != 1),
    "swap": lambda s: s.select(id=col("v"), v=col("id")),
    "move": lambda s: s.select(id=col("id") + 1, v=col("v")),
    "constant": lambda s: s.select(id=lit(0, "bigint"), v=col("v")),
    "forget": lambda s: s.select("v", id=col("v")),
    "reorder": lambda s: s.select("v", "id", w=col("id")).drop("w"),
    "rename": lambda s: s.rename(k="id", id="v").rename(v="k"),
}
"""Leading steps that keep, change or drop the key."""
THEN: dict[str, Callable[[Stream], Stream]] = {
    "nothing": lambda s: s,
    "drop": lambda s: s.drop("id"),
    "distinct": lambda s: s.select("v").distinct(),
    "tumbling": lambda s: s.group_by("id").tumbling(5).agg(n=cz.count()),
    "totals": lambda s: s.group_by("v").totals(n=cz.count()),
}
WHOLE = InputSpec({"id": "key", "v": "int"}, key="id", max_rows=7)


@st.composite
def punctuated(draw: st.DrawFn) -> list[Item]:
    """Rows with punctuation on the key between them, true or not: some rows then come behind it."""
    _, items = draw(streams(WHOLE, closed=False))
    for at, values in draw(
        st.lists(st.tuples(st.integers(0, 8), st.sampled_from(WHOLE.promisable)), max_size=3)
    ):
        items.insert(min(at, len(items)), Punctuation(Pattern.of({"id": values})))
    return items


@settings(max_examples=4 * EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    punctuated(),
    st.lists(st.sampled_from(sorted(FIRST)), max_size=3),
    st.sampled_from(sorted(THEN)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_rows_behind_punctuation_on_a_key_are_refused_whatever_becomes_of_the_key(
    items: list[Item], first: list[str], then: str, sizes: tuple[int, int]
) -> None:
    stream = cz.from_items(items, WHOLE.schema, name="a", batch_size=sizes[0])
    for name in first:
        stream = FIRST[name](stream)
    node = THEN[then](stream).node
    out, late = alone(node, "arrival")
    for buckets in (1, 3):
        cluster = Cluster({"out": node}, buckets)
        cluster.run(every=sizes[1])
        assert violations(cluster.items["out"]) == []
        assert History.of(cluster.items["out"], node.schema) == History.of(out, node.schema)
        told = Counter(_told(row) for some in cluster.late.values() for b in some for row in b.to_pylist())
        assert told <= late if "where" in first else told == late


ways = st.tuples(st.lists(st.sampled_from(sorted(FIRST)), max_size=2), st.sampled_from(sorted(THEN)))


@settings(max_examples=4 * EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(punctuated(), st.lists(ways, min_size=2, max_size=3), st.integers(1, 3))
def test_several_outputs_of_one_source_each_have_their_rows_where_they_need_them(
    items: list[Item], drawn: list[tuple[list[str], str]], size: int
) -> None:
    outputs = {}
    for number, (first, then) in enumerate(drawn):
        stream = cz.from_items(items, WHOLE.schema, name="a", batch_size=size)
        for name in first:
            stream = FIRST[name](stream)
        outputs[f"{number}"] = THEN[then](stream).node
    wanted = {name: History.of(alone(node, "arrival")[0], node.schema) for name, node in outputs.items()}
    for buckets in (1, 3):
        cluster = Cluster(outputs, buckets)
        cluster.run()
        for name, node in outputs.items():
            assert History.of(cluster.items[name], node.schema) == wanted[name]
