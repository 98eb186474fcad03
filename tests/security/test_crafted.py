"""What was crafted, or changed by accident, is refused by an error of ours: nothing runs, crashes or hangs.

Each target draws its texts or bytes from a seed; `make soak` draws more of them (``CAESURA_DEPTH``).
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from depth import examples

import caesura as cz
from caesura import col
from caesura.errors import CaesuraError, StreamError
from caesura.events import Page, draw, parse
from caesura.events.arrow_bytes import first_batch
from caesura.expr.sql_text import from_text
from caesura.io.places import Place
from caesura.io.sinks.commits import read_commit
from caesura.punctuation import cti
from caesura.punctuation.parsing import parse_punctuation
from caesura.runtime.packets.packet import Packet, decode, encode, rows_bytes, rows_packets

HOSTILE = 'a\x1b[2J\x1b]0;x\x07<script>alert(1)</script>"`;\n]-->x{{}}|\u202e\r\x9b1m'
"""Escapes of terminals, HTML, the end of a Mermaid label, a line of its own, and text that runs backwards."""
SIGNS = [
    *("id", "time", "s", "x", "1", "-1", "1e999", "9" * 40, "inf", "∞", "null", "'", '"', "`", "\\", "\x00"),
    *(
        "<",
        "<=",
        "=",
        "!=",
        ">",
        "in",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "..",
        ",",
        "*",
        "#",
        "--",
        "/*",
        ";",
        "%",
    ),
    *("definite:", "assumed:", "is", "not", "AND", "OR", "NOT", "BETWEEN", "LIKE", "CAST", "AS", "INT", "::"),
    *("SELECT", "FROM", "WHERE", "CASE", "WHEN", "THEN", "END", "GROUP", "BY", "JOIN", "ON", "WITH", "OVER"),
    *(
        "RECURSIVE",
        "UNION",
        "INTERVAL",
        "DATE",
        "'2020-01-01'",
        "lambda",
        "->",
        "\x1b[2J",
        "\n",
        "ü",
        "$",
        "@",
    ),
]
DEEP = [
    "(" * 4000,
    "NOT " * 4000 + "x",
    "(" * 2000 + "1" + ")" * 2000,
    "1+" * 4000 + "1",
    "[" * 4000,
    "{" * 4000,
]


def texts(count: int, seed: str) -> Iterator[str]:
    drawn = random.Random(seed)
    for _ in range(examples(4 * count, short=count)):
        yield drawn.choice(("", " ")).join(drawn.choices(SIGNS, k=drawn.randrange(1, 14)))


def harmed(data: bytes, drawn: random.Random) -> bytes:
    """The same with some bytes changed, or its end gone."""
    some = bytearray(data)
    for _ in range(drawn.randrange(1, 4)):
        if drawn.random() < 0.3:
            some = some[: drawn.randrange(1, len(some) + 1)]
        else:
            at = drawn.randrange(len(some))
            some[at : at + drawn.choice((1, 4))] = drawn.randbytes(drawn.choice((1, 4)))
    return bytes(some)


def refused_or_read(read: Callable[[Any], object], given: Any) -> bool:
    """Whether it was read; anything but an error of ours ends the test."""
    try:
        read(given)
    except CaesuraError as error:
        assert error.remedy
        return False
    return True


@pytest.mark.parametrize("read", [parse_punctuation, from_text, parse])
def test_a_text_is_read_or_refused_by_name(read: Callable[[str], object]) -> None:
    read_some = [refused_or_read(read, text) for text in [*texts(400, read.__name__), *DEEP]]
    assert not all(read_some)


def test_a_query_in_sql_is_read_or_refused_by_name() -> None:
    rows = cz.from_rows([{"t": 1, "id": 2}], time="t", punctuate=cz.delay(1))
    for text in [*texts(60, "sql"), *DEEP[:4]]:
        refused_or_read(lambda query: cz.sql(query, s=rows), f"SELECT {text} FROM s")


def packet() -> Packet:
    columns = {"s": ["a", "bb", None, "ccc", "d"], "n": [1, 2, 3, 4, None], "same": [7] * 5}
    page = Page(np.arange(5), np.arange(5) + 3, pa.record_batch(columns))
    return Packet(1, "in", 0, "origin", 0, {"a": 1}, (page, cti(7)))


def looked_at(packets: list[Packet]) -> list[object]:
    items = [item for one in packets for item in one.items]
    return [item.rows() if isinstance(item, Page) else str(item) for item in items]


def test_packets_whose_bytes_were_changed_are_read_or_refused() -> None:
    drawn, sent = random.Random("packets"), packet()
    whole, inner = rows_bytes([sent]), encode(sent.header, sent.items)
    for _ in range(examples(4000, short=1000)):
        refused_or_read(lambda data: looked_at(rows_packets(data)), harmed(whole, drawn))
        refused_or_read(
            lambda data: looked_at([Packet(1, "in", 0, "o", 0, *decode(data))]), harmed(inner, drawn)
        )


def test_a_packet_that_says_it_has_more_rows_than_it_has_is_refused() -> None:
    sent = packet()
    data = encode(sent.header, sent.items)
    for rows in (b"6", b"9", b"-"):
        with pytest.raises(StreamError, match="a packet cannot be read"):
            decode(data.replace(b", 5, false", b", " + rows + b", false", 1))
    assert looked_at([Packet(1, "in", 0, "o", 0, *decode(data))]) == looked_at([sent])


def test_offsets_of_a_text_column_that_lead_outside_are_refused() -> None:
    sink, batch = pa.BufferOutputStream(), pa.record_batch({"s": ["a", "bb"]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    offsets, far = (np.array([0, 1, end], "<i4").tobytes() for end in (3, 1 << 30))
    whole = sink.getvalue().to_pybytes()
    assert first_batch(whole) == batch and whole.count(offsets) == 1
    with pytest.raises(ValueError, match="no whole batch"):
        first_batch(whole.replace(offsets, far))


def counts() -> cz.Stream:
    rows = [{"t": t - 4 * (t % 7 == 6), "id": t % 3} for t in range(24)]
    read = cz.from_rows(rows, time="t", punctuate=cz.delay(1), name="readings", batch_size=4)
    return read.group_by("id").tumbling(10).agg(n=cz.count())


@pytest.mark.slow
def test_a_checkpoint_or_a_sink_whose_files_were_changed_is_refused_or_goes_on(tmp_path: Path) -> None:
    query = counts().query(checkpoint=tmp_path / "cp", sink=tmp_path / "out", every="1h")
    for _ in range(3):
        query.step()
        query.save()
    query.close()
    drawn = random.Random("checkpoint")
    files = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file())
    for number in range(examples(100, short=40)):
        copy = tmp_path / "copies" / str(number)
        for part in ("cp", "out"):
            shutil.copytree(tmp_path / part, copy / part)
        file = copy / drawn.choice(files)
        file.write_bytes(harmed(file.read_bytes() or b"x", drawn))
        refused_or_read(go_on, copy)


def go_on(folder: Path) -> None:
    with counts().query(checkpoint=folder / "cp", sink=folder / "out", every="1h") as query:
        query.run()
        query.table()


@pytest.mark.parametrize("name", ["../../secret.parquet", "/etc/passwd", "a/../../b", ""])
def test_a_commit_that_names_a_file_outside_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "000000.json"
    file.write_text(f'{{"epoch": 0, "files": [{{"output": "out", "file": "{name}", "rows": 1}}]}}')
    with pytest.raises(StreamError, match="names what no sink writes"):
        read_commit(Place.of(file))


def shown(stream: cz.Stream) -> dict[str, str]:
    result = stream.run()
    texts = {"drawn": draw(result.items), "timeline": result.timeline(), "html": result._repr_html_()}
    wheres = ("plan", "spark", "mermaid", "html")
    counted = stream.where(col("id") == HOSTILE).group_by("id").tumbling(10).agg(n=cz.count())
    return texts | {f"explain {what}": counted.explain(what) for what in wheres}


def test_no_escape_of_a_terminal_and_no_html_in_data_or_names_comes_through() -> None:
    stream = cz.from_rows([{"t": 1, "id": HOSTILE}], time="t", punctuate=cz.delay(1), name=HOSTILE)
    for where, text in shown(stream).items():
        assert all(line.isprintable() for line in text.split("\n")), where
        if "html" in where or "mermaid" in where:
            assert "<script" not in text, where
    mermaid = stream.explain("mermaid").splitlines()
    assert len(mermaid) == 2 and mermaid[1].count('"') == 2


def test_no_escape_of_a_terminal_comes_through_an_error() -> None:
    stream = cz.from_rows([{"t": 1, "id": HOSTILE}], time="t", punctuate=cz.delay(1))
    with pytest.raises(CaesuraError) as caught:
        stream.where(col(HOSTILE) == 1)
    assert all(line.isprintable() for line in str(caught.value).split("\n"))
