"""A batch in separate executor processes: prints whether each output equals the embedded engine's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import spark_plans as given

import caesura as cz
from caesura.runtime.running import run
from caesura.spark import run_all


def main() -> None:
    streams = given.plans(Path(sys.argv[1]))
    spark = cz.session("caesura-separate", master="local-cluster[2,1,1024]", buckets=3)
    results = run_all({name: stream.node for name, stream in streams.items()}, spark)
    same = {name: results[name].history == run(stream.node).history for name, stream in streams.items()}
    Path(sys.argv[2]).write_text(json.dumps(same))
    spark.stop()


if __name__ == "__main__":
    main()
