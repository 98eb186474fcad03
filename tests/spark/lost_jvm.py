"""A query whose JVM is killed; prints what each way of asking says. Usage: lost_jvm.py FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkContext

import caesura as cz
from caesura.errors import CaesuraError


def said(ask: Any) -> str:
    try:
        return f"answered {ask()}"
    except CaesuraError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - it is what the test looks for
        return f"bare {error!r}"


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "in").mkdir()
    pq.write_table(pa.table({"ts": [1], "id": [2]}), folder / "in" / "0.parquet")
    spark = cz.session("caesura-lost", master="local[1]", buckets=1)
    stream = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay(1))
    query = stream.start(spark, sink="memory", checkpoint=folder / "cp")
    query.drain()
    SparkContext._gateway.proc.kill()  # type: ignore[union-attr]
    SparkContext._gateway.proc.wait()  # type: ignore[union-attr]
    asked = {"wait": query.wait, "drain": query.drain, "active": lambda: query.active, "stop": query.stop}
    asked |= {"status": query.status, "progress": query.progress}
    (folder / "said.json").write_text(json.dumps({name: said(ask) for name, ask in asked.items()}))


if __name__ == "__main__":
    main()
