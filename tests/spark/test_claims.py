"""The bank-transfer test on Spark: each epoch is a claim, and all views answer for its offset log entry."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura.audit import audit

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "bank"))

import pipeline as bank


def stored(table: pa.Table, folder: Path, first: int, files: int) -> None:
    folder.mkdir(exist_ok=True)
    size = len(table) // files
    for n in range(files):
        pq.write_table(table.slice(n * size, size), folder / f"part-{first + n:03d}.parquet")


@pytest.mark.skipif(not os.environ.get("CAESURA_SEARCH"), reason="most of a minute, for make soak")
def test_every_epoch_is_a_claim_that_passes_the_audit(spark: Any, tmp_path: Path) -> None:
    table = bank.transactions(600, cancelled=0.05)
    table = table.slice(0, len(table) // 4 * 4)
    data, out, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    stored(table.slice(0, len(table) // 2), data, 0, 2)
    shape = {"end": "end", "kind": "kind", "new_end": "new_end"}

    def run() -> None:
        accepted = cz.read.parquet(data, time="ts", punctuate=cz.delay(bank.DELAY), **shape)
        query = bank.views(accepted).start(
            spark,
            path=out,
            checkpoint=checkpoint,
            trigger="available",
            files_per_epoch=1,
            allow_unbounded=True,
        )
        query.wait()

    run()
    assert [cz.read_claimed(out, at=n).claim.prefix["read"].log for n in range(2)] == [
        f'{{"logOffset":{n}}}' for n in range(2)
    ]
    stored(table.slice(len(table) // 2), data, 2, 2)
    (out / "_claims" / "00000001.json").unlink()  # as if killed before the last claim was made
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    run()
    report = audit(out)
    assert report.right, str(report)
    seen = cz.read_claimed(out)
    assert seen.claim.prefix["read"].offsets == {0: 4}
    assert spark.read.parquet(*seen.paths("accepted")).count() == seen.claim.output["accepted"]
    bare = bank.views(bank.read(table)).run()
    assert {v: seen.history(v).bag for v in seen.views} == {v: bare[v].history.bag for v in seen.views}
