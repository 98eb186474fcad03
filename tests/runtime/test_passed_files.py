"""A folder whose files change behind a saved query: each row counts once, or it is said that it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caesura as cz
from caesura.errors import CaesuraError, StreamError

NAMES = "abcdefgh"
FORMATS = ("parquet", "json", "quarantine")


def put(folder: Path, form: str, name: str, rows: list[dict[str, int]]) -> None:
    if form == "json":
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / f"{name}.parquet")


SCHEMA = pa.schema([("t", pa.int64()), ("id", pa.int64())])


def made(folder: Path, form: str) -> cz.Stream:
    more = {"on_bad": "quarantine"} if form == "quarantine" else {}
    read = cz.read.json if form == "json" else cz.read.parquet
    return read(folder, schema=SCHEMA, time="t", punctuate=cz.delay(5), name="readings", batch_size=2, **more)


def read_on(folder: Path, form: str, steps: int | None = None) -> list[int]:
    """Lets the folder's query go on, made anew; what its sink holds then, by `id`."""
    beside = folder.parent
    query = made(folder, form).query(checkpoint=beside / "checkpoint", sink=beside / "sink", output="changes")
    if steps is None:
        query.run()
    else:
        for _ in range(steps):
            query.step()
        query.save()
    held = sorted(query.table()["id"].to_pylist())
    query.close()
    return held


FOLDERS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3), min_size=1, max_size=4)


@pytest.mark.slow
@given(FOLDERS, FOLDERS, st.sets(st.sampled_from(NAMES)), st.integers(0, 4), st.sampled_from(FORMATS))
def test_files_that_come_and_go_are_read_once_or_refused(tmp_path_factory, first, later, gone, steps, form):
    folder = tmp_path_factory.mktemp("drawn") / "read"
    folder.mkdir()
    ids = {name: [10 * ord(name) + n for n in range(count)] for name, count in (later | first).items()}
    for name in first:
        put(folder, form, name, [{"t": 1, "id": i} for i in ids[name]])
    before = read_on(folder, form, steps)
    gone &= {*first}
    for name in gone:
        next(folder.glob(f"{name}.*")).unlink()
    new = {*later} - {*first}
    for name in new:
        put(folder, form, name, [{"t": 1, "id": i} for i in ids[name]])
    there = [i for name in ({*first} - gone) | new for i in ids[name]]
    try:
        after = read_on(folder, form)
    except CaesuraError:
        assert gone or (new and min(new) < max(first))
    else:
        assert after == sorted({*before, *there})


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_sorts_between_those_that_were_read_is_told(tmp_path, form):
    folder = tmp_path / "read"
    folder.mkdir()
    put(folder, form, "b", [{"t": 1, "id": 1}])
    put(folder, form, "d", [{"t": 2, "id": 2}])
    assert read_on(folder, form) == [1, 2]
    put(folder, form, "e", [{"t": 3, "id": 3}])
    assert read_on(folder, form) == [1, 2, 3]
    put(folder, form, "c", [{"t": 4, "id": 4}])
    with pytest.raises(StreamError, match="files were put before those that were read"):
        read_on(folder, form)
