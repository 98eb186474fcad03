"""A notebook on a fresh kernel, whose first cell installs the wheel: run by a Python with nbclient alone.

``python notebook.py WHEEL SPARK FOLDER``, as in "pyspark==4.2.*"; prints what the last cell printed.
"""

from __future__ import annotations

import sys

CELLS = [
    "%pip install --quiet '{wheel}[spark]' '{spark}'",
    """
import caesura as cz

spark = cz.session("notebook", buckets=2)
rows = [(13, 1, 62.0), (24, 1, 40.0), (18, 1, 48.0), (41, 2, 55.0)]
frame = spark.createDataFrame(rows, "ts long, segment long, speed double")
""",
    """
readings = cz.from_spark(frame, time="ts", punctuate=cz.delay(8))
speeds = readings.group_by("segment").tumbling(10).agg(speed=cz.avg("speed"), n=cz.count())
""",
    "speeds.check()",
    """
import pyspark
batch = speeds.run_batch(spark, output="final")
assert batch.table().num_rows == 3, batch
""",
    """
frame.write.parquet("incoming")
files = cz.read.parquet("incoming", time="ts", punctuate=cz.delay(100))
counts = files.group_by("segment").tumbling(10).agg(n=cz.count())
with counts.start(spark, checkpoint="checkpoint", sink="out", trigger="available") as query:
    query.wait()
    assert sorted(query.table()["n"].to_pylist()) == [1, 1, 2], query.table()
""",
    "speeds.to_spark(spark, output='final').toPandas()",
    """
named = [dict(zip(("ts", "segment", "speed"), row)) for row in rows]
embedded = cz.from_rows(named, time="ts", punctuate=cz.delay(8))
same = embedded.group_by("segment").tumbling(10).agg(speed=cz.avg("speed"), n=cz.count())
same.run(output="final")
""",
    """
names = ["segment", "speed", "n"]
there = sorted(tuple(row) for row in speeds.to_spark(spark, output="final").select(*names).collect())
here = sorted(tuple(row.values()) for row in same.run(output="final").table().select(names).to_pylist())
spark.stop()
assert there == here and len(here) == 3, (there, here)
print(f"{len(here)} rows, the same on Spark {pyspark.__version__} and in the kernel")
""",
]


def main(wheel: str, spark: str, folder: str) -> None:
    """Runs the cells; a cell that fails ends the process with its error."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook()
    texts = [cell.strip().replace("{wheel}", wheel).replace("{spark}", spark) for cell in CELLS]
    book.cells = [nbformat.v4.new_code_cell(text) for text in texts]
    NotebookClient(book, timeout=900, resources={"metadata": {"path": folder}}).execute()
    print(book.cells[-1].outputs[-1]["text"].strip())


if __name__ == "__main__":
    main(*sys.argv[1:])
