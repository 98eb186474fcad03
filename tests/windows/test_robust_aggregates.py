"""`mode` and `median_absolute_deviation`: ties, nulls, corrections, types, buckets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura.errors import PlanError
from caesura.events import History
from caesura.testing import assert_history

BOTH: dict[str, Any] = {"often": cz.mode("v"), "mad": cz.median_absolute_deviation("v")}


def over(*values: float | None) -> tuple[Any, ...]:
    rows = [{"ts": n, "v": v} for n, v in enumerate([*values, None])]
    ((_, _, payload),) = cz.from_rows(rows, time="ts").tumbling(100).agg(**BOTH).run().history.rows()
    return payload


def test_of_several_values_that_come_most_often_the_least_is_the_mode() -> None:
    assert over(3, 1, 3, 1, 2) == (1, 1.0)
    assert over(0.0, -0.0, -1.0) == (0.0, 0.0)


def test_nulls_do_not_count_and_nothing_has_no_mode() -> None:
    assert over(None, 7, None, None) == (7, 0.0)
    rows = [{"ts": 1, "v": None, "w": 1}]
    schema = pa.schema([("ts", pa.int64()), ("v", pa.float64()), ("w", pa.int64())])
    plan = cz.from_rows(rows, schema, time="ts").tumbling(10).agg(**BOTH)
    assert_history(plan.run().history, " LE RE | often mad |\n 0 10 | null null | +")


def test_an_outlier_hardly_moves_the_median_deviation() -> None:
    assert over(1, 1, 2, 2, 4, 6, 900) == (1, 1.0)
    assert over(1, 2, 4, 7) == (1, 1.5)


def test_a_correction_moves_both() -> None:
    rows = [{"ts": n, "to": 9, "kind": "+", "now": None, "v": v} for n, v in enumerate([5, 5, 1])]
    rows.append({**rows[0], "kind": "-", "now": 0})
    changed = cz.from_rows(rows, time="ts", end="to", kind="kind", new_end="now")
    plan = changed.tumbling(10).agg(**BOTH)
    assert_history(plan.run().history, " LE RE | often mad |\n 0 10 | 1 2.0 | +")


def test_texts_have_a_mode_and_no_deviation() -> None:
    words = cz.from_rows([{"ts": n, "w": w} for n, w in enumerate("baab")], time="ts").tumbling(10)
    assert_history(words.agg(often=cz.mode("w")).run().history, " LE RE | often |\n 0 10 | a | +")
    with pytest.raises(PlanError, match="wanted a number"):
        words.agg(mad=cz.median_absolute_deviation("w"))


def test_buckets_agree() -> None:
    rows = [{"ts": n, "k": n % 3, "v": (n * 7) % 5} for n in range(60)]
    plan = cz.from_rows(rows, time="ts", punctuate=cz.delay(3)).group_by("k").hopping(20, every=5).agg(**BOTH)
    cluster = Cluster({"out": plan.node}, 3)
    cluster.run()
    assert History.of(cluster.items["out"], plan.schema) == plan.run().history
