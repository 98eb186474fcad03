"""Three ways for windows to come out: at once, once time has passed them, or when they cannot change."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream
from caesura.errors import CaesuraError
from caesura.events import History, Page, parse
from caesura.punctuation import INFINITY, cti
from caesura.runtime import Query

ROWS = pa.schema([("id", pa.int64()), ("v", pa.int64())])
COMES = """
 LE RE | id v |
  1  4 | 1  5 | +
  3  9 | 2  1 | +
 12 14 | 1  2 | +
-- 5 --
  6  8 | 1  7 | +
 16 17 | 1  3 | +
 13 15 | 2  4 | +
 12 14 | 1  2 | - 13
 31 32 | 2  1 | +
-- 20 --
"""
PLANS: dict[str, Callable[[Stream], Stream]] = {
    "tumbling": lambda s: s.group_by("id").tumbling(10).agg(n=cz.count(), s=cz.sum("v")),
    "hopping": lambda s: s.hopping(10, every=5).agg(n=cz.count(), s=cz.sum("v")),
    "snapshot": lambda s: s.group_by("id").snapshot().agg(n=cz.count()),
    "session": lambda s: s.session(3).agg(n=cz.count(), s=cz.sum("v")),
}


@pytest.mark.parametrize("plan", PLANS)
def test_what_is_out_are_the_windows_that_do_not_reach_beyond_the_latest_start(plan: str) -> None:
    node = PLANS[plan](cz.input_stream("in", ROWS)).node
    query, at_once = (Query({"out": node}, speculate=how) for how in ("passed", "arrival"))  # type: ignore[arg-type]
    out, all_of, m = [], [], 0
    for item in parse(COMES, ROWS):
        for part in [item.slice(n, 1) for n in range(len(item))] if isinstance(item, Page) else [item]:
            m = max(m, int(part.le[0]) if isinstance(part, Page) else part.pattern.time_bound or 0)
            for each, seen in ((query, out), (at_once, all_of)):
                each.feed("in", part)
                each.run()
                seen += each.take("out")
            windows = History.of(all_of, node.schema).page
            assert History.of(out, node.schema) == History.of([windows.filter(windows.re <= m)], node.schema)
    assert len(History.of(out, node.schema)) >= 2


ENDLESS = """
 LE RE  | id v |
  2 inf | 1  9 | +
"""


def items_of(query: Query) -> list[object]:
    """What has left a query since somebody asked."""
    return [item.rows() if isinstance(item, Page) else item for item in query.take("out")]


@pytest.mark.parametrize("comes", [COMES, ENDLESS + COMES.lstrip().split("\n", 1)[1]])
@pytest.mark.parametrize("plan", ["tumbling", "hopping"])
def test_windows_that_ended_go_when_rows_come_or_somebody_looks(plan: str, comes: str) -> None:
    node = PLANS[plan](cz.input_stream("in", ROWS)).node
    seen, unseen = (Query({"out": node}, speculate="arrival") for _ in range(2))
    promises = [f"-- {until} --" for until in (8, 21, 33, 34)]
    for item in parse("\n".join([comes, *promises]), ROWS):
        for each in (seen, unseen):
            each.feed("in", item)
            each.run()
        assert items_of(seen) == items_of(unseen)
        seen.counters()
    assert seen.counters()[plan].state_rows == unseen.counters()[plan].state_rows > 0
    for each in (seen, unseen):
        each.feed("in", cti(INFINITY))
        each.run()
        assert each.counters()[plan].state_rows == 0


def test_a_window_that_time_has_passed_is_corrected_when_a_late_row_comes() -> None:
    rows = [{"t": t, "v": v} for t, v in ((3, 1), (12, 2), (5, 4), (23, 8))]
    read = cz.from_rows(rows, time="t", punctuate=cz.delay(20), batch_size=1)
    done = read.tumbling(10).agg(s=cz.sum("v")).run(speculate="passed")
    changes = [(r["kind"], r["LE"], r["s"]) for r in done.changes().to_pylist()]
    assert changes == [("+", 0, 1), ("-", 0, 1), ("+", 0, 5), ("+", 10, 2), ("+", 20, 8)]


def test_filters_in_front_that_are_one_pass_with_the_windows_change_nothing() -> None:
    rows = [{"t": t, "k": t % 2} for t in (1, 4, 12, 7, 25, 21, 40)]
    read = cz.from_rows(rows, time="t", punctuate=cz.delay(30), batch_size=1)
    windows = read.where(cz.col("k") >= 0).group_by("k").tumbling(10).agg(n=cz.count())
    query = windows.query(speculate="passed")
    while query.step() and not (m := max([*query.table()["RE"].to_pylist(), 0])):
        pass
    assert m == 10  # the first window came out when time had passed it, long before it was closed
    query.run()
    order = [("LE", "ascending"), ("k", "ascending")]
    assert query.table().sort_by(order).equals(windows.run().table().sort_by(order))


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("buckets", [1, 3])
def test_buckets_give_the_same_history(plan: str, buckets: int) -> None:
    rows = [{"t": t, "id": t % 2, "v": t} for t in (1, 4, 3, 12, 7, 25, 21, 40)]
    stream = PLANS[plan](cz.from_rows(rows, time="t", punctuate=cz.delay(9), batch_size=2))
    cluster = Cluster({"out": stream.node}, buckets, speculate="passed")
    cluster.run()
    assert History.of(cluster.items["out"], stream.schema) == stream.run().history


def test_claims_are_refused_where_the_order_of_rows_decides_what_is_out() -> None:
    read = cz.from_rows([{"t": 1}], time="t").tumbling(10).agg(n=cz.count())
    with pytest.raises(CaesuraError, match="it depends on the order of rows which windows are out"):
        read.run(speculate="passed", claims=cz.tokens())
