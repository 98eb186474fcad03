"""Late rows can be looked at whatever the sink: where it keeps none, they lie beside the checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import caesura as cz
from caesura.cli.main import app
from caesura.io.places import Place
from caesura.io.sinks.protocol import Sink
from caesura.runtime.sinks.late_rows import KEPT_EPOCHS, LateRows
from caesura.spark import CallbackSink, DeltaSink, ParquetSink

ROWS = [{"ts": t, "k": t % 3, "v": t} for t in (1, 5, 900, 6, 7, 950, 8)]
"""Three of them are late."""
SINKS: dict[str, Callable[[Path], Sink]] = {
    "delta": lambda path: cz.delta(path / "table"),
    "duckdb": lambda path: cz.duckdb(path / "file.db"),
    "parquet": lambda path: cz.parquet(path / "table"),
    "changes as delta": lambda path: DeltaSink(str(path / "out")),
    "changes as parquet": lambda path: ParquetSink(str(path / "out")),
    "a function": lambda path: CallbackSink(lambda epoch: None),
}


def clicks() -> cz.Stream:
    return cz.from_rows(ROWS, time="ts", punctuate=cz.delay(2), name="clicks", batch_size=2)


def shown(place: Path) -> list[int]:
    said = CliRunner().invoke(app, ["late", str(place), "--json"])
    assert said.exit_code == 0, said.output
    return sorted(row["v"] for row in json.loads(said.stdout)["clicks"])


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", SINKS)
def test_late_rows_can_be_looked_at_whatever_the_sink(name: str, tmp_path: Path) -> None:
    sink = SINKS[name](tmp_path)
    if name in ("delta", "duckdb", "parquet"):
        pytest.importorskip({"delta": "deltalake", "duckdb": "duckdb", "parquet": "pyarrow"}[name])
        stream = clicks().latest("k").upserts(key="k")
    else:
        stream = clicks()
    query = stream.query(sink=sink, checkpoint=tmp_path / "state")
    query.run()
    assert shown(tmp_path / "out" if sink.keeps_late else tmp_path / "state") == [6, 7, 8]
    again = stream.query(sink=sink, checkpoint=tmp_path / "state", take_over=True)
    again.run()
    assert shown(tmp_path / "out" if sink.keeps_late else tmp_path / "state") == [6, 7, 8]


def test_an_epoch_that_is_delivered_again_does_not_double_its_late_rows(tmp_path: Path) -> None:
    calls: list[int] = []

    def taken(epoch: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("the first try fails")

    stream = clicks()
    query = stream.query(sink=CallbackSink(taken), checkpoint=tmp_path / "state")
    with pytest.raises(Exception, match="first try"):
        query.run()
    stream.query(sink=CallbackSink(taken), checkpoint=tmp_path / "state", take_over=True).run()
    assert len(calls) > 1
    assert shown(tmp_path / "state") == [6, 7, 8]


def test_late_rows_beside_a_checkpoint_are_forgotten_after_so_many_epochs(tmp_path: Path) -> None:
    kept, told = LateRows(Place.of(tmp_path)), {}
    table = clicks().run().late["clicks"]
    for epoch in (0, 100, 101):
        kept.put(epoch, {"clicks": table})
    kept.forget(KEPT_EPOCHS + 100 - KEPT_EPOCHS, lambda source, rows: told.update({source: rows}))
    assert [epoch for _, epoch, _ in kept.files()] == [101]
    assert told == {"clicks": 3}
