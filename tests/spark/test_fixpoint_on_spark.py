"""A loop whose rows lie in all buckets, over hops that change bucket: the same rows as in one process."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import spark_plans as given
from killed_run import ways

from caesura.events import History
from caesura.runtime.running import run
from caesura.spark import MemorySink

LONG = pytest.mark.skipif(not os.environ.get("CAESURA_SEARCH"), reason="test_recovery has such a loop")


@LONG
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_loop_across_buckets_says_what_one_process_says(
    spark: Any, buckets: Any, tmp_path: Path, count: int
) -> None:
    buckets(count)
    given.write(given.readings(120, seed=7), tmp_path / "in", [70])
    stream, sink = ways(tmp_path), MemorySink()
    query = stream.start(
        spark, sink=sink, checkpoint=tmp_path / "cp", trigger="available", allow_unbounded=True
    )
    query.wait()
    wanted = run(stream.node).history
    bound = max(i.pattern.time_bound or 0 for i in sink.items("out") if not hasattr(i, "le"))
    assert bound > 100
    got = History.of(sink.items("out"), stream.node.schema)
    assert _until(got, bound) == _until(wanted, bound)


def _until(history: Any, bound: int) -> Counter[Any]:
    """The rows that had begun, as far as they had come."""
    return Counter((le, min(re, bound), row) for le, re, row in history.rows() if le < bound)
