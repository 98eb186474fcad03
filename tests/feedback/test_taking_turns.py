"""Work that waits goes on without a new item: in the next call, the next step, the next epoch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster
from feedback_streams import feed, rows, stream
from test_feedback_buckets import source

import caesura as cz
from caesura import Pattern, Stream, col
from caesura.events import History
from caesura.punctuation import Intent, Punctuation

SOME = " LE RE | id v |\n 1 2 | 1 null | +\n 1 2 | 2 null | +\n 1 2 | 3 null | +"


def tens(batch: pa.RecordBatch) -> list[int]:
    return [10 * i for i in batch.column("id").to_pylist()]


@pytest.mark.parametrize("per", ["item", "epoch"])
def test_an_idle_query_takes_up_what_waits_once_a_call(per: Any) -> None:
    plan = stream(id="int", v="int").impute("v", tens, budget=1, per=per)
    query = plan.query()
    feed(query, SOME)
    assert [row[3] for row in rows(query, plan)] == [10]
    query.run()
    assert [row[3] for row in rows(query, plan)] == [20]
    assert query.step()
    assert [row[3] for row in rows(query, plan)] == [30]
    assert not query.step()


def test_punctuation_that_waited_for_rows_leaves_with_the_last_of_them() -> None:
    query = stream(id="int", v="int").impute("v", tens, budget=2).query()
    feed(query, SOME + "\n-- 9 --")
    while query.step():
        pass
    assert str(query.take("out")[-1]) == "definite: time < 9"


def imputed(budget: int) -> Stream:
    batches = [[(1, n, 0) for n in range(4)], [(2, 9, 0)]]
    return Stream(source(batches, 3)).impute("v", tens, missing=col("v") == 0, budget=budget, per="epoch")


def came(cluster: Cluster) -> int:
    found = sum(len(item) for item in cluster.items["out"] if not isinstance(item, Punctuation))
    cluster.items["out"].clear()
    return found


def test_an_epoch_without_items_for_it_is_a_turn() -> None:
    plan = imputed(1)
    cluster = Cluster({"out": plan.node}, 1)
    [src] = cluster.stages.sources
    first, _ = src.read({})
    cluster.epoch([(src, first)])  # type: ignore[list-item]
    assert came(cluster) == 1
    cluster.say(Punctuation(Pattern(id=77), Intent.DESIRED, (("standing", True),)))
    cluster.epoch([])
    assert came(cluster) == 1


def test_work_that_waits_asks_for_epochs_until_it_is_done() -> None:
    cluster = Cluster({"out": imputed(1).node}, 1, wakes=True)
    [src] = cluster.stages.sources
    first, _ = src.read({})
    cluster.epoch([(src, first)])  # type: ignore[list-item]
    epochs = 0
    while cluster.returning:
        epochs += 1
        cluster.epoch([])
    assert (epochs, came(cluster)) == (3, 4)


@pytest.mark.parametrize("buckets", [1, 2])
def test_a_demand_is_answered_through_stages_that_hear_it_one_after_the_other(buckets: int) -> None:
    rows_ = [[(1, 1, 5), (1, 2, 5), (2, 3, 5)], [(3, 1, 5)]]
    plan = Stream(source(rows_, 3)).group_by("id").tumbling(10).agg(n=cz.count())
    plan = plan.group_by("n").tumbling(20).agg(k=cz.count()).tumbling(40).agg(all=cz.sum("k"))
    cluster = Cluster({"out": plan.node}, buckets, speculate="watermark")
    [src] = cluster.stages.sources
    first, _ = src.read({})
    cluster.epoch([(src, first)])  # type: ignore[list-item]
    assert came(cluster) == 0
    cluster.say(Punctuation(Pattern(), Intent.DEMANDED))
    saved = {n: d for n, d in cluster.snapshot().items() if d is not None}
    cluster = Cluster({"out": plan.node}, buckets, speculate="watermark")
    cluster.restore(saved)
    cluster.drain()
    shown = History.of(cluster.items["out"], plan.schema).rows()
    assert [row[2] for row in shown] == [(3,)]
    cluster.epoch([], closes=True)
    cluster.drain()
    assert [row[2] for row in History.of(cluster.items["out"], plan.schema).rows()] == [(3,)]
