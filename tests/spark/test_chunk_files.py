"""Large state lies in files: every version that Spark retains finds its own, and no file stays for ever."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.runtime.query.result import run
from caesura.spark.host.rescale import rescale
from caesura.spark.host.state import read_state, total
from caesura.spark.worker.chunk_files import INLINE, MARGIN, ChunkFiles, FileRow, NamedFile, read_named

RETAINED = 3
Version = tuple[FileRow, dict[str, bytes]]


def attempt(folder: Path, epoch: int, number: int = 0) -> ChunkFiles:
    return ChunkFiles(Place.of(folder), "1-0", epoch=epoch, attempt=number, retained=RETAINED)


def large(fill: int) -> bytes:
    return bytes([fill]) * INLINE


DRAWN = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 255), max_size=3),
        st.booleans(),
        st.sampled_from([0, 0, 0, 1, 2, 3]),
    ),
    max_size=25,
)
"""For each epoch: what changes, whether a first attempt fails, and how far Spark goes back before it."""


@given(DRAWN)
def test_every_version_that_is_retained_finds_its_files(
    tmp_path_factory: pytest.TempPathFactory, drawn: Any
) -> None:
    folder = tmp_path_factory.mktemp("chunks")
    versions: list[Version] = [(FileRow(), {})]
    for change, fails, back in drawn:
        del versions[max(1, len(versions) - back) :]
        epoch = len(versions) - 1
        row, held = versions[-1]
        chunks = {name: None if fill is None else large(fill) for name, fill in change.items()}
        if fails:
            attempt(folder, epoch).save(row, chunks)
        files = attempt(folder, epoch, int(fails))
        assert files.read(row) == held
        row, rest = files.save(row, chunks)
        assert not any(rest.values())
        held = {n: data for n, data in (held | chunks).items() if data is not None}
        versions.append((row, held))
        for kept, wanted in versions[-RETAINED - 1 :]:
            assert read_named(Place.of(folder), kept) == wanted
    _only_named_files_stay(folder, *versions[-1], epoch=len(versions) - 1)


def _only_named_files_stay(folder: Path, row: FileRow, held: dict[str, bytes], epoch: int) -> None:
    """After as many epochs without change as files may stay, and a restore before them."""
    for number in range(epoch, epoch + RETAINED + MARGIN + 2):
        files = attempt(folder, number)
        assert files.read(row) == held
        row, _ = files.save(row, {})
    files = attempt(folder, epoch + 100)
    assert files.read(row) == held
    row, _ = files.save(row, {})
    attempt(folder, epoch + 200).save(row, {})
    assert {f"1-0/{f.name}" for f in (folder / "1-0").glob("*")} == {f.name for f in row.named.values()}


def test_what_is_small_goes_into_the_store_also_where_it_was_large(tmp_path: Path) -> None:
    row, _ = attempt(tmp_path, 0).save(FileRow(), {"a": large(1)})
    row, rest = attempt(tmp_path, 1).save(row, {"a": b"small"})
    assert (row.named, rest) == ({}, {"a": b"small"})
    row, rest = attempt(tmp_path, 2).save(row, {"a": large(2)})
    assert (list(row.named), rest) == (["a"], {"a": None})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: f.unlink(), "lies in '.*1-0/000000000-0-.*-0', which is not there"),
        (lambda f: f.write_bytes(large(1)[1:]), "has 65535 bytes; 65536 of state were written"),
        (lambda f: f.write_bytes(large(2)), "is not the state that was written to it"),
    ],
)
def test_a_missing_or_changed_file_is_named(tmp_path: Path, change: Any, says: str) -> None:
    row, _ = attempt(tmp_path, 0).save(FileRow(), {"a": large(1)})
    change(next((tmp_path / "1-0").iterdir()))
    with pytest.raises(StreamError, match=says):
        attempt(tmp_path, 1).read(row)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "named": {"a": [1]}, "dropped": {}}']
)
def test_a_row_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(StreamError, match="the list of a bucket's files cannot be read"):
        FileRow.of_text(text)


@pytest.mark.parametrize(
    "name", ["../../elsewhere", "/etc/passwd", "1-0/../../../000000000-0-0123456789ab-0"]
)
def test_a_row_names_nothing_outside_its_folder(name: str) -> None:
    with pytest.raises(StreamError, match="cannot be read"):
        FileRow.of_text(FileRow(dropped={1: [name]}).text())
    with pytest.raises(StreamError, match="cannot be read"):
        FileRow.of_text(FileRow({"a": NamedFile(name, 1, "")}).text())


def _feed(folder: Path, numbers: range) -> None:
    for side in ("left", "right"):
        (folder / side).mkdir(exist_ok=True)
        for number in numbers:
            rng = np.random.default_rng([number, len(side)])
            own = {"le": np.full(1500, number), "key": rng.integers(0, 3000, 1500)}
            text = [f"{side} {number} {k:0100d}" for k in range(1500)]
            file = folder / side / f"{number}.parquet"
            pq.write_table(pa.table({**own, f"{side}_text": text}), file)
            os.utime(file, (1_700_000_000 + number,) * 2)


def _joined(folder: Path) -> Stream:
    left, right = (
        cz.read.parquet(folder / side, time="le", punctuate=cz.delay(0), name=side).set_duration(100)
        for side in ("left", "right")
    )
    return left.join(right, on="key")


def _go_on(folder: Path, spark: Any) -> None:
    own = {"sink": folder / "out", "checkpoint": folder / "cp", "trigger": "available", "max_buckets": 2}
    _joined(folder).start(spark, files_per_epoch=1, **own).wait()


def test_large_state_goes_on_from_files_moved_or_not_and_a_lost_one_is_named(
    spark: Any, buckets: Any, tmp_path: Path
) -> None:
    buckets(2)
    _feed(tmp_path, range(2))
    _go_on(tmp_path, spark)
    files = list((tmp_path / "cp" / "chunks").glob("*/*"))
    assert {file.parent.name for file in files} == {"1-0", "1-1"}
    _feed(tmp_path, range(2, 4))
    _go_on(tmp_path, spark)
    assert total(read_state(spark, tmp_path / "cp", "join")) == 2 * 4 * 1500
    _feed(tmp_path, range(4, 5))
    rescale(spark, tmp_path / "cp", 1)
    buckets(1)
    _go_on(tmp_path, spark)
    own = ["LE", "RE", "left_text", "right_text"]
    got = pq.read_table(tmp_path / "out" / "out").select(own).to_pylist()
    wanted = run(_joined(tmp_path).node).changes().select(own).to_pylist()
    assert len(got) > 1000
    assert sorted(map(str, got)) == sorted(map(str, wanted))

    _feed(tmp_path, range(5, 6))
    files[0].unlink()
    with pytest.raises(StreamError, match=f"{files[0].name}', which is not there"):
        _go_on(tmp_path, spark)
