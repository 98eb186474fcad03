"""Clock readings are input: by them idle lanes are let go and time is promised, also after a restart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from bucket_plans import Scripted
from cluster import Cluster
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.events import History, Page
from caesura.io import Source
from caesura.io.ingress.policy import Policy
from caesura.io.ingress.shape import Shape
from caesura.plan import Raw
from caesura.punctuation import MIN_TIME

EXAMPLES = examples(60)
ROWS = pa.schema([("t", pa.int64()), ("id", pa.int64())])
LANES, LAG, IDLE, CLOCK_LAG = 3, 4, 10, 6
IDLING = cz.delay(LAG, idle="10us", closes=False)
BEATING = Policy(beat="1us", clock_lag=CLOCK_LAG, lag=LAG, closes=False)
Epoch = tuple[dict[int, list[int]], int | None]
"""Times of rows by lane, and what the clock reads, if it is read."""


@dataclass
class Plainly:
    """What a source with a clock does, row by row."""

    idling: bool
    bound: int = MIN_TIME
    now: int | None = None
    top: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(LANES), MIN_TIME + LAG))
    seen: dict[int, int | None] = field(default_factory=lambda: dict.fromkeys(range(LANES)))
    idle: set[int] = field(default_factory=set)
    kept: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def epoch(self, rows: dict[int, list[int]], clock: int | None) -> None:
        self.now = self.now if clock is None else clock
        for lane, times in rows.items():
            self.seen[lane] = self.now
            self.idle.discard(lane)
            for t in times:
                (self.late if t < max(self.bound, self.top[lane] - LAG) else self.kept).append(t)
                self.top[lane] = max(self.top[lane], t)
        if rows:
            self.advance()
        if clock is not None:
            self.beat(clock)

    def beat(self, clock: int) -> None:
        for lane, seen in self.seen.items() if self.idling else ():
            self.seen[lane] = clock if seen is None else seen
            (self.idle.add if clock - (self.seen[lane] or 0) >= IDLE else self.idle.discard)(lane)
        if not self.idling:
            self.bound = max(self.bound, clock - CLOCK_LAG)
        self.advance()

    def advance(self) -> None:
        live = [top - LAG for lane, top in self.top.items() if lane not in self.idle]
        self.bound = max(self.bound, min(live) if live else max(self.top.values()) - LAG)


def source(policy: Policy, schema: pa.Schema = ROWS) -> Source:
    reader = Scripted("clocked", schema, (), lanes=LANES)
    return Source(reader=reader, shape=Shape.of(time="t"), policy=policy, name="clocked")


def raws(of: Source, rows: dict[int, list[int]], at: dict[int, int]) -> list[tuple[Source, Raw]]:
    made = []
    for lane, times in rows.items():
        values = {"t": pa.array(times, pa.int64()).cast(of.reader.schema.field("t").type)}
        batch = pa.record_batch({**values, "id": pa.array([t % 5 for t in times], pa.int64())})
        made.append((of, Raw(lane, at.get(lane, 0), batch)))
        at[lane] = at.get(lane, 0) + len(times)
    return made


def bound_of(cluster: Cluster) -> int:
    told = [i.pattern.time_bound for i in cluster.items["out"] if not isinstance(i, Page)]
    return max((bound for bound in told if bound is not None), default=MIN_TIME)


times = st.lists(st.integers(0, 60), min_size=1, max_size=3)
epochs = st.lists(
    st.tuples(st.dictionaries(st.integers(0, LANES - 1), times, max_size=2), st.none() | st.integers(0, 8)),
    min_size=1,
    max_size=10,
)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(epochs, st.sampled_from([IDLING, BEATING]), st.integers(1, 3), st.integers(0, 10))
def test_readings_of_the_clock_do_in_buckets_what_they_do_row_by_row(
    drawn: list[Epoch], policy: Policy, buckets: int, restart: int
) -> None:
    of, plain, at, clock = source(policy), Plainly(policy is IDLING), {}, 20
    cluster = Cluster({"out": of}, buckets)
    seen = []
    for number, (rows, moved) in enumerate(drawn):
        clock += moved or 0
        if number == restart:
            saved, seen = cluster.snapshot(), [cluster]
            cluster = Cluster({"out": of}, buckets)
            cluster.restore({name: data for name, data in saved.items() if data is not None})
        cluster.epoch(raws(of, rows, at), clock=None if moved is None else clock)
        plain.epoch(rows, None if moved is None else clock)
        if rows or moved is not None:
            assert max(map(bound_of, [*seen, cluster])) == plain.bound
    parts = [*seen, cluster]
    rows_out = History.of([item for part in parts for item in part.items["out"]], of.schema).rows()
    assert sorted(row[0] for row in rows_out) == sorted(plain.kept)
    late = [t for part in parts for batch in part.late.get("clocked", []) for t in batch["LE"].to_pylist()]
    assert sorted(late) == sorted(plain.late)


FUTURE = 12
HELD = cz.delay("4us", idle="10us", future="12us", closes=False)
CLOCKED = pa.schema([("t", pa.timestamp("us")), ("id", pa.int64())])


@dataclass
class Bounded(Plainly):
    """The same, where rows too far ahead of the clock are refused and move nothing."""

    ahead: list[int] = field(default_factory=list)

    def epoch(self, rows: dict[int, list[int]], clock: int | None) -> None:
        now = self.now if clock is None else clock
        assert now is not None
        self.ahead += [t for times in rows.values() for t in times if t > now + FUTURE]
        super().epoch({lane: [t for t in times if t <= now + FUTURE] for lane, times in rows.items()}, clock)

    def one_by_one(self, rows: dict[int, list[int]], clock: int | None) -> None:
        """An epoch whose lanes come one after another: the first that is idle no more moves on the bound."""
        self.now = self.now if clock is None else clock
        for lane, times in rows.items():
            self.epoch({lane: times}, None)
        if clock is not None:
            self.beat(clock)


calm = st.lists(st.integers(0, 10), min_size=17, max_size=24)
"""More rows than make a lane's course, none of them ahead of another."""
many = st.builds(lambda base, some: [base + t for t in some], st.integers(10, 50), calm) | st.lists(
    st.integers(0, 60), max_size=20
)
bounded_epochs = st.lists(
    st.tuples(st.dictionaries(st.integers(0, LANES - 1), many, max_size=2), st.none() | st.integers(0, 8)),
    min_size=1,
    max_size=6,
)


def embedded(of: Source, drawn: list[tuple[dict[int, list[int]], int | None]]) -> tuple[list[Any], list[str]]:
    """What enters in one process, and why the rest is refused."""
    ingress, at = of.operator(), dict[int, int]()
    items: list[Any] = []
    for rows, clock in drawn:
        ingress.clock = max(ingress.clock, MIN_TIME if clock is None else clock)
        ingress.future.on_clock(ingress.clock)
        for _, raw in raws(of, rows, at):
            items += ingress.raw(raw)
        items += [] if clock is None else ingress.on_clock(clock)
    late = ingress.drain_late()
    return items, [] if late is None else sorted(late["reason"].to_pylist())


@settings(max_examples=EXAMPLES // 5, deadline=None)
@given(bounded_epochs, st.integers(1, 3), st.booleans())
def test_the_bound_on_the_future_holds_for_each_row_of_every_chunk(
    drawn: list[Epoch], buckets: int, unordered: bool
) -> None:
    of, plain, at, clock = source(HELD, CLOCKED), Bounded(True), {}, 20
    singly = Bounded(True)
    if unordered:
        of.reader.__dict__["unordered"] = True
    cluster = Cluster({"out": of}, buckets)
    told: list[Epoch] = []
    for number, (rows, moved) in enumerate(drawn):
        clock += moved or 0
        told.append((rows, clock if number == 0 or moved is not None else None))
        cluster.epoch(raws(of, rows, at), clock=told[-1][1])
        plain.epoch(*told[-1])
        singly.one_by_one(*told[-1])
    out = History.of(cluster.items["out"], of.schema)
    reasons = sorted(r for batch in cluster.late.get("clocked", []) for r in batch["reason"].to_pylist())
    assert len([r for r in reasons if "12us ahead of the clock" in r]) == len(plain.ahead)
    assert all(row[0] <= clock + FUTURE for row in out.rows())
    if not unordered:
        assert sorted(row[0] for row in out.rows()) == sorted(plain.kept)
        items, why = embedded(of, told)
        assert sorted(row[0] for row in History.of(items, of.schema).rows()) == sorted(singly.kept)
        assert len(why) == len(singly.late) + len(singly.ahead)
        if all(len(rows) < 2 for rows, _ in told):
            assert (History.of(items, of.schema), why) == (out, reasons)


def test_plain_ticks_are_held_against_their_lane_though_a_clock_is_read() -> None:
    of = source(cz.delay(LAG, idle="10us", future=FUTURE, closes=False))
    cluster = Cluster({"out": of}, 2)
    cluster.epoch(raws(of, {0: [1, 2, 3, 900]}, {}), clock=10**15)
    [reason] = [r for batch in cluster.late["clocked"] for r in batch["reason"].to_pylist()]
    assert reason == "time 900 is more than 12 ahead of its lane, which is at 1"


def test_the_clock_is_read_often_enough_for_the_bound_that_is_held_against_it() -> None:
    assert cz.delay("5s", idle="10m", future="1m").period == 15_000_000
    assert cz.delay("5s", idle="10m").period == 150_000_000
    assert cz.delay("5s", future="1m").period is None


def test_an_empty_lane_no_longer_holds_back_what_the_others_promise() -> None:
    of = source(IDLING)
    cluster, at = Cluster({"out": of}, 2), {}
    cluster.epoch(raws(of, {0: [30], 1: [40]}, at), clock=100)
    assert bound_of(cluster) == MIN_TIME
    cluster.epoch(raws(of, {0: [50], 1: [60]}, at), clock=110)
    assert bound_of(cluster) == 46
    cluster.epoch([], clock=130)
    assert bound_of(cluster) == 56  # all are idle by one reading: none holds the others back
