"""A ring of what a query took in, beside its checkpoint: the last minutes, within so many bytes.

    <checkpoint>/recorded/0000000007-3f2a….rows      rows of one source, or what was fed, of epoch 7

It is there for rows that cannot be read again. A file is put whole, says its format, and holds JSON and
Arrow, never a pickle; only its owner can read it. What is older, or too much, goes file by file.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError, StreamError
from caesura.events import Item, Page
from caesura.events.arrow_bytes import first_batch
from caesura.io.places import Place
from caesura.plan import Duration, Node, Raw, seconds
from caesura.punctuation.writers import promise_from_json
from caesura.runtime.packets.packet import MALFORMED, decode, encode
from caesura.runtime.query.recording import Recording

FOLDER, ENDING = "recorded", ".rows"
FORMAT = 1
MAX_BYTES = 64_000_000
"""So many bytes are kept at most."""
MAX_ROWS = 10_000
"""So many rows of each batch are kept, the last."""
Taken = tuple[str, Raw | Item]
"""A source, by its name or fingerprint, and rows of it; or an input and an item that it was fed."""


@dataclass(frozen=True)
class RecordedRows:
    """The ring of one query."""

    folder: Place
    keep: float
    """For how many seconds."""
    max_bytes: int = MAX_BYTES

    @staticmethod
    def at(checkpoint: Place, record: Duration) -> RecordedRows:
        """The ring beside a checkpoint."""
        return RecordedRows(checkpoint / FOLDER, seconds_of(record))

    def write(self, epoch: int, part: str, taken: Sequence[Taken]) -> None:
        """Keeps what was taken in; the same part of an epoch once more replaces it."""
        if not taken:
            return
        heads, bodies = zip(*(_encoded(label, some) for label, some in taken), strict=True)
        head = json.dumps({"format": FORMAT, "parts": heads}).encode()
        data = b"".join([len(head).to_bytes(4, "little"), head, *bodies])
        mark = hashlib.blake2b(part.encode(), digest_size=8).hexdigest()
        (self.folder / f"{epoch:010d}-{mark}{ENDING}").put(data, private=True)

    def sweep(self, now: float | None = None) -> None:
        """Removes what is too old, and of the rest the oldest that is too much."""
        oldest = ((time.time() if now is None else now) - self.keep) * 1e9
        left = self.max_bytes
        for entry in sorted(self._entries(), key=lambda entry: entry.name, reverse=True):
            left -= entry.size
            if left < 0 or entry.changed < oldest:
                (self.folder / entry.name).remove()

    def forget_behind(self, epoch: int) -> None:
        """Removes what epochs behind this one wrote that were cut off."""
        for entry in self._entries():
            if int(entry.name.partition("-")[0]) > epoch:
                (self.folder / entry.name).remove()

    def _entries(self) -> list[Any]:
        return [e for e in self.folder.entries() if e.is_file and e.name.endswith(ENDING)]

    def recording(self, node: Node) -> Recording:
        """What is kept, for a plan."""
        made = Recording(node, MAX_ROWS)
        made.raws = {source: [] for source in made.sources}
        sources = {label: source for source, label in made.sources.items()} | {s: s for s in made.raws}
        for file in sorted(self.folder.files(ENDING), key=lambda file: file.name):
            for label, some in _decoded(file):
                if isinstance(some, Raw) and label in sources:
                    made.raws[sources[label]].append(some)
                elif not isinstance(some, Raw):
                    made.fed.append((label, some))
        return made


class TakenIn:
    """What a query took in since its last epoch, within the bytes of a ring; the oldest goes first."""

    def __init__(self, max_bytes: int = MAX_BYTES // 4) -> None:
        self._taken: deque[tuple[int, Taken]] = deque()
        self._bytes, self._max = 0, max_bytes

    def add(self, label: str, some: Raw | Item) -> None:
        """Rows of a source, or an item that an input was fed."""
        kept = last_rows(some) if isinstance(some, Raw) else some
        size = kept.batch.nbytes if isinstance(kept, Raw) else kept.nbytes if isinstance(kept, Page) else 64
        self._taken.append((size, (label, kept)))
        self._bytes += size
        while self._bytes > self._max:
            self._bytes -= self._taken.popleft()[0]

    def take(self) -> list[Taken]:
        """What there is; from here on it is counted anew."""
        taken = [some for _, some in self._taken]
        self._taken.clear()
        self._bytes = 0
        return taken


def seconds_of(record: Duration) -> float:
    """How long rows are kept."""
    length = seconds(record, "time to keep rows for")
    if not length:
        raise PlanError(f"record={record!r} is no time to keep rows for.", remedy="Write a text like '10m'.")
    return length


def last_rows(raw: Raw) -> Raw:
    """The last rows of a batch."""
    over = raw.batch.num_rows - MAX_ROWS
    return raw if over <= 0 else raw.split(over)[1]


def _encoded(label: str, some: Raw | Item) -> tuple[dict[str, Any], bytes]:
    if not isinstance(some, Raw):
        body = encode({}, (some,))
        return {"input": label, "bytes": len(body)}, body
    some = last_rows(some)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, some.batch.schema) as writer:
        writer.write_batch(some.batch)
    body = sink.getvalue().to_pybytes()
    promises = [[at, promise.to_json()] for at, promise in some.punctuations]
    offsets = None if some.offsets is None else [int(at) for at in some.offsets]
    own = {"source": label, "lane": some.lane, "offset": some.offset, "end": int(some.end)}
    return own | {"offsets": offsets, "promises": promises, "bytes": len(body)}, body


def _decoded(file: Place) -> list[Taken]:
    """What a file holds; one that is not whole, or of a later format, is refused by name."""
    try:
        data = file.read_bytes()
        at = 4 + int.from_bytes(data[:4], "little")
        head = json.loads(data[4:at])
        if head["format"] != FORMAT:
            raise ValueError(f"its format is {head['format']}")
        found: list[Taken] = []
        for part in head["parts"]:
            body = data[at : at + part["bytes"]]
            at += part["bytes"]
            found.append(_part(part, body))
        return found
    except MALFORMED as error:
        raise StreamError(
            f"'{file}', which holds recorded rows, cannot be read: it is cut off, was changed, or is of a "
            "later version.",
            remedy="Take it away: the query does not need it.",
        ) from error


def _part(part: dict[str, Any], body: bytes) -> Taken:
    if "input" in part:
        (item,) = decode(body)[1]
        return part["input"], item
    batch = first_batch(body) if body else None
    if batch is None:
        raise ValueError("no rows")
    offsets = None if part["offsets"] is None else np.array(part["offsets"], np.int64)
    promises = tuple((int(at), promise_from_json(data)) for at, data in part["promises"])
    gap = int(part["end"]) - int(part["offset"]) - batch.num_rows
    return part["source"], Raw(
        int(part["lane"]), int(part["offset"]), batch, promises, gap=gap, offsets=offsets
    )
