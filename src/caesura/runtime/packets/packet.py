"""What one origin sends to one bucket in one epoch: pages, punctuation, and a header, as bytes.

>>> from caesura.punctuation import cti
>>> page = Page.of(pa.record_batch({"id": [7]}), le=[1], re=[2])
>>> sent = Packet(1, "in", 0, "a", 0, {"n": 1}, (page, cti(5)))
>>> back = Packet.from_row(sent.to_row())
>>> back.header, [str(i) for i in back.items if not isinstance(i, Page)], back.items[0].rows()
({'n': 1}, ['definite: time < 5'], [(1, 2, None, (7,))])
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import CaesuraError, StreamError
from caesura.events.arrow_bytes import first_batch, whole_table
from caesura.events.columns import empty_rows
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.punctuation import INFINITY, Punctuation
from caesura.runtime.packets.integer_encoding import decode_integers, encode_integers

MAX_BYTES = 1 << 19
MAX_ROWS = 1 << 26
"""More than the rows of any page that was split; one that says more would be made before it is looked at."""
Row = tuple[int, str, int, str, int, bytes]
"""(stage, label, bucket, origin, sequence, bytes)."""


@dataclass(frozen=True)
class Packet:
    """Items for one port of one bucket; stage 0 leaves the plan, stage ``~n`` is n in the next epoch."""

    stage: int
    label: str
    bucket: int
    origin: str
    seq: int
    header: dict[str, Any] = field(default_factory=dict)
    items: tuple[Item, ...] = ()

    @property
    def back(self) -> bool:
        """Whether the packet goes backwards, so that it arrives in the next epoch."""
        return self.stage < 0

    def arrived(self) -> Packet:
        """A packet that went backwards, at the start of the epoch that takes it."""
        return replace(self, stage=~self.stage)

    def to_row(self) -> Row:
        """The packet as a row of plain values."""
        return self.stage, self.label, self.bucket, self.origin, self.seq, encode(self.header, self.items)

    @staticmethod
    def from_row(row: Row) -> Packet:
        header, items = decode(row[5])
        return Packet(row[0], row[1], row[2], row[3], row[4], header, items)

    def split(self) -> Iterator[Packet]:
        """The packet in parts that each fit into one row; the header goes with each."""
        pieces: list[Item] = []
        size = 0
        seq = self.seq
        for item in (part for whole in self.items for part in _parts(whole)):
            weight = item.nbytes if isinstance(item, Page) else 200
            if pieces and size + weight > MAX_BYTES:
                yield replace(self, seq=seq, items=tuple(pieces))
                pieces, size, seq = [], 0, seq + 1
            pieces.append(item)
            size += weight
        yield replace(self, seq=seq, items=tuple(pieces))


ROWS = pa.schema(
    [
        ("stage", pa.int32()),
        ("label", pa.string()),
        ("bucket", pa.int32()),
        ("origin", pa.string()),
        ("seq", pa.int64()),
        ("data", pa.binary()),
    ]
)
"""Packets as rows of a table."""
KEYED_ROWS = pa.schema([("key", pa.int32()), *ROWS])
"""The same with the key of the partition that each goes to."""


def rows_bytes(packets: Iterable[Packet]) -> bytes:
    """Packets as one file: a table in Arrow's stream format."""
    rows = [packet.to_row() for packet in packets]
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(ROWS)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ROWS) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=ROWS))
    return bytes(sink.getvalue())


def rows_packets(data: bytes) -> list[Packet]:
    """What `rows_bytes` took."""
    try:
        table = whole_table(data)
    except ValueError as error:
        raise damaged_packet() from error
    if table.schema != ROWS:
        raise damaged_packet()
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [Packet.from_row(row) for row in rows]


def _parts(item: Item) -> Iterator[Item]:
    if not isinstance(item, Page) or item.nbytes <= MAX_BYTES:
        yield item
        return
    step = max(1, len(item) * MAX_BYTES // (item.nbytes + 1))
    for start in range(0, len(item), step):
        yield item.slice(start, min(step, len(item) - start))


def encode(header: dict[str, Any], items: tuple[Item, ...]) -> bytes:
    """A header and items as bytes: lengths, JSON, then each page in Arrow's stream format."""
    bodies: list[bytes] = []
    plan: list[Any] = []
    for item in items:
        if isinstance(item, Page):
            body, encoding = _page_bytes(item)
            bodies.append(body)
            plan.append([len(body), len(item), item.settled, item.partial, encoding])
        else:
            plan.append(item.to_json())
    head = json.dumps({"h": header, "i": plan}).encode()
    return b"".join([len(head).to_bytes(4, "little"), head, *bodies])


def decode(data: bytes) -> tuple[dict[str, Any], tuple[Item, ...]]:
    """What `encode` took; whatever else it is given is refused."""
    try:
        return _decode(data)
    except MALFORMED as error:
        raise damaged_packet() from error


MALFORMED = (
    *(ArithmeticError, AttributeError, CaesuraError, LookupError),
    *(RecursionError, StopIteration, TypeError, ValueError),
)
"""What reading a packet that was crafted may come upon."""


def damaged_packet() -> StreamError:
    """What is no packet, or no longer."""
    return StreamError(
        "a packet cannot be read: it is cut off or was changed.",
        remedy="Start again with the same checkpoint: the epoch runs again. If that fails too, put back the "
        "files of the loop log, or of the saved query, as they were.",
    )


def _decode(data: bytes) -> tuple[dict[str, Any], tuple[Item, ...]]:
    view = memoryview(data)
    at = 4 + int.from_bytes(view[:4], "little")
    head = json.loads(bytes(view[4:at]))
    items: list[Item] = []
    for part in head["i"]:
        if isinstance(part, list):
            size, rows, settled, partial, encoding = part
            items.append(_page_from(view[at : at + size], rows, encoding, settled=settled, partial=partial))
            at += size
        else:
            items.append(Punctuation.from_json(part))
    return head["h"], tuple(items)


def _page_bytes(page: Page) -> tuple[bytes, list[Any]]:
    """The columns that hold more than one number, and how all of them are encoded."""
    lasting = len(page) > 0 and int(page.re.max()) < INFINITY
    columns = [pa.array(page.le), pa.array(page.re - page.le if lasting else page.re)]
    if page.re_new is not None:
        columns.append(pa.array(page.re_new))
    made = [encode_integers(column) for column in (*columns, *page.payload.columns)]
    sent = [column for column, _ in made if column is not None]
    batch = pa.RecordBatch.from_arrays(sent, [""] * len(sent))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    encodings = [[encoding, column is not None] for column, encoding in made]
    return sink.getvalue().to_pybytes(), [page.schema.names, lasting, encodings]


def _page_from(data: memoryview, rows: int, encoding: list[Any], *, settled: bool, partial: bool) -> Page:
    batch = first_batch(pa.py_buffer(data))
    names, lasting, encodings = encoding
    if not 0 <= rows <= MAX_ROWS or (batch.num_columns and batch.num_rows != rows):
        raise ValueError(f"a page of {rows} rows has columns of {batch.num_rows}")
    sent_columns = iter(batch.columns)
    columns = [decode_integers(next(sent_columns) if sent else None, how, rows) for how, sent in encodings]
    own = len(columns) - len(names)
    if own not in (2, 3) or any(column.type != pa.int64() or column.null_count for column in columns[:own]):
        raise ValueError("a page has two or three columns of times")
    le, re, *new = (np.asarray(column.to_numpy()) for column in columns[:own])
    payload = pa.RecordBatch.from_arrays(columns[own:], names) if names else empty_rows(rows)
    return Page(le, re + le if lasting else re, payload, new[0] if new else None, settled, partial=partial)
