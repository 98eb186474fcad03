"""What workers of Spark import: once, by their parent, and what a session's settings do to it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from caesura.spark.worker.daemon import READ_AHEAD

UNREAD = """
import sys
from caesura.spark.worker.daemon import read_ahead
read_ahead()
from caesura.kernels import compiling
assert not compiling()
before = set(sys.modules)
import caesura.spark.worker.processor, caesura.spark.worker.bucket, caesura.spark.worker.reading
missed = {name for name in set(sys.modules) - before if name.split(".")[0] in ("caesura", "numpy", "pyarrow")}
assert not missed, missed
"""


def test_the_parent_of_workers_has_what_a_bucket_imports() -> None:
    done = subprocess.run([sys.executable, "-c", UNREAD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "numba" in READ_AHEAD


def test_stages_with_and_without_state_share_their_workers(spark: Any) -> None:
    """Spark keeps a pool of workers for each environment, and these settings are all that tells two apart."""
    assert spark.sparkContext.getConf().get("spark.python.daemon.module") == "caesura.spark.worker.daemon"
    assert spark.conf.get("spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled") == "false"

    names = READ_AHEAD

    def parents(batches: Any) -> Any:
        import os
        import sys

        import pyarrow as pa

        for batch in batches:
            known = sum(name in sys.modules for name in names)
            yield pa.record_batch({"parent": [os.getppid()] * len(batch), "modules": [known] * len(batch)})

    rows = spark.range(4).repartition(2).mapInArrow(parents, "parent long, modules long").collect()
    assert len({row.parent for row in rows}) == 1
    assert {row.modules for row in rows} == {len(READ_AHEAD)}
