"""A checkpoint that was copied or restored elsewhere: Spark's notes name the place where it lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from caesura.cli import app
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.spark.host.moved import _moved, follow_move, refuse_moved

SCHEMA = "state/0/_stateSchema/default/0_a"


def note(root: str) -> dict[str, Any]:
    store = {"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": [f"{root}/{SCHEMA}"]}
    return {"operatorInfo": {"operatorId": 0}, "stateStoreInfo": [store, {"storeName": "of an early Spark"}]}


def written(folder: Path, root: str) -> Path:
    """A checkpoint with two notes of one operator, and Hadoop's sums of them."""
    notes = folder / "state" / "0" / "_metadata" / "v2"
    notes.mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"a1"}')
    for number in ("0", "7"):
        (notes / number).write_text("v2\n" + json.dumps(note(root)))
        (notes / f".{number}.crc").write_bytes(b"crc")
    return notes


@pytest.mark.parametrize(
    ("was", "lies", "named"),
    [
        ("file:/old/cp", "/new/cp", "file:/new/cp"),
        ("file:/old/cp", "/old/cp", "file:/old/cp"),
        ("file:///old/cp", "/old/cp", "file:///old/cp"),
        ("file:/old/cp", "/old/cp/plan-2", "file:/old/cp/plan-2"),
        ("s3a://bucket/cp", "s3://bucket/cp", "s3a://bucket/cp"),
        ("s3a://bucket/cp", "s3://backup/2024/cp", "s3a://backup/2024/cp"),
        ("file:/old/cp", "s3://backup/cp", "s3a://backup/cp"),
        ("hdfs://node/cp", "/new/cp", "file:/new/cp"),
    ],
)
def test_a_note_names_the_place_where_the_checkpoint_lies(was: str, lies: str, named: str) -> None:
    assert _moved(note(was), Place.of(lies)) == note(named)


def test_the_notes_of_a_moved_checkpoint_are_written_anew_once(tmp_path: Path) -> None:
    notes, here = written(tmp_path / "cp", "file:/old/cp"), Place.of(tmp_path / "cp")
    with pytest.raises(StreamError, match="was written in another place"):
        refuse_moved(here, here)
    assert follow_move(here) == 2
    assert sorted(file.name for file in notes.iterdir()) == ["0", "7"]
    version, text = (notes / "7").read_text().splitlines()
    assert (version, json.loads(text)) == ("v2", note(f"file:{tmp_path}/cp"))
    assert follow_move(here) == 0
    refuse_moved(here, here)


def test_one_that_lies_where_it_was_written_is_left_alone(tmp_path: Path) -> None:
    notes = written(tmp_path / "cp", f"file:{tmp_path}/cp")
    before = {file.name: file.read_bytes() for file in notes.iterdir()}
    assert follow_move(Place.of(tmp_path / "cp")) == 0
    assert {file.name: file.read_bytes() for file in notes.iterdir()} == before
    assert follow_move(Place.of(tmp_path / "new")) == 0


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    written(tmp_path / "cp", "file:/old/cp")

    def said(*more: str) -> str:
        return CliRunner().invoke(app, ["move", str(tmp_path / "cp"), *more]).output.strip()

    assert said() == "2 notes of Spark's named another place: its query goes on here."
    assert said() == "it lies here."
    assert json.loads(said("--json")) == {"checkpoint": str(tmp_path / "cp"), "notes": 0}
