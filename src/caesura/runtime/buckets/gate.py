"""The gate of a source inside a bucket: lateness across chunks, matching of retracts, punctuation.

Stage 0 reads chunks of a lane in parallel, so it knows only what came before a row in its own chunk.
Each chunk says how far its rows reach (``top``), to every bucket; the gates put the chunks in order
and hold each against what came before it. So all buckets agree, and agree with one that reads alone.
"""

from __future__ import annotations

import zlib
from base64 import b85decode, b85encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events import Item, Page, concat
from caesura.events.identity import Secret
from caesura.io.ingress.arrival import stamped_page
from caesura.io.ingress.future_bound import FutureCheck
from caesura.io.ingress.ingress import Rules, SourceIngress
from caesura.io.ingress.lanes import Lane, behind
from caesura.io.ingress.matching import Origin
from caesura.io.sources.source import Source
from caesura.kernels.hashing import I64
from caesura.plan import Node
from caesura.punctuation import MIN_TIME
from caesura.punctuation.writers import GivenPromise, promise_from_json
from caesura.runtime.packets.packet import Packet

PAGE_ROWS = 1 << 17
"""Up to how many rows of a chunk are one page: steps do more for a large one at once."""
SYNC, PRIOR, PLACE = "_sync", "_prior", "_place"


@dataclass(frozen=True)
class Chunk:
    """Some rows of a lane that lie behind each other, as stage 0 read them."""

    lane: int
    order: tuple[Any, ...]
    """Chunks of a lane come in this order."""
    offset: int
    top: int
    rows: int
    """How many rows the chunk had before any was filtered out."""
    promises: tuple[GivenPromise, ...] = ()
    """Punctuation found behind the chunk."""
    closes: bool = False
    together: bool = False
    """Whether the chunks of a step have no order among them; none of their rows is late by another's."""
    times: str = ""
    """What its first rows, or all, say of time, packed: a bound on the future is held against them."""
    recent_times: tuple[int, ...] = ()
    """What its last rows say, if it has more than those."""

    def to_json(self) -> dict[str, Any]:
        own = {"lane": self.lane, "order": list(self.order), "offset": self.offset, "top": self.top}
        promises = [p.to_json() for p in self.promises]
        flags = {"closes": self.closes, "together": self.together}
        judged = {"times": self.times, "recent_times": list(self.recent_times)} if self.times else {}
        return {**own, "rows": self.rows, "promises": promises, **flags, **judged}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Chunk:
        promises = tuple(promise_from_json(p) for p in data["promises"])
        order = tuple(data["order"])
        flags = (
            data["closes"],
            data["together"],
            data.get("times", ""),
            tuple(data.get("recent_times", ())),
        )
        return Chunk(data["lane"], order, data["offset"], data["top"], data["rows"], promises, *flags)


class Gate(SourceIngress):
    """A source's ingress in one bucket; its rows come shaped, filtered and looked up."""

    def __init__(self, source: Source, producer: Node, secret: Secret, *, first: bool = True) -> None:
        self._first = first
        """Whether this bucket tells of what all of them see."""
        rules = Rules(
            producer.schema,
            source.time,
            source.shape,
            source.policy,
            source.late,
            source.reader.lanes,
            source.limit,
            source.declares == ("*",),
        )
        super().__init__(rules, secret)
        self._tops: dict[int, int] = {}
        """How far chunks reach that came together, until all of them are in."""

    def enter(self, packets: Iterable[Packet], *, clock: int | None, closes: bool) -> list[Item]:
        """What enters in an epoch: chunks in the order of their lane, then how far the source has come.

        The rows of an epoch were there when its clock was read, so they keep their lanes awake.
        """
        if clock is not None:
            self.clock = max(self.clock, clock)
            self.future.on_clock(self.clock)
        chunks: dict[tuple[Any, ...], tuple[Chunk, list[Page]]] = {}
        for packet in packets:
            chunk = Chunk.from_json(packet.header)
            _, pages = chunks.setdefault((chunk.lane, *chunk.order), (chunk, []))
            pages.extend(item for item in packet.items if isinstance(item, Page))
        items: list[Item] = []
        for place in sorted(chunks):
            chunk, pages = chunks[place]
            items += self.take(chunk, _joined(pages))
            closes = closes or chunk.closes
        items += self.settle(closes=closes)
        return items if clock is None else [*items, *self.on_clock(clock)]

    def take(self, chunk: Chunk, pages: Iterable[Page]) -> list[Item]:
        """What enters because a chunk came, with those of its rows that belong to this bucket."""
        return self._finished(self._taken(chunk, pages))

    def _taken(self, chunk: Chunk, pages: Iterable[Page]) -> Iterator[Item]:
        lane = self.lanes[chunk.lane]
        lane.seen, lane.idle = self.clock, False
        lane.next = max(lane.next, chunk.offset + chunk.rows)
        yield from self._in_order(lane, chunk, list(pages))
        top = self.stamp if self.rules.shape.stamped and chunk.rows else chunk.top
        if chunk.together:
            self._reach(chunk.lane, top)
        else:
            self.future.advance(lane, top)
        self.since += chunk.rows
        self.counters.rows_in += chunk.rows
        for promise in chunk.promises:
            yield from self._say(lane, promise, lane.next)

    def _reach(self, lane: int, top: int) -> None:
        """Notes how far a chunk reaches, until all that came with it are in."""
        self._tops[lane] = max(top, self._tops.get(lane, MIN_TIME))

    def _in_order(self, lane: Lane, chunk: Chunk, pages: list[Page]) -> Iterator[Item]:
        """The rows that are held against recent times of the lane, then the others."""
        if self.future.bound is not None and chunk.times:
            times = unpacked_times(chunk.times)
            judged = self.future.judge(lane, times, chunk.recent_times)
            for page in pages:
                if PLACE in page.schema.names:
                    yield from self._admit(lane, self._held(lane, page, times, judged, chunk.together))
            if chunk.together:
                self._reach(chunk.lane, int(judged.advance.max()))
            else:
                self.lanes.advance(lane, int(judged.advance.max()))
        for page in pages:
            if PLACE not in page.schema.names:
                yield from self._admit(lane, page)

    def _held(self, lane: Lane, page: Page, times: I64, judged: FutureCheck, together: bool) -> Page:
        """The rows of a page that are not too far ahead, with the latest time before them in their chunk."""
        at = page.schema.get_field_index(PLACE)
        places: I64 = page.payload.column(at).to_numpy()
        prior = np.full(len(times), MIN_TIME)
        if not together:
            np.maximum.accumulate(judged.advance[:-1], out=prior[1:])
        page = page.with_payload(page.payload.set_column(at, PRIOR, pa.array(prior[places])))
        mine = FutureCheck(judged.ahead[places], judged.advance[places], judged.references[places])
        if mine.ahead.any():
            bare, _, _ = _unhide(page, self.rules.schema)
            self.future.note(lane, bare, times[places], mine, np.full(len(page), -1, np.int64))
            page = page.filter(~mine.ahead)
        return page

    def _note(self, reason: str, lane: Lane, at: int) -> None:
        if self._first:
            super()._note(reason, lane, at)

    def settle(self, *, closes: bool) -> list[Item]:
        """How far the source has come, once all chunks of a step are in."""
        for number, top in self._tops.items():
            self.lanes.advance(self.lanes[number], top)
        self._tops = {}
        return self.close() if closes else self._finished(self._advance(now=True))

    def report(self) -> dict[str, int]:
        """Rows read of the source, rows refused in this bucket, the latest time and the time promised."""
        lanes = self.lanes.lanes.values()
        latest = max((lane.top for lane in lanes), default=MIN_TIME)
        return {
            "rows": self.counters.rows_in,
            "late": self.table.count,
            "late_dropped": self.table.dropped,
            "latest": latest,
            "promised": self.bound,
        }

    def _admit(self, lane: Lane, page: Page) -> Iterator[Item]:
        page, sync, prior = _unhide(page, self.rules.schema)
        if len(page) == 0:
            return
        if self.rules.shape.stamped:
            page, sync = stamped_page(page, self.stamp), None
        bounds = self._row_bounds(lane, prior, len(page))
        offsets = np.full(len(page), -1, np.int64)
        floor = max(lane.promised, self.bound)
        late = (page.sync if sync is None else sync) < np.maximum(bounds, floor)
        starts, rows = None, None
        if sync is not None:
            self.refusals.late(lane, page, np.flatnonzero(late), bounds, floor, offsets)
            page, bounds, offsets = page.filter(~late), bounds[~late], offsets[~late]
        elif late.any() or self.lanes.promises(lane):
            kept = self.refusals.on_time(lane, page, bounds, floor, offsets)
            if kept is None:
                return
            page, starts, rows = kept
        yield from self._entered(lane, page, starts, bounds if rows is None else bounds[rows])

    def _row_bounds(self, lane: Lane, prior: I64 | None, count: int) -> I64:
        """The bound of the lane at each row: from earlier chunks, and from the rows before it in its own."""
        carried = np.full(count, behind(lane.top, self.lanes.lag), np.int64)
        if prior is None or self.lanes.lag is None:
            return carried
        own = np.where(prior <= MIN_TIME + self.lanes.lag, MIN_TIME, prior - self.lanes.lag)
        return np.maximum(carried, own)

    def _entered(self, lane: Lane, page: Page, starts: I64 | None, bounds: I64) -> Iterator[Item]:
        if len(page) == 0:
            return
        if self.matcher is None:
            yield page if starts is None else Page(starts, page.re, page.payload, page.re_new)
            return
        least = np.minimum(np.maximum(bounds, lane.promised), self.lanes.others(lane))
        limits = np.maximum(least, self.bound)
        origin = Origin(lane.number, np.full(len(page), -1, np.int64))
        entered = self.matcher.match(page, page.le if starts is None else starts, lambda: limits, origin)
        if entered is not None:
            yield entered


def _joined(pages: Iterable[Page]) -> Iterator[Page]:
    """The pages of a chunk, those that were cut to fit into packets put together again."""
    some: list[Page] = []
    for page in pages:
        if some and (_kind(page) != _kind(some[0]) or sum(map(len, some)) + len(page) > PAGE_ROWS):
            yield concat(some, some[0].schema)
            some = []
        some.append(page)
    if some:
        yield concat(some, some[0].schema)


def _kind(page: Page) -> tuple[Any, ...]:
    return page.schema, page.settled, page.partial


def packed_times(times: I64) -> str:
    """Times as a short text: most are near those before them.

    >>> unpacked_times(packed_times(np.array([5, 9, 7]))).tolist()
    [5, 9, 7]
    """
    steps = np.diff(times, prepend=0).astype("<i8")
    return b85encode(zlib.compress(steps.tobytes(), 1)).decode() if len(times) else ""


def unpacked_times(text: str) -> I64:
    """The times that `packed_times` wrote."""
    steps = np.frombuffer(zlib.decompress(b85decode(text)), "<i8")
    return np.cumsum(steps, dtype=np.int64)


def hide(page: Page, sync: I64, prior: I64) -> Page:
    """A page with its rows' own sync time and the latest time before them as hidden columns."""
    payload = page.payload.append_column(SYNC, pa.array(sync)).append_column(PRIOR, pa.array(prior))
    return page.with_payload(payload)


def hidden(schema: pa.Schema) -> pa.Schema:
    """A schema with the hidden columns behind it."""
    return schema.append(pa.field(SYNC, pa.int64())).append(pa.field(PRIOR, pa.int64()))


def _unhide(page: Page, schema: pa.Schema) -> tuple[Page, I64 | None, I64 | None]:
    """A page without its hidden columns, and what they said."""
    names = page.schema.names
    sync = page.payload.column(SYNC).to_numpy() if SYNC in names else None
    prior = page.payload.column(PRIOR).to_numpy() if PRIOR in names else None
    if sync is None and prior is None:
        return page, None, None
    return page.with_payload(page.payload.select(schema.names)), sync, prior
