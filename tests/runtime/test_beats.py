"""Clock readings are input: by them idle lanes are let go and time is promised, also after a restart."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from bucket_plans import Scripted
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.events import History, Page
from caesura.io import Source
from caesura.io.policy import Policy
from caesura.io.shape import Shape
from caesura.plan import Raw
from caesura.punctuation import MIN_TIME
from caesura.runtime.cluster import Cluster

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


def source(policy: Policy) -> Source:
    reader = Scripted("clocked", ROWS, (), lanes=LANES)
    return Source(reader=reader, shape=Shape.of(time="t"), policy=policy, name="clocked")


def raws(of: Source, rows: dict[int, list[int]], at: dict[int, int]) -> list[tuple[Source, Raw]]:
    made = []
    for lane, times in rows.items():
        batch = pa.RecordBatch.from_pylist([{"t": t, "id": t % 5} for t in times], ROWS)
        made.append((of, Raw(lane, at.get(lane, 0), batch)))
        at[lane] = at.get(lane, 0) + len(times)
    return made


def bound_of(cluster: Cluster) -> int:
    told = [i.pattern.time_bound or MIN_TIME for i in cluster.items["out"] if not isinstance(i, Page)]
    return max(told, default=MIN_TIME)


times = st.lists(st.integers(0, 60), min_size=1, max_size=3)
epochs = st.lists(
    st.tuples(st.dictionaries(st.integers(0, LANES - 1), times, max_size=2), st.none() | st.integers(0, 8)),
    min_size=1,
    max_size=10,
)


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


def test_an_empty_lane_no_longer_holds_back_what_the_others_promise() -> None:
    of = source(IDLING)
    cluster, at = Cluster({"out": of}, 2), {}
    cluster.epoch(raws(of, {0: [30], 1: [40]}, at), clock=100)
    assert bound_of(cluster) == MIN_TIME
    cluster.epoch(raws(of, {0: [50], 1: [60]}, at), clock=110)
    assert bound_of(cluster) == 46
    cluster.epoch([], clock=130)
    assert bound_of(cluster) == 56  # all are idle by one reading: none holds the others back
