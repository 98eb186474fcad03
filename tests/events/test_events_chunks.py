"""Chunks say what they are: what was written is read, and everything else is refused by name."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caesura.errors import StreamError
from caesura.events.chunks import ChunkFormat, SavedJson, json_chunk
from caesura.kernels.hashing import I64


@dataclass
class Held:
    seen: int
    sparse: bool
    note: str | None
    whole: I64
    real: np.ndarray[Any, Any]
    rows: I64 | None
    keys: pa.RecordBatch | None
    first: bytes
    others: list[bytes]


HELD = ChunkFormat("a test", Held)
KEYS = pa.record_batch({"k": pa.array(["a", None, "ü"]), "n": pa.array([1, 2, None], pa.int8())})


def held(**changed: Any) -> Held:
    given = {"seen": 3, "sparse": True, "note": None, "whole": np.arange(6).reshape(2, 3), "rows": None}
    given |= {"real": np.array([[0.5], [np.nan]]), "keys": KEYS, "first": b"\x80x", "others": [b"", b"1"]}
    return Held(**(given | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"rows": np.arange(4), "keys": None, "others": [], "note": "ä\x00"},
        {
            "whole": np.zeros((0, 3), np.int64),
            "keys": KEYS.slice(0, 0),
            "real": np.zeros((2, 0, 4), np.uint8),
        },
        {
            "whole": np.arange(12).reshape(3, 4)[:, ::2],
            "keys": KEYS.slice(1),
            "real": np.array([True, False]),
        },
    ],
)
def test_what_was_written_is_read(changed: dict[str, Any]) -> None:
    wanted = held(**changed)
    got = HELD.read(HELD.write(wanted))
    for name, value in vars(wanted).items():
        mine = getattr(got, name)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(mine, value)
            assert (mine.dtype, mine.flags.writeable) == (value.dtype, True)
        elif isinstance(value, pa.RecordBatch):
            assert mine.equals(value)
        else:
            assert mine == value


def test_any_arrow_reader_opens_a_chunk() -> None:
    table = pa.ipc.open_stream(HELD.write(held())).read_all()
    assert table.column("whole").to_pylist() == [[0, 1, 2, 3, 4, 5]]
    assert table.schema.metadata[b"caesura.format"] == b"1"


@dataclass
class Other:
    seen: int


@dataclass
class Counted:
    count: int
    name: str


OTHER = ChunkFormat("another", Other)
LATER = ChunkFormat("a test", Held, 3)
GOOD = HELD.write(held())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (pickle.dumps({"seen": 3}), "is of Caesura 0.1.0, which pickled it"),
        (b"", "cannot be read"),
        (b'{"seen": 3}', "cannot be read"),
        (GOOD[: len(GOOD) // 2], "cannot be read"),
        (HELD.write(held(seen="3")), "cannot be read"),
        (HELD.write(held(whole=np.zeros(2))), "cannot be read"),
        (ChunkFormat("a test", Other).write(Other(3)), "cannot be read"),
        (OTHER.write(Other(3)), "the saved state of a test is wanted, and this is that of another"),
        (LATER.write(held()), "has format 3; this version reads formats up to 1"),
    ],
)
def test_what_is_no_such_chunk_is_refused_by_name(data: bytes, said: str) -> None:
    with pytest.raises(StreamError, match=r"a test") as caught:
        HELD.read(data)
    assert said in caught.value.problem and caught.value.remedy


def test_the_reader_of_an_older_format_is_a_function_beside_it() -> None:
    older = {1: lambda parts: {"count": parts["seen"]}, 2: lambda parts: {**parts, "name": "unknown"}}
    format_ = ChunkFormat("another", Counted, 3, older)
    assert format_.read(OTHER.write(Other(7))) == Counted(7, "unknown")
    with pytest.raises(StreamError, match="has format 1, which this version reads no longer"):
        ChunkFormat("another", Counted, 3, {2: older[2]}).read(OTHER.write(Other(7)))


def test_json_is_written_when_it_changed_and_gone_when_there_is_none() -> None:
    note = SavedJson("note", number=2, older={1: lambda state: [state]})
    assert note.changed(None) == {}
    first = note.changed([1])
    assert list(first) == ["note"] and note.changed([1]) == {}
    assert note.changed(None) == {"note": None} and note.changed(None) == {}
    again = SavedJson("note", number=2)
    assert again.read({"note": first["note"] or b""}) == [1] and again.changed([1]) == {}
    assert note.read({"note": json_chunk(5)}) == [5] and note.read({}) is None


@pytest.mark.parametrize("data", [b"[1]", b"{", b'{"state": 1}', pickle.dumps([1]), json_chunk(1, 2)])
def test_json_that_is_no_such_chunk_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(StreamError, match="note"):
        SavedJson("note").read({"note": data})
