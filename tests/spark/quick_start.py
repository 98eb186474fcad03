"""How tests start Spark's JVM: with the classes laid out that an earlier run has loaded.

Without, a start looks every class up in 280 jars: a session takes some three seconds longer to be there. What
an earlier run has laid out lies with pytest's other files of this folder; the JVM holds it against its own
version and class path, and does without it where they differ.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

import caesura as cz

LIGHTLY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Short runs on two cores are mostly class loading: compile little, and collect in one thread."""
FOLDER = Path(__file__).parents[2] / ".pytest_cache"
SETTING = "spark.driver.extraJavaOptions"


def laid_out() -> Path:
    """The file of classes, of this Spark and this Java."""
    java = shutil.which("java") or os.environ.get("JAVA_HOME", "")
    of = f"{pyspark.__version__} {Path(pyspark.__file__).parent} {Path(java).resolve()}"
    return FOLDER / f"spark-classes-{sha256(of.encode()).hexdigest()[:12]}.jsa"


def quick_start() -> dict[str, Any]:
    """Settings of a session."""
    file = laid_out()
    there = file.is_file() and file.stat().st_size > 0
    return {SETTING: f"{LIGHTLY} -XX:SharedArchiveFile={file}" if there else LIGHTLY}


def lay_out() -> None:
    """Makes the file once; whoever comes meanwhile, or has a Java that cannot, does without."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "spark-classes.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not laid_out().is_file():
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            subprocess.run([sys.executable, __file__], env=env, check=False)
            laid_out().touch()  # an empty one: it could not be made, and is not tried again


def main() -> None:
    """Runs a query with state over two files, and has the JVM write at its end what it has loaded."""
    from pyspark import SparkContext

    with tempfile.TemporaryDirectory() as made:
        folder, partial = Path(made) / "in", laid_out().with_suffix(".partial")
        partial.unlink(missing_ok=True)
        folder.mkdir()
        spark = cz.session(
            master="local[2]", buckets=2, **{SETTING: f"{LIGHTLY} -XX:ArchiveClassesAtExit={partial}"}
        )
        for number in range(2):
            rows = pa.table({"ts": list(range(10 * number, 10 * number + 10)), "id": [0, 1] * 5})
            pq.write_table(rows, folder / f"{number}.parquet")
        read = cz.read.parquet(folder, time="ts", punctuate=cz.delay(1))
        counts = read.group_by("id").tumbling(5).agg(n=cz.count())
        counts.start(
            spark,
            sink=Path(made) / "out",
            checkpoint=Path(made) / "cp",
            trigger="available",
            files_per_epoch=1,
        ).wait()
        spark.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()  # it writes then
        partial.rename(laid_out())


if __name__ == "__main__":
    main()
