"""Files of text in other encodings than UTF-8: read by their name, or refused with what to write."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from depth import DEPTH

import caesura as cz
from caesura import DataError, PlanError

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252")
WORDS = ("Zoë", "naïve", "æther", "Öl", "plain", "ñ", "")


def drawn(random: Random) -> list[tuple[int, str]]:
    """Rows, of which at least one is no ASCII."""
    rows = [(n, random.choice(WORDS)) for n in range(random.randint(0, 8))]
    rows.insert(random.randint(0, len(rows)), (len(rows), random.choice(WORDS[:4])))
    return [(n, word) for n, (_, word) in enumerate(rows)]


def write(path: Path, rows: list[tuple[int, str]], encoding: str, name: str = "who") -> Path:
    text = f"ts,{name}\n" + "".join(f"{n},{word}\n" for n, word in rows)
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read(path: Path, **options: object) -> list[tuple[int, str]]:
    result = cz.read.csv(path, time="ts", **options).run()  # type: ignore[arg-type]
    table = result.table()
    column = next(name for name in table.column_names if name.startswith("wh"))
    assert table.schema.field(column).type == pa.string()
    return [
        (int(le), word or "")
        for le, word in zip(*(table[c].to_pylist() for c in ("LE", column)), strict=True)
    ]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_file_is_read_in_the_encoding_that_is_named(encoding: str, ending: str, tmp_path: Path) -> None:
    for number in range(4 * DEPTH):
        random = Random(f"{encoding}/{number}")
        rows = drawn(random)
        path = write(tmp_path / f"{number}{ending}", rows, encoding, random.choice(("who", "whö")))
        assert read(path, encoding=encoding) == rows


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("typed", [False, True])
def test_a_file_in_another_encoding_is_refused_where_none_is_named(
    encoding: str, typed: bool, tmp_path: Path
) -> None:
    schema = pa.schema([("ts", pa.int64()), ("who", pa.string())]) if typed else None
    for number in range(4 * DEPTH):
        rows = drawn(Random(f"{encoding}/{typed}/{number}"))
        path = write(tmp_path / f"{number}.csv", rows, encoding)
        if encoding.startswith("utf-8"):
            assert read(path, schema=schema) == rows
            continue
        with pytest.raises(DataError) as told:
            read(path, schema=schema)
        assert "encoding=" in told.value.remedy and "UTF-8" in told.value.remedy


def test_a_later_file_in_another_encoding_is_refused_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [(1, "Zoë")], "utf-8")
    write(tmp_path / "b.csv", [(2, "Zoë")], "latin-1")
    with pytest.raises(DataError) as told:
        read(tmp_path)
    assert "b.csv" in told.value.problem and 'encoding="latin-1"' in told.value.remedy


def test_a_column_that_is_said_to_be_binary_stays_binary(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [(1, "Zoë")], "latin-1")
    schema = pa.schema([("ts", pa.int64()), ("who", pa.binary())])
    rows = cz.read.csv(path, time="ts", schema=schema).run().table()
    assert rows["who"].to_pylist() == ["Zoë".encode("latin-1")]


def test_an_encoding_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [(1, "Zoë")], "latin-1")
    with pytest.raises(PlanError, match="there is no encoding 'latin-15x'"):
        cz.read.csv(path, time="ts", encoding="latin-15x")
    with pytest.raises(PlanError, match="goes by the lines of UTF-8"):
        cz.read.csv(path, time="ts", encoding="latin-1", on_bad="late")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@pytest.mark.parametrize("on_bad", ["stop", "late"])
def test_json_lines_and_lenient_reading_never_take_other_encodings(
    encoding: str, on_bad: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"ts": 1, "who": "Zoë"}\n'.encode(encoding))
    csv = write(tmp_path / "a.csv", [(1, "Zoë")], encoding)
    given: Any = {"on_bad": on_bad, "schema": pa.schema([("ts", pa.int64()), ("who", pa.string())])}
    for stream in (
        lambda: cz.read.json(path, time="ts", **given),
        lambda: cz.read.csv(csv, time="ts", **given),
    ):
        try:
            result = stream().run()
        except DataError as error:
            assert "UTF-8" in error.remedy
        else:
            assert on_bad == "late" and result.table().num_rows == 0
