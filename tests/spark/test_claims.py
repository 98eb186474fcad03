"""The bank-transfer test on Spark: each epoch is a claim, and all views answer for its offset log entry."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from killed_pipeline import bank, views

import caesura as cz
from caesura.audit import audit
from caesura.errors import CaesuraError
from caesura.ops.archive import Archive
from caesura.runtime.query.pipelines import run_views


def stored(table: pa.Table, folder: Path, first: int, files: int) -> None:
    """Writes files that Spark takes in their order, which is that of their times."""
    folder.mkdir(exist_ok=True)
    size = len(table) // files
    began = time.time() - 1000
    for n in range(first, first + files):
        file = folder / f"part-{n:03d}.parquet"
        pq.write_table(table.slice((n - first) * size, size), file)
        os.utime(file, (began + n, began + n))


LONG = pytest.mark.skipif(not os.environ.get("CAESURA_SEARCH"), reason="some minutes, for make soak")


def on_spark(pipe: cz.Pipeline, spark: Any, folder: Path) -> None:
    """Runs a pipeline over the files that are there, a file per epoch."""
    pipe.start(
        spark,
        path=folder / "out",
        checkpoint=folder / "checkpoint",
        trigger="available",
        files_per_epoch=1,
        allow_unbounded=True,
    ).wait()


def test_each_epoch_is_a_claim_about_all_views(spark: Any, tmp_path: Path) -> None:
    table = bank.transactions(200, cancelled=0.05)
    stored(table.slice(0, len(table) // 2 * 2), tmp_path / "in", 0, 2)
    some = {view: views(tmp_path)[view] for view in ("accepted", "credits", "credits2")}
    on_spark(cz.pipeline(**some), spark, tmp_path)
    report = audit(tmp_path / "out", plan="stored")
    assert report.right and len(report.findings) == 6, str(report)
    seen = cz.read_claimed(tmp_path / "out")
    assert spark.read.parquet(*seen.paths("accepted")).count() == seen.claim.output["accepted"] > 190
    again = cz.from_claimed(tmp_path / "out", "accepted").totals(n=cz.count())
    done = again.run(claims=cz.tokens())
    for claim, manifest in zip(done.claims, seen.manifests, strict=False):
        assert claim.prefix["accepted/read"] == manifest.claim.prefix["read"]
        count = len(cz.read_claimed(tmp_path / "out", at=manifest.claim.number).history("accepted"))
        assert [row[2] for row in done.at(claim).rows()] == [(count,)]


@LONG
def test_ten_views_on_spark_are_those_of_this_process(spark: Any, tmp_path: Path) -> None:
    table = bank.transactions(200, cancelled=0.05)
    stored(table.slice(0, len(table) // 2 * 2), tmp_path / "in", 0, 2)
    on_spark(views(tmp_path), spark, tmp_path)
    report = audit(tmp_path / "out", plan="stored")
    assert report.right and len(report.findings) == 20, str(report)
    seen, bare = cz.read_claimed(tmp_path / "out"), run_views(views(tmp_path).nodes, None)
    assert {v: seen.history(v).bag for v in seen.views} == {v: bare[v].history.bag for v in seen.views}


@LONG
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
    report = audit(out, plan="stored")
    assert report.right, str(report)
    seen = cz.read_claimed(out)
    assert seen.claim.prefix["read"].offsets == {0: 4}
    assert spark.read.parquet(*seen.paths("accepted")).count() == seen.claim.output["accepted"]
    bare = bank.views(bank.read(table)).run()
    assert {v: seen.history(v).bag for v in seen.views} == {v: bare[v].history.bag for v in seen.views}


@LONG
def test_claims_survive_kills(tmp_path: Path) -> None:
    """Killed in the middle of epochs: what was claimed stays, what is claimed later follows from it."""
    table = bank.transactions(360, cancelled=0.05)
    size, claims = len(table) // 6, tmp_path / "out" / "_claims"
    (tmp_path / "in").mkdir()
    kept: dict[str, bytes] = {}
    for kill in range(3):
        for number in (2 * kill, 2 * kill + 1):
            partial = tmp_path / f"{number}.partial"
            pq.write_table(table.slice(number * size, size if number < 5 else None), partial)
            os.utime(partial, (1_700_000_000 + number,) * 2)
            partial.rename(tmp_path / "in" / f"{number}.parquet")
        process = _started(tmp_path)
        _wait_for_claims(claims, len(kept) + 1, process)
        time.sleep(0.2 * kill)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        there = {file.name: file.read_bytes() for file in claims.glob("*.json")}
        assert {name: there[name] for name in kept} == kept
        report = audit(tmp_path / "out", plan="stored")
        assert report.right, str(report)
        kept = there
    (tmp_path / "stop").touch()
    assert _started(tmp_path).wait(timeout=300) == 0, (tmp_path / "log").read_text()[-3000:]
    report = audit(tmp_path / "out", plan="stored")
    assert report.right, str(report)
    seen, bare = cz.read_claimed(tmp_path / "out"), run_views(views(tmp_path).nodes, None)
    assert {v: seen.history(v).bag for v in seen.views} == {v: bare[v].history.bag for v in seen.views}


def _started(folder: Path) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("killed_pipeline.py")
    log = (folder / "log").open("ab")
    return subprocess.Popen(
        [sys.executable, str(script), str(folder)], stdout=log, stderr=log, start_new_session=True
    )


def _wait_for_claims(claims: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline, log = time.monotonic() + 150, claims.parents[1] / "log"
    while len(list(claims.glob("*.json"))) < count:
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.005)


def test_what_no_epoch_can_claim_is_refused_before_it_starts(tmp_path: Path) -> None:
    read = cz.from_arrow(bank.transactions(5), time="ts")
    archive = Archive(pa.table({"id": [1], "amount": [1]}), ("id",), "amount")
    for odd, why in (
        (read.impute("amount", by=archive, budget=1), "leaves rows to a later epoch"),
        (read.pace(read, within=3), "depends on when rows arrive"),
    ):
        with pytest.raises(CaesuraError, match=why):
            cz.pipeline(odd=odd).start(
                None,
                path=tmp_path / "out",
                checkpoint=tmp_path / "check",
                allow_unbounded=True,  # type: ignore[arg-type]
            )
