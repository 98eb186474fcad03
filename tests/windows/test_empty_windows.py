"""Windows without events, for known keys: a count of 0 where the oracle has no event."""

from __future__ import annotations

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream
from caesura.errors import PlanError
from caesura.events import History

COMES = [(3, 1), (12, 2), (5, 1), (33, 1), (64, 2), (71, 3), (90, 1)]


def read(batch: int = 3) -> Stream:
    rows = [{"t": t, "k": k} for t, k in COMES]
    return cz.from_rows(rows, time="t", punctuate=cz.delay(8), batch_size=batch)


def by_hand(size: int, hop: int, offset: int = 0) -> set[tuple[int, int, int, int]]:
    """(start, end, key, count) of all windows from a key's first event on; empty ones that have ended."""
    found = set()
    for key in {k for _, k in COMES}:
        times = [t for t, k in COMES if k == key]
        for start in range(offset - 10 * size, 200, hop):
            n = sum(start <= t < start + size for t in times)
            if start + size > min(times) and (n or start + size <= 90 - 8):
                found.add((start, start + size, key, n))
    return found


@pytest.mark.parametrize(("size", "hop", "offset"), [(10, 10, 0), (20, 10, 0), (10, 10, 4)])
@pytest.mark.parametrize("output", ["changes", "final"])
def test_windows_without_events_are_zero_for_keys_that_have_come(
    size: int, hop: int, offset: int, output: str
) -> None:
    windows = read().group_by("k").hopping(size, every=hop, offset=offset)
    done = windows.agg(n=cz.count(), empty=True).run(output=output)  # type: ignore[arg-type]
    got = {(r["LE"], r["RE"], r["k"], r["n"]) for r in done.table().to_pylist()}
    assert got == by_hand(size, hop, offset)


def test_buckets_agree() -> None:
    stream = read().group_by("k").tumbling(10).agg(n=cz.count(), m=cz.max("k"), empty=True)
    cluster = Cluster({"out": stream.node}, 3)
    cluster.run()
    assert History.of(cluster.items["out"], stream.schema) == stream.run().history


def test_keys_may_be_given_and_have_windows_while_they_live() -> None:
    keys = cz.from_rows([{"t": 0, "e": 30, "k": 9}], time="t", end="e")
    done = read().group_by("k").tumbling(10).agg(n=cz.count(), empty=keys).run()
    nines = [(r["LE"], r["n"]) for r in done.table().to_pylist() if r["k"] == 9]
    assert nines == [(0, 0), (10, 0), (20, 0)]
    assert sum(r["n"] for r in done.table().to_pylist()) == len(COMES)


def test_other_aggregates_of_nothing_are_null() -> None:
    done = read().group_by("k").tumbling(10).agg(n=cz.count("k"), s=cz.sum("k"), empty=True).run()
    assert all((r["s"] is None) == (r["n"] == 0) for r in done.table().to_pylist())


def test_windows_that_lie_where_events_are_cannot_be_empty() -> None:
    with pytest.raises(PlanError, match="session windows lie where events are"):
        read().session(5).agg(n=cz.count(), empty=True)
    with pytest.raises(PlanError, match="has no column 'k'"):
        read().group_by("k").tumbling(5).agg(n=cz.count(), empty=cz.from_rows([{"t": 1, "j": 1}], time="t"))


def test_a_sample_lives_until_the_next_of_its_key() -> None:
    table = pa.table({"t": [1, 4, 3, 9], "k": ["a", "a", "b", "a"], "v": [1, 2, 3, 4]})
    done = cz.from_arrow(table, time="t", until_next="k", punctuate=cz.delay(5)).run()
    assert str(done).split("\n")[1:] == [
        "  1  4   | a 1 | +",
        "  3  inf | b 3 | +",
        "  4  9   | a 2 | +",
        "  9  inf | a 4 | +",
    ]
    with pytest.raises(PlanError, match="both say when a row ends"):
        cz.from_arrow(table, time="t", end="v", until_next="k")
