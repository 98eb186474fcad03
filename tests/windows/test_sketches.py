"""`approx_count_distinct`: its error, copies, buckets, retracts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura.events import History
from caesura.ops.aggregate.accumulators.sketch import estimates, precision, sketched


@pytest.mark.parametrize("error", [0.02, 0.1])
def test_estimates_are_off_by_no_more_than_is_stated(error: float) -> None:
    bits = precision(error)
    for size in (100, 1_000, 10_000):
        owner = np.repeat(np.arange(50), size)
        found = estimates(sketched(owner, pa.array(np.arange(50 * size)), 50, bits))
        off = found / size - 1
        assert np.sqrt((off**2).mean()) < 1.3 * error
        assert abs(off.mean()) < 0.5 * error


def test_few_values_are_counted_exactly() -> None:
    for size in range(30):
        found = estimates(sketched(np.zeros(size, np.int64), pa.array(np.arange(size)), 1, precision(0.02)))
        assert found.tolist() == [size]


ROWS = [{"ts": n, "v": (n * 7) % 500, "k": n % 2} for n in range(2_000)]


def test_the_error_is_in_the_schema_and_copies_do_not_count() -> None:
    plan = cz.from_rows(ROWS, time="ts").tumbling(5_000).agg(d=cz.approx_count_distinct("v"))
    assert plan.node.schema.field("d").metadata == {b"caesura.error": b"0.02"}
    ((_, _, (about,)),) = plan.run(output="final").history.rows()
    assert abs(about - 500) < 25


def test_a_sketch_of_what_is_left_after_retracts_is_that_of_rows_that_only_came() -> None:
    lived = [{**row, "to": 5_000, "kind": "+", "now": 0} for row in ROWS]
    gone = [{**row, "kind": "-", "now": row["ts"]} for row in lived[:300]]
    corrected = cz.from_rows([*lived, *gone], time="ts", end="to", kind="kind", new_end="now")
    left = cz.from_rows(lived[300:], time="ts", end="to")
    assert left.node.properties.insert_only and not corrected.node.properties.insert_only
    both = [rows.tumbling(5_000).agg(d=cz.approx_count_distinct("v", 0.1)) for rows in (corrected, left)]
    assert both[0].run().history.rows() == both[1].run().history.rows()


def test_buckets_put_their_sketches_together() -> None:
    rows = cz.from_rows(ROWS, time="ts", punctuate=cz.delay(3))
    plan = rows.tumbling(1_000).agg(d=cz.approx_count_distinct("v", 0.1), n=cz.count())
    cluster = Cluster({"out": plan.node}, 3)
    cluster.run()
    assert History.of(cluster.items["out"], plan.schema) == plan.run().history
