"""Stage 0: reads raw rows, runs the row-wise steps in front of the first exchange, routes to buckets.

It keeps nothing between calls: what a row's lateness depends on beyond its own chunk is settled at
the gates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events import Page
from caesura.events.columns import empty_rows
from caesura.events.identity import Secret, identity
from caesura.io.ingress import future_bound
from caesura.io.ingress.in_data import find_marks
from caesura.io.ingress.late import LateTable, beside
from caesura.io.ingress.shape import REASONS, Shaped
from caesura.io.sources.source import Source
from caesura.kernels.hashing import I64
from caesura.ops.input import Input
from caesura.plan import Node, Raw
from caesura.plan.cut import EVENTS, EVERYWHERE, Exchange, Stages
from caesura.plan.loops import image
from caesura.punctuation import MIN_TIME, Promises
from caesura.runtime.buckets.gate import PLACE, PRIOR, SYNC, Chunk, hidden, hide, packed_times
from caesura.runtime.buckets.labels import LATE
from caesura.runtime.packets.packet import Packet
from caesura.runtime.query.query import Query


class Mapper:
    """Stage 0 of a plan, for one source."""

    def __init__(
        self, stages: Stages, source: Source, buckets: int, secret: Secret, *, repeats: bool = False
    ) -> None:
        self.source, self.secret = source, secret
        self.buckets = buckets
        self._by_place = repeats and source.shape.insert_only
        """Whether rows that may lie anywhere are cut into equal parts: where no retract has to find its
        insert, and chunks that are read once more are the same (``repeats``)."""
        self.departures = [d for d in stages.stages[0].departures if root_of(d.producer, stages) is source]
        self._grafted: dict[str, Node] = {}
        self._lag = source.policy.lags(source.time)[0]
        self._together = source.reader.unordered
        self._clocked = source.policy.clocked(source.time)
        ordered = self._clocked or not self._together
        self._future = source.policy.ahead(source.time) if ordered else None
        judged = source.shape.insert_only and source.late == "reject" and self._lag is not None
        self._local = judged and not self._together
        outputs = {d.label: self._graft(d.producer, stages) for d in self.departures}
        self._query = Query(outputs, secret=secret)
        self._query.run()
        self._flawed = LateTable(source.schema, source.time)

    def _graft(self, node: Node, stages: Stages) -> Node:
        """The steps above the source, fed by hand, with the hidden columns carried along."""
        if node.fingerprint in self._grafted:
            return self._grafted[node.fingerprint]
        if node is self.source:
            made: Node = Input(
                label="raw", payload=hidden(node.schema), time_type=node.time, known=node.properties
            )
        elif not _streams(node, stages):
            made = node
        else:
            inputs = tuple(self._graft(child, stages) for child in node.inputs)
            made = node.widened(inputs, (SYNC, PRIOR))
        self._grafted[node.fingerprint] = made
        return made

    def map(self, raw: Raw, order: tuple[Any, ...], *, closes: bool = False) -> Iterator[Packet]:
        """The packets that a chunk of raw rows makes: rows for some buckets, tidings for all."""
        marks = find_marks(raw, self.source.policy.column, self.source.schema, self.source.scheme)
        for reason, position in marks.unreadable:
            self._flawed.note(reason, lane=raw.lane, offset=raw.offset_of(position))
        for at, reason in raw.refused:
            self._flawed.note(reason, lane=raw.lane, offset=at, kind="unread")
        shaped = self.source.shape.cut(marks.batch, self.source.schema)
        begin = 0
        cuts = [*marks.patterns, (len(shaped.le), None)]
        for number, (position, pattern) in enumerate(cuts):
            part = shaped.part(begin, position)
            promises = () if pattern is None else (pattern,)
            last = closes and number == len(cuts) - 1
            place = (*order, number)
            yield from self._chunk(raw, part, marks.offsets[begin:position], place, promises, last)
            begin = position
        if self.source.late == "error":
            self._flawed.refuse()
        flawed = self._flawed.drain()
        if flawed is not None:
            yield late_packet(flawed, self.source, self.source, f"{raw.lane}:{order}")
        for step, refused in self._query.notes().items():
            shown = [n for n in refused.schema.names if n not in (SYNC, PRIOR)]
            yield note_packet(refused.select(shown), step, f"{raw.lane}:{order}")

    def _chunk(
        self,
        raw: Raw,
        shaped: Shaped,
        offsets: I64,
        order: tuple[Any, ...],
        promises: tuple[Any, ...],
        closes: bool,
    ) -> Iterator[Packet]:
        page, times = self._sound_rows(raw.lane, shaped, offsets)
        head = self._head(times)
        top = int(times[head:].max(initial=MIN_TIME))
        count = len(shaped.le)
        if raw.skipped and count == raw.batch.num_rows:  # behind it are rows that were not read
            top, count = max(top, MIN_TIME if raw.top is None else raw.top), count + raw.skipped
        last = tuple(times[-future_bound.ROWS :].tolist()) if 0 < head < len(times) else ()
        judged = (packed_times(times[:head]), last)
        chunk = Chunk(raw.lane, order, raw.offset, top, count, promises, closes, self._together, *judged)
        spread: list[list[list[Page]]] = [[[] for _ in range(self.buckets)] for _ in self.departures]
        on_time = self._local and _in_order(page.sync[head:], times[head:])
        for number, part in enumerate(_hidden_parts(page, times, head, on_time=on_time)):
            self._step(part, spread, first=number == 0 and head > 0, on_time=on_time)
        for departure, buckets in zip(self.departures, spread, strict=True):
            for bucket, pages in enumerate(buckets):
                where = (departure.target_stage, departure.label, bucket)
                yield Packet(*where, self.source.fingerprint, 0, chunk.to_json(), tuple(pages))

    def _step(self, page: Page, spread: list[list[list[Page]]], *, first: bool, on_time: bool) -> None:
        """Lets a page through the steps in front of the first exchange, and to its buckets."""
        self._query.feed("raw", page)
        self._query.run()
        for departure, buckets in zip(self.departures, spread, strict=True):
            came = [item for item in self._query.take(departure.label) if isinstance(item, Page)]
            if self._local and not first:
                came = [part for some in came for part in self._parted(some, on_time=on_time)]
            for some in came:
                for bucket, rows in enumerate(self._routed(some, departure)):
                    if rows is not None and len(rows):
                        buckets[bucket].append(_placed(rows) if first else self._bared(rows))

    def _routed(self, page: Page, departure: Exchange) -> Sequence[Page | None]:
        """A page's rows by bucket; hashing and gathering whole rows takes as long as reading them."""
        if departure.keys is not None or not self._by_place:
            return route(page, departure, self.buckets, self.secret)
        cuts = [len(page) * bucket // self.buckets for bucket in range(self.buckets + 1)]
        return [page.slice(start, end - start) for start, end in pairwise(cuts)]

    def _head(self, times: I64) -> int:
        """How many rows a gate must hold against what came before: the first ones, or all if they jump.

        Against a clock, which stage 0 does not know, it holds all.
        """
        if self._future is None or len(times) == 0:
            return 0
        if self._clocked:
            return len(times)
        calm = self._future.calm(int(times.min()), int(times.max()))
        return min(future_bound.ROWS, len(times)) if calm else len(times)

    def _sound_rows(self, lane: int, shaped: Shaped, offsets: I64) -> tuple[Page, I64]:
        """The rows that make events, and how far each says that time has come."""
        page = shaped.page
        if shaped.flaw is None or not shaped.flaw.any():
            return page, shaped.advance
        bad = np.flatnonzero(shaped.flaw)
        reasons = pa.array(REASONS).take(pa.array(shaped.flaw[bad]))
        self._flawed.add(page.take(bad), reasons, lane=lane, offsets=offsets[bad])
        rows = np.flatnonzero(shaped.flaw == 0)
        return page.take(rows), shaped.advance[rows]

    def _parted(self, page: Page, *, on_time: bool) -> Iterator[Page]:
        """The rows that their own chunk leaves on time, then those that are late wherever it comes.

        Only the latter tell the gate what came before them; the gate says how late they are.
        """
        assert self._lag is not None
        bare = page.with_payload(page.payload.drop_columns([PRIOR]))
        if on_time:
            yield bare
            return
        sync, prior = (page.payload.column(name).to_numpy() for name in (SYNC, PRIOR))
        late = sync < np.where(prior <= MIN_TIME + self._lag, MIN_TIME, prior - self._lag)
        if not late.any():
            yield bare
            return
        yield bare.filter(~late)
        yield page.filter(late)

    def _bared(self, page: Page) -> Page:
        """Leaves the hidden columns at home when they say nothing."""
        payload = page.payload
        drop = []
        if (payload.column(SYNC).to_numpy() == page.sync).all():
            drop.append(SYNC)
        if PRIOR in payload.schema.names and (self._lag is None or self._together):
            drop.append(PRIOR)
        kept = [n for n in payload.schema.names if n not in drop]
        return page.with_payload(payload.select(kept) if kept else empty_rows(len(page)))


def _in_order(sync: I64, times: I64) -> bool:
    """Whether no row lies behind what one before it says of time."""
    return bool((times[1:] >= times[:-1]).all() and (sync[1:] >= times[:-1]).all())


def _hidden_parts(page: Page, times: I64, head: int, *, on_time: bool) -> Iterator[Page]:
    """The first rows with their places, then the others with the latest time before them among themselves.

    Where all are on time nobody asks for it.
    """
    if head:
        yield hide(page.slice(0, head), page.sync[:head], np.arange(head))
    if head < len(page):
        sync = page.sync[head:]
        yield hide(page.slice(head, len(page) - head), sync, sync if on_time else _before(times[head:]))


def _before(times: I64) -> I64:
    """By row, the latest time before it."""
    prior = np.full(len(times), MIN_TIME, np.int64)
    np.maximum.accumulate(times[:-1], out=prior[1:])
    return prior


def _placed(page: Page) -> Page:
    """A page of first rows, its places under their own name."""
    names = [PLACE if name == PRIOR else name for name in page.schema.names]
    return page.with_payload(page.payload.rename_columns(names))


def late_packet(late: pa.Table, source: Source, producer: Node, origin: str, what: str = "") -> Packet:
    """Refused rows on their way to the late table, under the names that the source gives its columns.

    A column that the steps between source and producer have not kept is null.
    """
    own = len(late.schema) - len(producer.schema)
    columns, fields = list(late.columns[:own]), list(late.schema)[:own]
    named = dict(zip(source.schema.names, beside(source.schema, tuple(f.name for f in fields)), strict=True))
    kept = dict(zip(producer.schema.names, late.columns[own:], strict=True))
    for name, field in named.items():
        now = traced(name, producer, source)
        columns.append(kept[now] if now in kept else pa.nulls(len(late), field.type))
        fields.append(field)
    return note_packet(pa.table(columns, schema=pa.schema(fields)), source.step + what, origin)


def note_packet(rows: pa.Table, step: str, origin: str) -> Packet:
    """Rows with reasons on their way to the late table, under the name of the step that they are from."""
    batch = rows.combine_chunks().to_batches()[0]
    nothing = np.zeros(len(batch), np.int64)
    return Packet(0, LATE, 0, origin, 0, {"source": step}, (Page(nothing, nothing, batch),))


def exchanges_from(stages: Stages, source: Node) -> list[Exchange]:
    """The exchanges by which the rows of a source leave stage 0."""
    first = [e for stage in stages.stages for e in stage.arrivals if e.source_stage == 0]
    return [e for e in first if root_of(e.producer, stages) is source]


def reporting_exchange(stages: Stages, source: Node) -> Exchange:
    """Of several exchanges from one source, the one that reports what was late: that of the shortest path."""
    return min(exchanges_from(stages, source), key=lambda e: len(path(e.producer, source)))


def path(producer: Node, source: Node) -> list[tuple[Node, int]]:
    """The steps from a source to a producer, each with the port that the stream enters by."""
    steps: list[tuple[Node, int]] = []
    node = producer
    while node is not source:
        port = next(i for i, child in enumerate(node.inputs) if _leads(child, source))
        steps.append((node, port))
        node = node.inputs[port]
    return steps[::-1]


def over_together(steps: list[tuple[Node, int]], given: Promises) -> int:
    """Up to where all that these steps let pass is over, where that takes several promises together."""
    if not any("few" in node.limited(port).values() for node, port in steps):
        return MIN_TIME
    known = given
    for node, port in steps:
        carried = [node.carry(port, pattern) for pattern in known.patterns()]
        reached = node.together(port, known)
        known = Promises([pattern for pattern in carried if pattern is not None])
        known.advance(reached)
    return known.cti


def _leads(node: Node, source: Node) -> bool:
    return node is source or any(_leads(child, source) for child in node.inputs)


def traced(name: str, producer: Node, source: Node) -> str | None:
    """What a source's column is called behind the steps up to a producer; None where it is gone."""
    now: str | None = name
    for node, port in path(producer, source):
        now = None if now is None else image(node, port, now)
    return now


def _streams(node: Node, stages: Stages) -> bool:
    """Whether a step has a streaming source behind it."""
    return any(source is node for source in stages.sources) or any(_streams(c, stages) for c in node.inputs)


def root_of(node: Node, stages: Stages) -> Node | None:
    """The streaming source behind a step of stage 0."""
    if any(source is node for source in stages.sources):
        return node
    found = (root_of(child, stages) for child in node.inputs)
    return next((root for root in found if root is not None), None)


def routing_columns(page: Page, exchange: Exchange) -> list[pa.Array]:
    """The columns by which rows lie; a retract has those of its insert."""
    keys = exchange.keys
    if keys is not None and keys != EVENTS:
        return [page.payload.column(name) for name in keys]
    own = [page.payload.column(n) for n in page.schema.names if n not in (SYNC, PRIOR)]
    return [*own, pa.array(page.le)] if keys == EVENTS else own


def route(page: Page, exchange: Exchange, buckets: int, secret: Secret) -> list[Page | None]:
    """A page's rows by bucket."""
    if buckets == 1:
        return [page]
    if exchange.keys == ():
        return [page, *([None] * (buckets - 1))]
    if exchange.keys == EVERYWHERE:
        return [page] * buckets
    h1, _ = identity(routing_columns(page, exchange), len(page), secret.routing)
    bucket = (h1 >> np.uint64(32)) % np.uint64(buckets)
    out: list[Page | None] = []
    for number in range(buckets):
        rows = np.flatnonzero(bucket == number)
        out.append(page if len(rows) == len(page) else page.take(rows) if len(rows) else None)
    return out
