"""A query that ends since a busy machine did not start Python in time starts again, a few times."""

from __future__ import annotations

from typing import Any, cast

import pytest

from caesura.errors import StreamError
from caesura.runtime.sinks.memory import MemorySink
from caesura.spark.errors import TRIES, patiently
from caesura.spark.host.running import SparkQuery

BUSY = (
    "Python worker failed to connect back.",
    "Timed out while waiting for the Python worker to connect back after 10000 ms.",
)


class FakeQuery:
    """A streaming query of Spark that ends with an error, or as it should."""

    id = "a1"

    def __init__(self, error: str, epoch: int = -1) -> None:
        self.error, self.isActive = error, not error
        self.lastProgress = {"batchId": epoch}

    def awaitTermination(self, seconds: int | None = None) -> bool:
        if self.error:
            raise RuntimeError(self.error)
        return True

    def exception(self) -> Exception | None:
        return RuntimeError(self.error) if self.error else None

    def processAllAvailable(self) -> None:
        self.awaitTermination()

    def stop(self) -> None:
        self.isActive = False


def started(*runs: FakeQuery) -> tuple[SparkQuery, list[FakeQuery]]:
    """A query whose starts are these, one after the other."""
    first, *later = runs
    made = SparkQuery(cast("Any", first), MemorySink(), [], cast("Any", None), {})
    made._again = lambda: (cast("Any", later.pop(0)), [])
    return made, later


@pytest.mark.parametrize("busy", BUSY)
def test_whoever_waits_starts_it_again(busy: str) -> None:
    query, later = started(FakeQuery(busy), FakeQuery(busy), FakeQuery(""))
    assert query.wait()
    assert not later


def test_whoever_asks_whether_it_is_active_starts_it_again() -> None:
    query, later = started(FakeQuery(BUSY[0]), FakeQuery(""))
    assert query.active
    assert not later
    query.drain()


def test_it_is_not_tried_for_ever() -> None:
    query, later = started(*(FakeQuery(BUSY[0]) for _ in range(2 * TRIES)))
    with pytest.raises(StreamError, match="could not start Python in time"):
        query.wait()
    assert len(later) == TRIES
    assert not query.active
    assert len(later) == TRIES


def test_an_epoch_between_two_failures_begins_the_count_anew() -> None:
    runs = [FakeQuery(BUSY[0], epoch) for epoch in range(3 * TRIES)]
    query, later = started(*runs, FakeQuery(""))
    assert query.wait()
    assert not later


def test_a_query_that_was_stopped_or_failed_otherwise_stays_so() -> None:
    query, later = started(FakeQuery(BUSY[0]), FakeQuery(""))
    query.stop()
    assert not query.active
    query, later = started(FakeQuery("java.lang.OutOfMemoryError"), FakeQuery(""))
    with pytest.raises(StreamError, match="OutOfMemoryError"):
        query.wait()
    assert len(later) == 1


def test_what_fails_so_at_once_is_tried_again() -> None:
    errors = [RuntimeError(BUSY[0])] * (TRIES - 1)

    def call() -> int:
        if errors:
            raise errors.pop()
        return 7

    assert patiently(call) == 7
    errors[:] = [RuntimeError(BUSY[0])] * TRIES
    with pytest.raises(RuntimeError, match="failed to connect back"):
        patiently(call)
