"""Others speak to a running query by its checkpoint: what they say waits in its loop log."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from cluster import Cluster
from test_feedback_buckets import source
from typer.testing import CliRunner

from caesura import Stream, col
from caesura.cli.main import app
from caesura.errors import CaesuraError, StreamError
from caesura.plan.cut import cut
from caesura.punctuation import Intent
from caesura.runtime.packets.packet import Packet

pytest.importorskip("pyspark")
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.loop_log.records import SuppressedRows
from caesura.spark.worker.job import Job


def said(folder: Path, *words: str) -> list[str]:
    """What a command shows as standing."""
    result = CliRunner().invoke(app, ["feedback", str(folder), *words, "--json"])
    assert result.exit_code == 0, result.output
    return list(json.loads(result.stdout))


def plan() -> Stream:
    return Stream(source([[(t, t % 3, 1) for t in range(6)]], 2)).where(col("v") > 0)


def started(folder: Path, stream: Stream | None = None, *, name: str = "out") -> CheckpointFeedback:
    node = (stream or plan()).node
    stages = cut({name: node}, 2)
    return CheckpointFeedback.of(
        Job("q", stages, 2, "arrival", closes=False, loop=f"{folder}/loop"), {name: node}
    )


def messages(folder: Path) -> list[Packet]:
    log = LoopLog(f"{folder}/loop")
    tables = [log.read(name) for name in log.feedback(-1, 99)]
    rows = [tuple(row.values())[1:] for table in tables for row in table.to_pylist()]
    return [Packet.from_row(row) for row in rows]


def test_every_word_reaches_the_query_and_what_stands_is_listed(tmp_path: Path) -> None:
    query = started(tmp_path)
    assert said(tmp_path, "list") == []
    assert said(tmp_path, "assume", "id = 1") == ["#1 assumed: id = 1"]
    assert said(tmp_path, "desire", "id = 2") == ["#1 assumed: id = 1", "#2 desired: id = 2"]
    assert said(tmp_path, "demand") == query.standing()
    query.give(Intent.ASSUMED, col("id") == 0, None)  # whoever started it speaks, too
    assert said(tmp_path, "withdraw", "#1") == ["#2 desired: id = 2", "#3 assumed: id = 0"]
    heard = [str(m) for packet in messages(tmp_path) if packet.bucket == 0 for m in packet.items]
    assert heard == [
        "assumed: id = 1 (standing)",
        "desired: id = 2 (standing)",
        "demanded: *",
        "assumed: id = 0 (standing)",
        "assumed: id = 1 (standing) (withdrawn)",
    ]


def test_a_text_of_sql_says_the_same_as_an_expression(tmp_path: Path) -> None:
    here, there = plan().query(), started(tmp_path)
    assert here.assume("id in (0, 2)").patterns == here.assume(col("id").isin(0, 2)).patterns
    assert (
        there.give(Intent.DESIRED, "id = 1 or id = 2", None).patterns
        == here.desire("id > 0 and id < 3").patterns
    )
    for give in (here.assume, here.desire, here.demand):
        with pytest.raises(CaesuraError, match="no column 'idd'"):
            give("idd = 3")


def test_what_the_command_line_says_is_obeyed(tmp_path: Path) -> None:
    stream = plan()
    started(tmp_path, stream)
    said(tmp_path, "assume", "id = 1")
    cluster = Cluster({"out": stream.node}, 2)
    [src] = cluster.stages.sources
    from dataclasses import replace

    cluster.returning = [replace(p, stage=~p.stage) for p in messages(tmp_path)]
    cluster.epoch([(src, raw) for raw in src.read({})])  # type: ignore[misc]
    came = [r[3][0] for item in cluster.items["out"] if hasattr(item, "rows") for r in item.rows()]
    assert sorted(came) == [0, 0, 2, 2]


def test_what_is_still_suppressed_is_listed(tmp_path: Path) -> None:
    started(tmp_path)
    for bucket in range(2):
        log, record = LoopLog(f"{tmp_path}/loop"), SuppressedRows([("tumbling", "id = 1")])
        log.save(SuppressedRows.name(1, bucket), record)
    assert said(tmp_path, "list") == ["still suppressed at 'tumbling': id = 1"]


def test_two_who_speak_at_once_are_both_heard(tmp_path: Path) -> None:
    started(tmp_path)
    voices = [
        threading.Thread(
            target=lambda n=n: CheckpointFeedback.at(tmp_path).give(Intent.ASSUMED, col("id") == n, None)
        )
        for n in range(8)
    ]
    for voice in voices:
        voice.start()
    for voice in voices:
        voice.join()
    assert len(messages(tmp_path)) == 16
    assert len(CheckpointFeedback.at(tmp_path).standing()) == 8


def test_what_was_said_of_an_output_that_is_gone_can_be_withdrawn(tmp_path: Path) -> None:
    started(tmp_path, name="map").give(Intent.ASSUMED, col("id") == 1, None)
    later = started(tmp_path)
    assert later.standing() == ["#1 assumed: id = 1 (over: there is no output 'map' any more)"]
    later.withdraw(1)
    assert later.standing() == []
    with pytest.raises(StreamError, match="there is no output 'map'"):
        later.give(Intent.ASSUMED, col("id") == 1, "map")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("assume", "idd = 1"), "Did you mean 'id'?"),
        (("withdraw", "7"), "no feedback #7 is standing"),
        (("assume",), "assume which rows?"),
        (("praise", "id = 1"), "is none of assume"),
    ],
)
def test_a_word_that_means_nothing_is_answered(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    started(tmp_path)
    result = CliRunner().invoke(app, ["feedback", str(tmp_path), *words])
    assert result.exit_code in (1, 2)
    assert told in result.output.replace("\n", " ").replace("\u2502 ", "")


def test_where_nobody_listens_the_remedy_says_how(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["feedback", str(tmp_path), "list"])
    assert result.exit_code == 1
    assert "no query takes feedback" in result.output and "--feedback" in result.output


def test_the_former_name_of_the_command_works_and_warns(tmp_path: Path) -> None:
    started(tmp_path)
    result = CliRunner().invoke(app, ["tell", str(tmp_path), "assume", "id = 1"])
    assert result.stdout == "#1 assumed: id = 1\n"
    assert "deprecated" in result.stderr and "caesura feedback CHECKPOINT" in result.stderr
