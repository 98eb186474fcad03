"""Sources that have nothing now, lanes that come and go, offsets that are gone, what reading holds open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream
from caesura.consistency import Mode
from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.io import Offsets, Reader, Source, lane_ends
from caesura.io.ingress.policy import Policy
from caesura.io.ingress.shape import Shape
from caesura.plan import NOTHING_NOW, NothingNow, Raw, SourceBatch
from caesura.runtime import Query
from caesura.runtime.graph.source_reader import SourceReader

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])
Step = Sequence[int] | NothingNow


def rows(*times: int, lane: int = 0, offset: int = 0, gap: int = 0) -> Raw:
    batch = pa.record_batch({"t": times, "v": times}, schema=SCHEMA)
    return Raw(lane, offset, batch, gap=gap)


class Live(Reader):
    """Gives what a script says; it may have nothing now."""

    schema, poll_seconds = SCHEMA, 0.0

    def __init__(self, key: str, *script: SourceBatch, lanes: int = 1, begins: int = 0) -> None:
        self.key, self.script, self.lanes, self.begins = key, list(script), lanes, begins
        self.now, self.opened, self.wake = 0, 0, (lambda: None)

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        self.opened += 1
        try:
            for given in self.script:
                if not isinstance(given, Raw) or given.offset >= offsets.get(given.lane, 0):
                    yield given
        finally:
            self.opened -= 1

    def earliest(self) -> Offsets:
        return {0: self.begins}

    def on_arrival(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def clock(self) -> int:
        return self.now

    def describe(self) -> str:
        return self.key


def source(reader: Reader, policy: Policy | None = None) -> Source:
    return Source(reader=reader, shape=Shape.of(time="t"), policy=policy or cz.delay(0), name=reader.key)


def times(items: list[Item]) -> list[int]:
    return [t for item in items if isinstance(item, Page) for t in item.le.tolist()]


def test_a_source_that_has_nothing_holds_up_neither_the_others_nor_the_end() -> None:
    idle = Live("idle", NOTHING_NOW, NOTHING_NOW, rows(1))
    busy = Live("busy", rows(10, offset=0), rows(20, offset=1), rows(30, offset=2))
    query = Query({"out": Stream(source(idle)).union(Stream(source(busy))).node})
    query.run()
    assert times(query.take("out")) == [10, 20, 1, 30]


@pytest.mark.parametrize(
    "mode", [cz.tokens(every=1), cz.synchronised(1), cz.heeding(), cz.draining()], ids=str
)
def test_claims_go_on_where_one_source_has_nothing(mode: Mode) -> None:
    idle, busy = Live("idle", NOTHING_NOW, NOTHING_NOW, rows(1)), Live("busy", rows(10), rows(20, offset=1))
    done = Stream(source(idle)).union(Stream(source(busy))).run(claims=mode)
    assert {name: p.rows for name, p in done.claims[-1].prefix.items()} == {"idle": 1, "busy": 2}


def test_where_all_have_nothing_the_query_waits_until_rows_come() -> None:
    reader = Live("live", NOTHING_NOW, rows(1))
    reader.poll_seconds = 60.0
    query = Query({"out": source(reader)})
    waits: list[float] = []

    def wait(readers: list[SourceReader]) -> None:
        waits.append(min(r.seconds() for r in readers))

    query.runner.waiter.wait = wait  # type: ignore[assignment, method-assign]
    query.run()
    assert (waits, times(query.take("out"))) == ([60.0], [1])


def test_a_source_wakes_whoever_waits_for_it() -> None:
    reader = Live("live", rows(1))
    reader.poll_seconds = 60.0
    query = Query({"out": source(reader)})
    [waiting] = query.runner._readers
    waiting.announce(query.runner.waiter._arrived.set)
    reader.wake()  # from a thread of its own, where rows come by one
    query.runner.waiter.wait([waiting])  # a minute, but for that
    assert not query.runner.waiter._arrived.is_set()


def test_the_clock_is_read_where_there_are_no_rows() -> None:
    reader = Live("live", rows(10), NOTHING_NOW, NOTHING_NOW, rows(30, offset=1), lanes=2)
    query = Query({"out": source(reader, cz.delay(0, idle="1s"))})

    def wait(readers: list[SourceReader]) -> None:
        reader.now += 2_000_000

    query.runner.waiter.wait = wait  # type: ignore[assignment, method-assign]
    query.run()
    found = [str(item) for item in query.take("out") if not isinstance(item, Page)]
    assert "definite: time < 10" in found, "the lane that never spoke is passed over once the clock says so"


def test_a_reading_of_the_clock_is_part_of_the_offset() -> None:
    def make() -> Query:
        reader = Live("live", rows(10), rows(20, offset=1))
        reader.now = 5_000_000
        return Query({"out": source(reader, cz.delay(0, idle="1s"))})

    query = make()
    query.step()
    [reader] = query.runner._readers
    assert reader.position == {"0": 1, "clock": 5_000_000}
    again = make()
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    [restored] = again.runner._readers
    assert restored.position == reader.position
    assert restored.clock_items() == [], "the same time is not read twice"


@pytest.mark.parametrize("buckets", [None, 1, 3])
def test_a_lane_that_appears_holds_the_stream_and_one_that_vanishes_no_longer_does(
    buckets: int | None,
) -> None:
    empty = SCHEMA.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], SCHEMA)]
    appears = Raw(1, 0, empty[0])
    first = rows(20, offset=0)
    script = [appears, first, rows(30, offset=1), lane_ends(1, 0, SCHEMA), rows(40, offset=2)]
    plan = Stream(source(Live("lanes", *script[:3])))
    assert _ctis(plan, buckets) == [], "lane 1 gave nothing yet"
    assert _ctis(Stream(source(Live("lanes", *script))), buckets)[-1] == "definite: time < 40"


def _ctis(plan: Stream, buckets: int | None) -> list[str]:
    """What is promised before the input ends."""
    if buckets is None:
        query = Query({"out": plan.node})
        query.run()
        items = query.take("out")
    else:
        cluster = Cluster({"out": plan.node}, buckets)
        cluster.run()
        items = cluster.items["out"]
    found = [str(item) for item in items if not isinstance(item, Page)]
    return [text for text in found if "*" not in text]


def test_what_reading_holds_open_is_released() -> None:
    reader = Live("live", rows(1), rows(2, offset=1), NOTHING_NOW)
    query = Query({"out": source(reader)})
    query.step()
    assert reader.opened == 1
    query.close()
    assert reader.opened == 0
    query.run()
    assert (reader.opened, times(query.take("out"))) == (0, [1, 2])


def test_rows_are_read_again_up_to_a_prefix_and_no_further() -> None:
    reader = Live(
        "live", rows(1, 2), rows(3, 4, offset=2), rows(5, lane=1), NOTHING_NOW, rows(6, lane=1, offset=1)
    )
    found = [(raw.lane, raw.offset, raw.batch.num_rows) for raw in reader.read_between({}, {0: 3, 1: 1})]
    assert (found, reader.opened) == ([(0, 0, 2), (0, 2, 1), (1, 0, 1)], 0)


def test_offsets_that_stand_for_no_row_are_passed() -> None:
    query = Query({"out": source(Live("compacted", rows(1, gap=7), rows(2, offset=8)))})
    query.run()
    [reader] = query.runner._readers
    assert (reader.offsets, times(query.take("out"))) == ({0: 9}, [1, 2])


@pytest.mark.parametrize("begins", [0, 5])
def test_rows_that_a_source_has_lost_are_not_passed_over(begins: int) -> None:
    query = Query({"out": source(Live("live", rows(1), rows(2, offset=1)))})
    query.step()
    saved = {name: data for name, data in query.snapshot().items() if data is not None}
    later = Query({"out": source(Live("live", rows(2, offset=1), begins=begins))})
    if not begins:
        later.restore(saved)
        later.run()
        assert times(later.take("out")) == [2]
        return
    with pytest.raises(StreamError, match="lane 0 is to be read on from 1, and it begins at 5 now"):
        later.restore(saved)


def test_a_table_that_is_shorter_than_it_was_is_refused() -> None:
    def plan(times: list[int]) -> Query:
        return Query({"out": cz.from_rows([{"t": t} for t in times], time="t", name="a", batch_size=2).node})

    query = plan([1, 2, 3])
    query.step()
    saved = {name: data for name, data in query.snapshot().items() if data is not None}
    with pytest.raises(StreamError, match="it ends at 1 now: rows of it are gone"):
        plan([1]).restore(saved)
