"""Claims of pipelines on Spark that change: by command, after a kill; and an epoch reads no earlier claim."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_change_on_spark import claim, put
from typer.testing import CliRunner

import caesura as cz
from caesura.audit import audit
from caesura.cli import app
from caesura.consistency import Prefix
from caesura.consistency.store import Store
from caesura.errors import StreamError
from caesura.io.places.local import LocalStorage
from caesura.spark.host.pipelines import ClaimedSink

NODE = cz.from_rows([{"ts": 1, "id": 2}], time="ts").node


@pytest.fixture
def prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each epoch has read a row more, without a log of Spark's."""
    made = lambda sink, epoch, *rest: ({"read": Prefix(offsets={0: epoch + 1})}, {})  # noqa: E731
    monkeypatch.setattr(ClaimedSink, "_prefix", made)


def started(folder: Path) -> ClaimedSink:
    sink = ClaimedSink(str(folder / "out"), checkpoint=str(folder / "cp"), nodes={"all": NODE})
    sink.open({"all": NODE})
    sink.attach("query")
    return sink


def epoch(sink: ClaimedSink, number: int) -> None:
    """An epoch with one row, as a driver has it written and committed."""
    assert sink.pending(number, ["all"])
    sink.begin(number)
    schema = sink._schemas["all"]
    row = pa.Table.from_pylist([dict.fromkeys(schema.names)], schema)
    part = sink.writer(number)("all", 0, row)
    sink.commit(number, list(part) if not hasattr(part, "output") else [part])
    assert not sink.pending(number, ["all"])


@pytest.mark.usefixtures("prefixes")
def test_an_epoch_reads_no_claim_but_a_start_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = LocalStorage.read

    def counted(storage: LocalStorage, path: str) -> bytes:
        read.append(path)
        return real(storage, path)

    monkeypatch.setattr(LocalStorage, "read", counted)
    sink, numbers = started(tmp_path), []
    for number in range(12):
        read.clear()
        epoch(sink, number)
        numbers.append(len(read))
        assert not any("_claims" in path for path in read[:-1])
    assert len(set(numbers[1:])) == 1
    read.clear()
    later = started(tmp_path)
    epoch(later, 12)
    assert sum("_claims" in path for path in read) == 12
    chain = Store(tmp_path / "out").chain()
    assert chain.flaws == [] and [m.claim.number for m in chain.manifests] == list(range(13))
    assert [m.claim.output["all"] for m in chain.manifests] == list(range(1, 14))


@pytest.mark.usefixtures("prefixes")
def test_a_start_that_was_taken_over_claims_no_more(tmp_path: Path) -> None:
    first = started(tmp_path)
    epoch(first, 0)
    second = started(tmp_path)
    epoch(second, 1)
    for number in (1, 2):
        with pytest.raises(StreamError, match="another start of this query writes"):
            epoch(first, number)
    epoch(second, 2)
    chain = Store(tmp_path / "out").chain()
    assert chain.flaws == [] and chain.last is not None and chain.last.claim.output == {"all": 3}


FLOW = """
import caesura as cz
from caesura import col
rows = cz.read.parquet({folder!r}, time="t", punctuate=cz.delay(4), name="in").where(col("v") > {least})
counts = rows.group_by("id").tumbling(10).agg(n=cz.count())
pipeline = cz.pipeline(kept=rows, n=counts)
"""


def test_a_pipeline_is_upgraded_by_command_and_after_a_kill(spark: Any, tmp_path: Path) -> None:
    for number in range(2):
        put(tmp_path, number)
    script = Path(__file__).with_name("killed_claims.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (tmp_path / "log").open("wb") as log:
        call = [sys.executable, script, tmp_path]
        done = subprocess.Popen(call, env=env, stdout=log, stderr=log, start_new_session=True)
        assert done.wait(timeout=240) == -signal.SIGKILL, (tmp_path / "log").read_text()[-3000:]
    assert [file.name for file in (tmp_path / "out" / "_claims").glob("*.json")] == ["00000000.json"]
    claim(tmp_path, spark, "filter", on_change="rebuild")
    seen = cz.read_claimed(tmp_path / "out")
    assert seen.manifests[0].claim.plans == (1,) and seen.claim.plans == (2,)
    report = audit(tmp_path / "out", plan="stored")
    assert report.right and {f.claim.plan for f in report.findings} == {1, 2}, str(report)

    flow = tmp_path / "flow.py"
    flow.write_text(FLOW.format(folder=str(tmp_path / "in"), least=1))
    words = ["upgrade", str(tmp_path / "cp"), str(flow), "--sink", str(tmp_path / "out")]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0 and "became" in shown.output, shown.output
    assert cz.read_claimed(tmp_path / "out").claim == seen.claim
    put(tmp_path, 2)
    shown = CliRunner().invoke(app, [*words, "--how", "rebuild"])
    assert shown.exit_code == 0, shown.output
    report = audit(tmp_path / "out", plan="stored")
    assert report.right and {f.claim.plan for f in report.findings} == {1, 2, 3}, str(report)
    assert cz.read_claimed(tmp_path / "out").claim.prefix["in"].offsets == {0: 3}
