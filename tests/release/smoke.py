"""What must work wherever the wheel is installed: run by a Python that has nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

began = time.perf_counter()
import caesura as cz  # noqa: E402 - its import is timed

IMPORTED = time.perf_counter() - began


def rows() -> cz.Stream:
    readings = [(13, 62.0), (24, 40.0), (18, 48.0), (41, 55.0), (12, 99.0)]
    return cz.from_rows(
        [{"ts": at, "segment": 1, "speed": speed} for at, speed in readings],
        time="ts",
        punctuate=cz.delay(8),
        batch_size=1,
    )


def windows() -> None:
    """Windows, corrections, a late row."""
    speeds = rows().group_by("segment").tumbling(10).agg(speed=cz.avg("speed"), n=cz.count())
    made = speeds.run(output="final")
    assert made.table()["n"].to_pylist() == [2, 1, 1], made
    assert made.late["read"].num_rows == 1
    assert speeds.check().safe


def text() -> None:
    """The same in SQL."""
    query = """SELECT segment, max(speed) AS top
    FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), 10)) GROUP BY segment, window_start, window_end"""
    assert cz.sql(query, readings=rows()).run().table()["top"].to_pylist() == [62.0, 40.0, 55.0]


def files(folder: Path) -> None:
    """A folder in, a folder out, and on from where it stood."""
    (folder / "in").mkdir()
    (folder / "in" / "1.csv").write_text("ts,shop\n1,a\n2,b\n")
    shops = cz.read.csv(folder / "in", time="ts").group_by("shop").totals(n=cz.count())
    with shops.query(checkpoint=folder / "checkpoint") as query:
        query.run()
    (folder / "in" / "2.csv").write_text("ts,shop\n3,a\n")
    with shops.query(checkpoint=folder / "checkpoint") as query:
        query.run()


def command(folder: Path) -> None:
    """A new project by the command, which then runs."""
    caesura = [sys.executable, "-m", "caesura"]
    calls = (folder, ["new", "shop"]), (folder / "shop", ["check", "pipeline.py"])
    for place, call in calls:
        subprocess.run([*caesura, *call], cwd=place, check=True, timeout=120, stdout=subprocess.DEVNULL)


def main() -> None:
    """Runs all, and prints what a release note says."""
    windows()
    text()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files(folder)
        if "cli" in sys.argv[1:]:
            command(folder)
    print(f"ok: imported in {1000 * IMPORTED:.0f} ms")


if __name__ == "__main__":
    main()
