"""Ingestion time: rows are timed by the clock of the read in which they came, again and again the same."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream, col
from caesura.events import History, Item, Page
from caesura.io import Offsets, Reader, Source
from caesura.io.ingress.arrival import IngestionTime
from caesura.plan import Raw
from caesura.punctuation import Intent
from caesura.runtime import Query

SECOND = 1_000_000
BIDS = pa.schema([("bidder", pa.int64())])


class Bids(Reader):
    """A batch at each reading of a clock that tests set."""

    schema, key = BIDS, "bids"

    def __init__(self, *clock: int) -> None:
        self.readings = clock
        self.at = 0

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        for number in range(offsets.get(0, 0), len(self.readings)):
            self.at = number
            yield Raw(0, number, pa.record_batch({"bidder": [number % 2]}, schema=BIDS))

    def clock(self) -> int:
        return self.readings[self.at] * SECOND

    def describe(self) -> str:
        return self.key


def bids(*clock: int) -> Stream:
    time = cz.ingestion_time()
    assert isinstance(time, IngestionTime)
    return Stream(Source(reader=Bids(*clock), shape=time.shape({}), policy=time.policy, name="bids"))


def seconds(items: list[Item]) -> list[int]:
    return [t // SECOND for item in items if isinstance(item, Page) for t in item.le.tolist()]


def test_a_row_has_the_time_of_the_last_reading_and_time_never_goes_back() -> None:
    query = Query({"out": bids(3, 5, 4, 9).node})
    query.run()
    items = query.take("out")
    assert seconds(items) == [3, 5, 5, 9]
    ctis = [i.pattern.time_bound for i in items if not isinstance(i, Page) and i.intent is Intent.DEFINITE]
    assert ctis == sorted(ctis)


def test_bids_are_counted_in_windows_of_processing_time() -> None:
    counted = bids(*range(1, 25)).group_by("bidder").tumbling("10s").agg(n=cz.count()).run()
    assert sum(row[2][1] for row in counted.history.rows()) == 24
    assert {row[0] // SECOND for row in counted.history.rows()} == {0, 10, 20}


def epochs(cluster: Cluster, source: Source, *readings: int | None) -> None:
    for number, clock in enumerate(readings):
        batch = pa.record_batch({"bidder": [0, 1, 2]}, schema=BIDS)
        reading = None if clock is None else clock * SECOND
        cluster.epoch([(source, Raw(0, 3 * number, batch))], clock=reading)


@pytest.mark.parametrize("buckets", [1, 3])
def test_in_buckets_rows_of_an_epoch_without_a_reading_have_the_last_one(buckets: int) -> None:
    plan = bids().where(col("bidder") > 0).select("bidder", at=cz.start())
    cluster = Cluster({"out": plan.node}, buckets)
    epochs(cluster, cluster.stages.sources[0], 3, None, 7)  # type: ignore[arg-type]
    got = History.of(cluster.items["out"], plan.schema)
    assert sorted(row[0] // SECOND for row in got.rows()) == [3, 3, 3, 3, 7, 7]
    assert all(row[2][1].timestamp() * SECOND == row[0] for row in got.rows())


def test_an_epoch_that_runs_again_gives_its_rows_the_same_times() -> None:
    plan = bids().group_by("bidder").tumbling("4s").agg(n=cz.count())
    first = Cluster({"out": plan.node}, 2)
    source = first.stages.sources[0]
    epochs(first, source, 3, None)  # type: ignore[arg-type]
    again = Cluster({"out": plan.node}, 2, secret=first.secret)
    again.restore(first.snapshot())
    before = len(first.items["out"])
    for cluster in (first, again):
        epochs(cluster, cluster.stages.sources[0], None, 6)  # type: ignore[arg-type]
    assert [str(item) for item in first.items["out"][before:]] == [str(i) for i in again.items["out"]]
