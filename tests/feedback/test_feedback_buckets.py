"""Feedback in buckets: each bucket speaks for itself, and together they still obey law 6."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster
from depth import examples
from feedback_laws import covers, patterns
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Pattern, Stream, col
from caesura.events import History, Page, violations
from caesura.events.identity import Secret
from caesura.feedback.messages import assumed
from caesura.io import Reader, Source, delay
from caesura.io.ingress.shape import Shape
from caesura.plan import Raw
from caesura.plan.cut import Exchange
from caesura.runtime.buckets.stage0 import route

EXAMPLES = examples(2)
KNOWN = Secret(bytes(Secret.SIZE))
SCHEMA = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("v", pa.int64())])
Rows = list[tuple[int, int, int]]


class Listed(Reader):
    """A reader that gives these batches."""

    lanes, punctuates, schema = 1, False, SCHEMA

    def __init__(self, key: str, batches: list[Rows]) -> None:
        self.key, self.raws, at = key, [], 0
        for rows in batches:
            columns = [pa.array([r[i] for r in rows], pa.int64()) for i in range(3)]
            self.raws.append(Raw(0, at, pa.RecordBatch.from_arrays(columns, schema=SCHEMA)))
            at += len(rows)

    def read(self, offsets: Any) -> Any:
        return iter(self.raws)

    def describe(self) -> str:
        return self.key


def source(batches: list[Rows], lag: int = 0, key: str = "a") -> Source:
    return Source(reader=Listed(key, batches), shape=Shape.of(time="ts"), policy=delay(lag), name=key)


def run(
    plan: Stream,
    buckets: int,
    batches: int,
    said: dict[int, list[Pattern]],
    withdrawn: dict[int, list[Pattern]] | None = None,
    *,
    beside: dict[str, Stream] | None = None,
) -> Cluster:
    """Runs batch by batch, saying things before some of them, and taking some back."""
    outputs = {"out": plan, **(beside or {})}
    cluster = Cluster({name: each.node for name, each in outputs.items()}, buckets)
    feeds = [(s, list(s.read({}))) for s in cluster.stages.sources]
    for number in range(batches):
        for pattern in said.get(number, ()):
            cluster.say(assumed(pattern, standing=True))
        for pattern in (withdrawn or {}).get(number, ()):
            cluster.say(assumed(pattern, standing=True, withdrawn=True))
        cluster.epoch([(s, raws[number]) for s, raws in feeds if number < len(raws)])  # type: ignore[misc]
    cluster.epoch([], closes=True)
    cluster.drain()
    return cluster


PLANS = {
    "where": lambda a, b: a.where(col("v") > 0),
    "windows": lambda a, b: a.group_by("id").tumbling(5).agg(n=cz.count(), top=cz.max("v")),
    "windows of windows": lambda a, b: (
        a.group_by("id").tumbling(5).agg(n=cz.count()).group_by("n").tumbling(10).agg(k=cz.count())
    ),
    "totals": lambda a, b: a.group_by("id").totals(n=cz.count()),
    "distinct": lambda a, b: a.select("id").set_duration(4).distinct(),
    "join": lambda a, b: a.set_duration(3).join(b.select("id", w=col("v")).set_duration(3), "id"),
    "left join": lambda a, b: a.set_duration(3).join(
        b.select("id", w=col("v")).set_duration(3), "id", how="left"
    ),
    "join of windows": lambda a, b: (
        a.group_by("id")
        .tumbling(5)
        .agg(n=cz.count())
        .join(b.group_by("id").tumbling(5).agg(m=cz.count()), "id", how="full")
    ),
}
PLANS |= {
    "feedback from a stream": lambda a, b: (
        a.group_by("id")
        .tumbling(5)
        .agg(n=cz.count())
        .feedback_from(b.select("id").extend(7), "desired", on="id")
    ),
    "deadline": lambda a, b: a.group_by("id").tumbling(5).agg(n=cz.count()).deadline(3),
    "hopping": lambda a, b: a.group_by("id").hopping(6, every=2).agg(n=cz.count(), top=cz.max("v")),
}
batch = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-2, 5)), max_size=4)


loose = st.lists(st.tuples(st.integers(-20, 3), st.integers(0, 3), st.integers(-2, 5)), max_size=4)
"""Rows of which many are behind those of the batch before."""


def timed(batches: list[Rows]) -> list[Rows]:
    """Batches whose times go on from one to the next."""
    return [[(5 * n + t, i, v) for t, i, v in rows] for n, rows in enumerate(batches)]


@pytest.mark.thin(3)
@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize("name", PLANS)
def test_law_6_holds_in_buckets(name: str, buckets: int) -> None:
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.lists(batch, min_size=3, max_size=4), st.lists(batch, min_size=3, max_size=4), st.data())
    def holds(left: list[Rows], right: list[Rows], data: st.DataObject) -> None:
        a, b = source(timed(left), 3), source(timed(right), 3, "b")
        plan = PLANS[name](Stream(a), Stream(b))
        some = st.lists(patterns(plan.schema), min_size=1, max_size=2)
        said = {data.draw(st.integers(0, 2)): data.draw(some)}
        whole = History.of(run(plan, 1, 4, {}).items["out"], plan.schema)
        items = run(plan, buckets, 4, said).items["out"]
        assert violations(items) == []
        got = History.of(items, plan.schema)
        assert not got.bag - whole.bag
        missing = list((whole.bag - got.bag).elements())
        assert all(covers(next(iter(said.values())), plan.schema, missing))

    holds()


def chained(a: Stream, b: Stream) -> Stream:
    """Three stages, each grouped by what the one before has counted."""
    windows = a.group_by("id").tumbling(5).agg(n=cz.count())
    return windows.group_by("n").tumbling(5).agg(k=cz.count()).group_by("k").tumbling(10).agg(m=cz.max("n"))


def unmatched(a: Stream, b: Stream) -> Stream:
    """Rows without a match are sent to other buckets; they end later once what has matched is gone."""
    alone = b.group_by("id").tumbling(10).agg(n=cz.count()).where(col("n") == 1).shift(12)
    rows = a.set_duration(20).join(alone, "id", how="left")
    return rows.group_by("n").hopping(5, every=5).agg(k=cz.count())


WITHDRAWN = {name: PLANS[name] for name in ("windows", "windows of windows", "distinct", "join of windows")}
WITHDRAWN |= {"chained": chained, "unmatched": unmatched}


@pytest.mark.thin(2)
@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize("name", WITHDRAWN)
def test_what_is_withdrawn_in_buckets_makes_nothing_up(name: str, buckets: int) -> None:
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.lists(batch, min_size=6, max_size=6), st.lists(batch, min_size=6, max_size=6), st.data())
    def holds(left: list[Rows], right: list[Rows], data: st.DataObject) -> None:
        a, b = source(timed(left), 3), source(timed(right), 3, "b")
        plan = WITHDRAWN[name](Stream(a), Stream(b))
        some = data.draw(st.lists(patterns(plan.schema), min_size=1, max_size=2))
        at = data.draw(st.integers(0, 2))
        withdrawn = {at + data.draw(st.integers(1, 3)): some[: data.draw(st.integers(1, 2))]}
        whole = History.of(run(plan, 1, 6, {}).items["out"], plan.schema)
        items = run(plan, buckets, 6, {at: some}, withdrawn).items["out"]
        assert violations(items) == []
        got = History.of(items, plan.schema)
        assert not got.bag - whole.bag
        missing = list((whole.bag - got.bag).elements())
        assert all(covers(some, plan.schema, missing))

    holds()


def apart(exchange_keys: str) -> tuple[int, int]:
    """Two values of a key that lie in different buckets of two: the first in bucket 0."""
    found: dict[int, int] = {}
    for n in range(1, 20):
        page = Page.of(pa.record_batch({exchange_keys: [n]}), le=[0], re=[1])
        exchange = Exchange("x", Stream(source([])).node, 1, 2, (exchange_keys,), "")
        bucket = next(b for b, rows in enumerate(route(page, exchange, 2, KNOWN)) if rows is not None)
        found.setdefault(bucket, n)
    return found[0], found[1]


def behind(cluster: Cluster) -> list[Any]:
    """What stands in front of the last exchange, per fragment: the step's answer to its readers."""
    departures = cluster.stages.stages[1].departures
    return [f.query.cell(d.label).responder for f in cluster.fragments[0] for d in departures]


def test_pace_measures_from_the_furthest_start_of_all_buckets() -> None:
    slow, fast = apart("n")
    windows = [(t, k) for t, k in ((0, slow), (5, fast), (60, slow), (100, fast))]
    rows: list[Rows] = [[(t, 10 * t + i, 1) for i in range(1)] * n for t, n in windows]
    plan = Stream(source(rows, 500)).group_by("id").tumbling(5).agg(n=cz.count())
    plan = plan.group_by("n").tumbling(5).agg(k=cz.count()).pace(within=5)
    cluster = Cluster({"out": plan.node}, 2, secret=KNOWN.copied())
    [src] = cluster.stages.sources
    for raw in src.read({}):
        cluster.epoch([(src, raw)])  # type: ignore[list-item]
    cluster.epoch([])
    cluster.epoch([])
    marks = [c.operator.mark for f in cluster.fragments[-1] for c in f.query.graph.cells if c.label == "pace"]
    assert max(marks) == 100
    for answer in behind(cluster):
        assert [str(p) for p in answer.guards.output.patterns] == ["LE < 95, RE < 96"]


PACED = {
    "two streams": lambda a, b: a.pace(b, within=4),
    "one stream": lambda a, b: a.pace(within=2),
    "windows": lambda a, b: (
        a.group_by("id")
        .tumbling(3)
        .agg(v=cz.count())
        .pace(b.group_by("id").tumbling(3).agg(v=cz.max("v")), within=3)
    ),
    "before windows": lambda a, b: (
        a.pace(b, within=4).group_by("id").tumbling(5).agg(v=cz.count()).pace(within=5)
    ),
}


@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize("name", PACED)
def test_in_buckets_no_row_is_further_behind_than_the_bound_of_the_whole_stream(
    name: str, buckets: int
) -> None:
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.lists(loose, min_size=3, max_size=4), st.lists(loose, min_size=3, max_size=4))
    def holds(left: list[Rows], right: list[Rows]) -> None:
        plan = PACED[name](Stream(source(timed(left), 40)), Stream(source(timed(right), 40, "b")))
        cluster = Cluster({"out": plan.node}, buckets)
        feeds = [(s, list(s.read({}))) for s in cluster.stages.sources]
        mark, at = -(1 << 62), 0
        for number in range(5):
            given_ = [(s, raws[number]) for s, raws in feeds if number < len(raws)]
            cluster.epoch(given_, closes=number == 4)  # type: ignore[arg-type]
            starts = [r[0] for p in fresh(cluster, at) for r in p.rows() if r[2] is None]
            assert all(start >= mark - plan.node.within for start in starts)  # type: ignore[attr-defined]
            mark, at = max([mark, *starts]), len(cluster.items["out"])
        cluster.drain()
        assert violations(cluster.items["out"]) == []

    holds()


def fresh(cluster: Cluster, at: int) -> list[Page]:
    """The pages that have come out since."""
    return [item for item in cluster.items["out"][at:] if isinstance(item, Page)]


def test_what_one_stream_says_of_another_climbs_over_an_exchange() -> None:
    """All rows meet where it is said, and that bucket alone has to agree."""
    src = source([[(10 * n + t, t, 1) for t in range(4)] for n in range(6)], 3)
    wards = source([[(0, 2, 1)]], 0, "b")
    control = Stream(wards).select("id").set_duration(1_000)
    plan = Stream(src).group_by("id").tumbling(5).agg(n=cz.count()).feedback_from(control, on="id")
    cluster = run(plan, 3, 7, {})
    ids = [row[2][0] for row in History.of(cluster.items["out"], plan.schema).rows()]
    counted = [f.counters() for f in cluster.fragments[0]]
    assert ids.count(2) < ids.count(1) == 6
    assert sum(c["tumbling"].feedback.get("purged rows", 0) for c in counted) > 0


def test_a_window_that_is_empty_in_one_bucket_only_is_kept_from_that_bucket_alone() -> None:
    empty, full = apart("id")
    left = [[(1, empty, 1), (1, full, 1)], [(6, full, 1)], [(11, empty, 1), (11, full, 1)], [(40, 9, 1)]]
    right: list[Rows] = [[], [], [], [(t, i, i) for t in (1, 6, 11) for i in (empty, full)]]
    a, b = Stream(source(left)), Stream(source(right, 0, "b"))
    ids = b.group_by("v").tumbling(5).agg(id=cz.max("id"))
    plan = a.group_by("id").tumbling(5).agg(n=cz.count()).join(ids, "id", thrifty=True)
    cluster = Cluster({"out": plan.node}, 2, secret=KNOWN.copied())
    feeds = [(s, list(s.read({}))) for s in cluster.stages.sources]
    for number in range(4):
        if number == 3:
            cluster.epoch([])
            filters = [
                [[str(p) for p in each.guard.patterns] for each in some]
                for f in cluster.fragments[0]
                for some in f.feedback.filters.filters.values()
            ]
        cluster.epoch([(s, raws[number]) for s, raws in feeds])  # type: ignore[misc]
    cluster.epoch([], closes=True)
    cluster.drain()
    came = [(le, r[0]) for le, _, r in History.of(cluster.items["out"], plan.schema).rows()]
    assert came == sorted([(0, empty), (0, full), (5, full), (10, empty), (10, full)])
    filtered = [some for some in filters if any(some)]
    past = "LE < 0, RE < 1"  # nothing was there before the first window
    assert filtered == [[[past, "LE in [5..9], RE < 11"], [past]]] * 2
    exchanges = [some for f in cluster.fragments[0] for some in f.feedback.filters.filters.values()]
    assert sum(each.guard.hits for some in exchanges for each in some) == 1


@pytest.mark.thin(2)
@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize("restarts", [False, True])
def test_after_a_withdrawal_later_results_come_back_beyond_an_exchange(buckets: int, restarts: bool) -> None:
    """The stage in front answers how late the rows end that it left out."""
    src = source([[(5 * n + t, t, 1) for t in range(4)] for n in range(10)], 3)
    plan = Stream(src).group_by("id").tumbling(5).agg(n=cz.count())
    plan = plan.group_by("n").tumbling(10).agg(k=cz.count()).group_by("k").tumbling(10).agg(m=cz.max("n"))
    cluster = Cluster({"out": plan.node}, buckets)
    items: list[Any] = []
    saved: dict[str, bytes | None] = {}
    cluster.say(assumed(Pattern(k=8), standing=True))
    for number, raw in enumerate(src.read({})):
        if number == 3:
            cluster.say(assumed(Pattern(k=8), standing=True, withdrawn=True))
        if restarts and number in (4, 5):
            items += cluster.items["out"]
            saved |= cluster.snapshot()
            cluster = Cluster({"out": plan.node}, buckets)
            cluster.restore({n: d for n, d in saved.items() if d is not None})
        cluster.epoch([(src, raw)])
    cluster.epoch([], closes=True)
    cluster.drain()
    got = History.of([*items, *cluster.items["out"]], plan.schema)
    whole = plan.run().history
    assert not got.bag - whole.bag
    assert [row[:2] for row in got.rows()][-2:] == [(30, 40), (40, 50)]
    assert len(got.rows()) < len(whole.rows())


@pytest.mark.thin(2)
@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize("restarts", [False, True])
def test_where_ends_move_later_results_come_back_once_no_lost_row_can_end_later(
    buckets: int, restarts: bool
) -> None:
    """The stage in front answers when punctuation has passed the rows that it left out."""
    a = source([[], [(5, 1, 7)], [], *([(16 + 15 * n, 2, 7)] for n in range(6))], 3)
    b = source([[(2, 1, 0)], [], [], *([(9 + 15 * n, 1 + n, 0)] for n in range(6))], 3, "b")
    plan = unmatched(Stream(a), Stream(b))
    cluster = Cluster({"out": plan.node}, buckets)
    feeds = [(s, list(s.read({}))) for s in cluster.stages.sources]
    items: list[Any] = []
    saved: dict[str, bytes | None] = {}
    cluster.say(assumed(Pattern(n=None), standing=True))
    for number in range(9):
        if number == 2:
            cluster.say(assumed(Pattern(n=None), standing=True, withdrawn=True))
        if restarts and number in (3, 5):
            items += cluster.items["out"]
            saved |= cluster.snapshot()
            cluster = Cluster({"out": plan.node}, buckets)
            cluster.restore({n: d for n, d in saved.items() if d is not None})
        cluster.epoch([(s, raws[number]) for s, raws in feeds])  # type: ignore[misc]
    cluster.epoch([], closes=True)
    cluster.drain()
    got = History.of([*items, *cluster.items["out"]], plan.schema)
    whole = plan.run().history
    assert got.rows() == [(le, re, row) for le, re, row in whole.rows() if row[0] is not None or le >= 45]
    assert len(got.rows()) < len(whole.rows())
