"""What was taken away or cut off is told by its name; what went wrong in Spark is told by its cause."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql.streaming.datasource import ReadAllAvailable

from caesura.errors import CaesuraError, StreamError
from caesura.io.places import Place
from caesura.io.places.lease import Lease
from caesura.io.sinks.protocol import refuse_behind
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.spark.errors import cause_of, explained, ours
from caesura.spark.host.checkpoint import CHECKPOINT_FORMAT, FORMAT, query_id, read_plan
from caesura.spark.host.clock_source import ClockReader
from caesura.spark.host.entered_epochs import EnteredEpochs
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.host.loop_source import LoopReader
from caesura.spark.host.source_log import check_files, check_logs, files_of, last_offsets
from caesura.spark.loop_log.log import LoopLog, ipc_bytes

ALL = ReadAllAvailable()


def logged(checkpoint: Path, epochs: list[list[Path]]) -> None:
    """What Spark writes down before it runs each epoch."""
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "sources" / "1").mkdir(parents=True)
    for number, files in enumerate(epochs):
        entries = [{"path": file.as_uri(), "timestamp": 1, "batchId": number} for file in files]
        log = "\n".join(["v1", *map(json.dumps, entries)])
        (checkpoint / "sources" / "1" / str(number)).write_text(log)
        (checkpoint / "offsets" / str(number)).write_text(
            f'v1\n{{}}\n-\n{{"logOffset":{number}}}\n{{"epoch":3}}'
        )


def test_a_file_that_an_epoch_needs_and_that_is_gone_is_named(tmp_path: Path) -> None:
    files = [tmp_path / f"{n} %.parquet" for n in range(3)]
    for file in files:
        file.touch()
    logged(tmp_path / "cp", [[files[0]], [files[1], files[2]]])
    files[0].unlink()  # its epoch is long over
    check_files(Place.of(tmp_path / "cp"), 1)
    files[2].unlink()
    with pytest.raises(StreamError, match=r"2 %\.parquet', which belongs to epoch 1, is gone"):
        check_files(Place.of(tmp_path / "cp"), 1)


def committed(folder: Path, *epochs: int) -> None:
    (folder / "_commits").mkdir(parents=True, exist_ok=True)
    sink = ParquetSink(str(folder))
    for epoch in epochs:
        sink.commit(epoch, [])


@pytest.mark.parametrize("gone", [0, 1, 3, 4])
def test_a_commit_that_is_gone_is_named_when_the_query_starts_again(tmp_path: Path, gone: int) -> None:
    committed(tmp_path, 0, 1, 3, 4)  # moving a checkpoint takes an epoch that writes nothing
    committed(tmp_path, 4, 5)
    (tmp_path / "_commits" / f"{gone:06d}.json").unlink()
    if gone == 4:
        (tmp_path / "_commits" / "000005.json").unlink()
    with pytest.raises(StreamError, match=f"{5 if gone == 4 else gone:06d}.json' is gone"):
        committed(tmp_path, 6)


def test_a_file_of_the_loop_log_that_is_gone_is_named(tmp_path: Path) -> None:
    log, reader = LoopLog(str(tmp_path)), LoopReader(str(tmp_path))
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) == start
    for bucket in (0, 1):
        log.write(3, bucket, pa.record_batch({"n": [bucket]}))
    log.note_sent()
    log.add_feedback(pa.record_batch({"n": [7]}))
    end = reader.latestOffset(start, ALL)
    parts = reader.partitions(start, end)
    read = [b.column("n").to_pylist() for part in parts for b in reader.read(part)]
    assert read == [[7], [0], [1]]
    (tmp_path / "000000000003-0001.arrow").unlink()
    with pytest.raises(RuntimeError, match=r"CAESURA<<StreamError\|.*000000000003-0001.arrow' .*is gone"):
        reader.latestOffset(start, ALL)
    with pytest.raises(RuntimeError, match="is gone"):
        list(reader.read(reader.partitions(start, end)[-1]))
    (tmp_path / "000000000000.feedback").write_bytes(b"cut")
    with pytest.raises(RuntimeError, match="cannot be read"):
        list(reader.read(reader.partitions(start, end)[0]))


TARGETS = {"buckets": 2, "readers": "x", "outputs": {}}
KEPT = {FORMAT: CHECKPOINT_FORMAT, "buckets": 2, "partitions": 2, "stages": 2, "sources": {}, "keeps": {}}
STANDING = {"last": 0, "feedback": []}
ENTERED = {"format": 1, "entries": [{"epoch": 0, "at": {"0": "7"}, "clock": 1000}]}


@pytest.mark.parametrize(
    ("name", "content", "reads"),
    [
        ("caesura.json", KEPT, lambda folder: read_plan(Place.of(folder))),
        ("metadata", {"id": "one"}, lambda folder: query_id(Place.of(folder))),
        ("loop/feedback_targets.json", TARGETS, CheckpointFeedback.at),
        (
            "loop/feedback.json",
            STANDING,
            lambda place: CheckpointFeedback(f"{place}/loop", 2, {}).standing(),
        ),
        ("entered/000000.json", ENTERED, lambda folder: EnteredEpochs(Place.of(folder)).read()),
    ],
)
def test_a_file_that_is_cut_off_anywhere_is_named(
    tmp_path: Path, name: str, content: dict[str, Any], reads: Any
) -> None:
    file, text = tmp_path / name, json.dumps(content)
    file.parent.mkdir(exist_ok=True)
    for size in range(len(text)):
        file.write_text(text[:size])
        with pytest.raises(StreamError, match=f"{file.name}' is not whole"):
            reads(tmp_path)
    file.write_text(text)
    reads(tmp_path)


def test_the_end_of_sparks_logs_cut_off_anywhere_is_named(tmp_path: Path) -> None:
    logged(tmp_path, [[], []])
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    place = Place.of(tmp_path)
    check_logs(place)
    for name in ("offsets/1", "commits/0", "sources/1/1"):
        file = tmp_path / name
        text = file.read_text() + ('\n{"path":"x","batchId":1}' if name.startswith("sources") else "")
        for size in range(len(text)):
            file.write_text(text[:size])
            if name.startswith("sources"):
                if size > len("v1\n"):
                    with pytest.raises(StreamError, match="sources/1/1', which Spark wrote, is not whole"):
                        files_of(place, 1, 1)
            else:
                with pytest.raises(StreamError, match=f"{name}', which Spark wrote, is not whole"):
                    check_logs(place)
        file.write_text(text)
    check_logs(place)
    (tmp_path / "offsets" / "0").unlink()
    with pytest.raises(StreamError, match="offsets/0' is gone"):
        check_logs(place)


def test_a_loop_log_of_a_later_version_is_named_and_one_of_an_earlier_is_read(tmp_path: Path) -> None:
    log, rows = LoopLog(str(tmp_path)), pa.record_batch({"n": [1]})
    (tmp_path / "old.arrow").write_bytes(ipc_bytes(rows))
    assert log.read("old.arrow").to_pylist() == [{"n": 1}]
    (tmp_path / "new.arrow").write_bytes(ipc_bytes(rows.replace_schema_metadata({"caesura.format": "2"})))
    with pytest.raises(StreamError, match=r"new.arrow' of the loop log has format 2; .* up to 1"):
        log.read("new.arrow")
    log.write(3, 0, rows)
    assert log.read(log.names()[0]).schema == rows.schema


@pytest.mark.parametrize(("checkpoint", "part"), [("cp", "."), ("cp", "plan-2"), ("plan-2", ".")])
def test_a_deposed_start_writes_nothing_into_the_loop_log(checkpoint: str, part: str, tmp_path: Path) -> None:
    home = Place.of(tmp_path / checkpoint)
    early = Lease.take(home)
    rows, place = pa.record_batch({"n": [1]}), str(tmp_path / checkpoint / part / "loop")
    LoopLog(place, early.number).write(3, 0, rows)
    late = Lease.take(home)
    for write in (lambda log: log.write(3, 0, None), lambda log: log.write(4, 0, rows)):
        with pytest.raises(StreamError, match="was taken over by"):
            write(LoopLog(place, early.number))
    LoopLog(place, late.number).write(4, 0, rows)
    assert len(LoopLog(place).names()) == 2


def test_a_sink_that_is_ahead_of_sparks_offsets_is_refused(tmp_path: Path) -> None:
    committed(tmp_path / "out", 0, 1)
    logged(tmp_path, [[]])
    with pytest.raises(StreamError, match="the sink has epoch 1, and the query goes on behind epoch 0"):
        refuse_behind(ParquetSink(str(tmp_path / "out")), last_offsets(Place.of(tmp_path)), "they are gone")


PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/worker.py", line 2, in main
    raise KeyError(1)
KeyError: 1

During handling of the above exception, another exception occurred:

{last}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
Caused by: org.apache.spark.SparkException: Job aborted
"""


def test_the_cause_of_a_trace_is_what_was_raised_last() -> None:
    assert cause_of(PYTHON.format(last="ValueError: no")) == "ValueError: no"
    assert cause_of("java.io.IOException: No space left on device\n\tat java.base") == (
        "IOException: No space left on device"
    )
    assert cause_of("[QUERY] it stopped.\n\tat x") == "[QUERY] it stopped."
    spark = "[STREAM_FAILED] x\n: org.apache.spark.SparkException: [FAILED_READ_FILE.KIND] no 'a'.\n"
    assert cause_of(f"{spark}Caused by: java.lang.OddException: z") == "[FAILED_READ_FILE.KIND] no 'a'."
    assert cause_of("") == "nothing was said"


def test_a_full_disk_says_so_wherever_it_was_met() -> None:
    full = "OSError: [Errno 28] No space left on device"
    for error in (ours(RuntimeError(PYTHON.format(last=full))), explained(OSError(28, "No space left"), 3)):
        assert isinstance(error, StreamError)
        assert "a disk is full" in str(error)
        assert "Make room" in str(error)


def test_a_sink_that_is_away_is_not_taken_for_spark() -> None:
    away = ConnectionRefusedError(111, "Connection refused")
    assert "the sink failed in epoch 3" in str(explained(away, 3))
    assert "Spark's JVM is gone" in str(explained(Py4JNetworkError("Answer from Java side is empty"), 3))


def test_a_call_that_the_jvm_left_without_an_answer_says_that_it_is_gone() -> None:
    silent = "An error occurred while calling o132.isActive"
    assert "Spark's JVM is gone" in str(ours(Py4JError(silent)))
    assert "Spark's JVM is gone" not in str(ours(Py4JError(f"{silent}. Trace:\nMethod does not exist\n")))


def test_errors_from_a_script_without_an_ending_name_its_line() -> None:
    code = compile("import caesura as cz\ncz.from_rows([], time='ts')", "/home/me/flow", "exec")
    with pytest.raises(CaesuraError, match=r"\(flow:2\)"):
        exec(code, {})


def test_the_clock_is_read_when_it_is_due_and_rests_between(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000]
    monkeypatch.setattr("caesura.spark.host.clock_source._now", lambda: now[0])
    reader = ClockReader(100, [1], 2)
    first = reader.latestOffset(reader.initialOffset(), ALL)
    now[0] = 2_000
    assert reader.latestOffset(first, ALL) == first == {"clock": 1_000}
    second = reader.latestOffset(first, ALL)
    assert second == {"clock": 2_000}
    [part] = reader.partitions(first, second)
    [batch] = reader.read(part)
    assert batch.column("bucket").to_pylist() == [0, 1]
    once = ClockReader(100, [1], 2)
    once.prepareForTriggerAvailableNow()
    now[0] = 9_000
    assert once.latestOffset(once.initialOffset(), ALL) == {"clock": 2_000}
    assert once.latestOffset({"clock": 2_000}, ALL) == {"clock": 2_000}
