"""A stage of a plan in one bucket: packets in, packets out, and state that can be saved.

`step` is a pure function of the state and the set of packets: the inbox is put in order first, and
nothing asks for the time, for chance or for Python's hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from caesura.events import Item, Page
from caesura.events.chunks import Chunks, SavedJson
from caesura.events.identity import Secret
from caesura.feedback.messages import WITHDRAWN
from caesura.plan import Counters
from caesura.plan.cut import LOOP, Exchange, Stages
from caesura.punctuation import INFINITY, MIN_TIME, Alignment, Intent, Pattern, Punctuation
from caesura.runtime.buckets.exchange_filters import ExchangeFilters
from caesura.runtime.buckets.grafting import StagePlan
from caesura.runtime.buckets.labels import COUNTS, LOST, OUT, READERS, SAY, UP, WAKE
from caesura.runtime.buckets.losses import Losses
from caesura.runtime.buckets.repeated_demands import REPEATED, RepeatedDemands
from caesura.runtime.buckets.reports import rows_with_reasons
from caesura.runtime.buckets.rounds import Rounds
from caesura.runtime.buckets.source_arrivals import SourceArrivals, under
from caesura.runtime.buckets.stage0 import route
from caesura.runtime.feedback.consumer import suppressed_at
from caesura.runtime.feedback.losses import start_over
from caesura.runtime.graph.edge import merged
from caesura.runtime.packets.packet import Packet
from caesura.runtime.query.query import Query


class Fragment:
    """One bucket of one stage."""

    def __init__(
        self,
        stages: Stages,
        number: int,
        bucket: int,
        buckets: int,
        secret: Secret,
        *,
        speculate: Literal["arrival", "watermark"] = "arrival",
        wakes: bool = False,
    ) -> None:
        self.stages, self.stage = stages, stages.stages[number]
        self.bucket, self.buckets, self.secret = bucket, buckets, secret
        self._wakes = wakes
        """Whether work that waits asks for another epoch; else it goes on in the next that there is."""
        self.arrivals = SourceArrivals(stages, number, bucket, secret)
        between = [a for a in self.stage.arrivals if a.source_stage > 0]
        self.alignments = {a.label: Alignment(range(buckets)) for a in between}
        """What the origins of each arrival have promised."""
        plan = StagePlan(stages, self.stage)
        self.query = query = Query(
            plan.outputs,
            speculate=speculate,
            unused=[a.label for a in self.stage.arrivals],
            crossing=plan.crossing,
            readers={d.label: 1 if d.keys == () else buckets for d in self.stage.departures},
            secret=secret,
        )
        heads = {loop: query.loop_head(loop) for loop in plan.crossing}
        self.rounds = Rounds(heads, query.feed, query.work, buckets)
        asked = [a.label for a in between if not a.back and a.label in query.inputs]
        outputs = {name: query.cell(name) for name in plan.outputs}
        self.losses = Losses(query.graph.cells, {n: query.cell_of(n) for n in asked}, outputs, buckets)
        self.filters = ExchangeFilters(self.stage.departures, buckets)
        self._demands = RepeatedDemands(self.stage.number - 1)
        self._aligned, self._readers = SavedJson("aligned"), SavedJson(READERS)

    @property
    def origin(self) -> str:
        return f"{self.stage.number}:{self.bucket}"

    def step(self, inbox: Iterable[Packet], *, closes: bool = False) -> Iterator[Packet]:
        """Takes the packets of an epoch and gives those that follow; ``closes`` says no epoch follows."""
        packets = sorted(inbox, key=lambda p: (p.label, p.origin, p.seq))
        self._take_feedback(packets)
        yield from self.arrivals.enter(packets, self.query.feed, closes=closes)
        for label, alignment in self.alignments.items():
            mine = [p for p in packets if p.label == label]
            if label.startswith(LOOP):
                self.rounds.arrive(label[len(LOOP) :], mine)
            else:
                self._align(label, alignment, mine)
        due = self.losses.settle()
        self.query.run()
        self._demands.repeat(self.query.send_feedback)
        self.rounds.end()
        for departure in self.stage.departures:
            yield from self._depart(departure, due.get(departure.label))
        yield from rows_with_reasons(self)
        yield from self._results()
        for arrival in self.stage.arrivals:
            yield from self._upstream_feedback(arrival)
        if self._wakes and self.query.runner.budgets.waits:
            yield Packet(~self.stage.number, WAKE, self.bucket, str(self.bucket), 0)

    # Feedback.

    def _take_feedback(self, packets: Sequence[Packet]) -> None:
        """Takes what the buckets behind exchanges, then the consumers of outputs, have sent."""
        if any(_withdraws(p) for p in packets if p.label.startswith((UP, SAY))):
            self._note_unread(packets)
        for departure in self.stage.departures:
            for packet in packets:
                if packet.label == UP + departure.label:
                    self._take_from_bucket(departure, packet)
        for name in self.stage.outputs:
            for packet in packets:
                if packet.label == SAY + name:
                    self._take_from_consumer(OUT + name, packet)

    def _take_from_bucket(self, departure: Exchange, packet: Packet) -> None:
        """What all buckets behind an exchange assume holds; an order needs no agreement.

        What one of them assumes is kept from it alone, until the others have said so too.
        """
        if packet.header.get(READERS) != self.stages.readers:
            return  # it was said when others read what is sent there
        bucket = int(packet.origin)
        if departure.keys == () and bucket:
            return  # no row goes there, whatever is assumed of it
        for message in _messages(packet):
            if message.intent is Intent.ASSUMED:
                self.filters.take(departure.label, bucket, message)
                if message.noted(WITHDRAWN):
                    self.losses.withdrawn(departure.label)
            self._give(departure.label, message, bucket)

    def _take_from_consumer(self, output: str, packet: Packet) -> None:
        for message in _messages(packet):
            self._give(output, message, 0)
            if message.noted(WITHDRAWN):
                self.losses.withdrawn(None)

    def _give(self, output: str, message: Punctuation, reader: int) -> None:
        self.query.send_feedback(output, message, reader)
        self._demands.note(output, message, reader)

    def _note_unread(self, packets: Sequence[Packet]) -> None:
        """Before a withdrawal: what was not read on account of feedback is lost, up to the latest time."""
        for label in self.arrivals.gates:
            responder = self.query.cell_of(label).responder if self.query.ignored(label) else None
            if responder is not None:
                latest = min(self.arrivals.latest(label, packets), INFINITY - 1)
                responder.suppression.lost = max(responder.suppression.lost, latest + 1)

    def _upstream_feedback(self, arrival: Exchange) -> Iterator[Packet]:
        """The feedback of the steps here for those in front of an exchange, for all buckets there."""
        if arrival.source_stage == 0:
            return  # what the source has given is stopped here, at the gate
        sent = self.query.upstream_feedback(arrival.label)
        messages = tuple(m for m in sent if not m.noted(REPEATED))
        for bucket in range(self.buckets) if messages else ():
            where = (~arrival.source_stage, UP + arrival.label, bucket, str(self.bucket))
            yield Packet(*where, 0, {READERS: self.stages.readers}, messages)

    # Items.

    def _align(self, label: str, alignment: Alignment, packets: Sequence[Packet]) -> None:
        """Pages of all origins first, then what all origins together promise."""
        promised: list[tuple[int, Punctuation]] = []
        for packet in packets:
            if LOST in packet.header:
                self.losses.answered(label, packet.origin, packet.header[LOST])
            for item in packet.items:
                if isinstance(item, Page):
                    self.query.feed(label, item)
                elif item.intent is Intent.DEFINITE:
                    promised.append((int(packet.origin), item))
        for origin, item in promised:
            for pattern in alignment.add(origin, item.pattern):
                self.query.feed(label, Punctuation(pattern, Intent.DEFINITE))

    def _depart(self, departure: Exchange, lost: int | None) -> Iterator[Packet]:
        """What leaves by an exchange; and, after a withdrawal, how late the rows end that were left out."""
        label = departure.label
        items = merged(self.query.take(label))
        if label.startswith(LOOP):
            items = self.rounds.leave(label[len(LOOP) :], items)
        target = ~departure.target_stage if departure.back else departure.target_stage
        for bucket, box in enumerate(self._routed(departure, items)):
            if box:
                yield from Packet(target, label, bucket, str(self.bucket), 0, {}, tuple(box)).split()
        for bucket in range(self.buckets) if lost is not None else ():
            assert lost is not None
            until = max(lost, self.filters.lost_until(label, bucket))
            yield Packet(departure.target_stage, label, bucket, str(self.bucket), 0, {LOST: until})

    def _routed(self, departure: Exchange, items: list[Item]) -> list[list[Item]]:
        """The items by bucket: rows by their keys, as far as they are wanted there, punctuation to all."""
        boxes: list[list[Item]] = [[] for _ in range(self.buckets)]
        for item in items:
            if not isinstance(item, Page):
                for box in boxes:
                    box.append(item)
                continue
            for bucket, rows in enumerate(route(item, departure, self.buckets, self.secret)):
                admitted = None if rows is None else self.filters.admitted(departure.label, bucket, rows)
                if admitted is not None and len(admitted):
                    boxes[bucket].append(admitted)
        responder = self.query.cell(departure.label).responder
        if responder is not None:
            self.filters.settle(departure.label, responder.given)
        return boxes

    def _results(self) -> Iterator[Packet]:
        """What leaves the plan."""
        for name in self.stage.outputs:
            items = merged(self.query.take(OUT + name))
            if items:
                yield from Packet(0, OUT + name, 0, str(self.bucket), 0, {}, tuple(items)).split()

    # Status.

    def ignored(self) -> dict[str, list[Pattern]]:
        """By path from a source, the rows that this bucket stops at its gate: they need not be read."""
        found = {label: self.query.ignored(label) for label in self.arrivals.gates}
        return {label: patterns for label, patterns in found.items() if patterns}

    def wanted(self) -> dict[str, list[Pattern]]:
        """By path from a source, the rows that are wanted first in this bucket."""
        found = {label: self.query.wanted(label) for label in self.arrivals.gates}
        return {label: patterns for label, patterns in found.items() if patterns}

    def suppressed(self) -> list[tuple[str, str]]:
        """By step, what is kept back after a withdrawal until punctuation closes it."""
        return [(cell.label, what) for cell in self.query.graph.cells for what in suppressed_at(cell)]

    def counters(self) -> dict[str, Counters]:
        """What each step of the stage has done and holds here."""
        return self.query.counters()

    def reached(self) -> dict[str, int]:
        """How far the sources that enter here have come, by fingerprint."""
        return self.arrivals.reached()

    def report(self) -> Packet:
        """How this bucket stands, for whoever watches the query."""
        steps = {}
        for cell in self.query.graph.cells:
            if cell.node.fed:
                continue
            cell.feedback.measure()
            counted = cell.operator.measure()
            last = counted.punctuation_out
            bound = None if last is None else last.pattern.time_bound
            steps[cell.label] = {
                "stage": self.stage.number,
                "rows_in": counted.rows_in,
                "rows_out": counted.rows_out,
                "state_rows": counted.state_rows,
                "state_bytes": counted.state_bytes,
                "promised": MIN_TIME if bound is None else bound,
                "held_by": counted.held_by,
                "extra": dict(counted.extra),
                "feedback": dict(counted.feedback),
            }
        return Packet(0, COUNTS, 0, self.origin, 0, {"steps": steps, "sources": self.arrivals.reports()})

    # State.

    def snapshot(self) -> Chunks:
        """The chunks of state that changed since the last snapshot."""
        chunks: Chunks = {f"query/{name}": data for name, data in self.query.snapshot().items()}
        chunks |= self.arrivals.snapshot() | self.filters.snapshot() | self._demands.snapshot()
        chunks |= self._readers.changed(self.stages.readers)
        chunks |= self._aligned.changed({label: a.to_json() for label, a in self.alignments.items()})
        return chunks | self.rounds.snapshot() | self.losses.snapshot()

    def release(self) -> None:
        """Lets go of what the steps hold; nothing can be done with the fragment any more."""
        for cell in self.query.graph.cells:
            del cell.operator

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes the state that these chunks hold."""
        self.query.restore(under("query/", chunks))
        for part in (self.arrivals, self.rounds, self.losses, self._demands, self.filters):
            part.restore(chunks)
        aligned = self._aligned.read(chunks)
        self.alignments |= {n: Alignment.from_json(a) for n, a in aligned.items() if n in self.alignments}
        if self._readers.read(chunks) != self.stages.readers:
            self._start_over()

    def _start_over(self) -> None:
        """Forgets feedback that was given when others read what leaves here."""
        self._note_unread([])
        start_over(self.query.graph.cells)
        self.filters.start_over()
        for departure in self.stage.departures:
            self.losses.withdrawn(departure.label)
        self.losses.withdrawn(None)


def _messages(packet: Packet) -> Iterator[Punctuation]:
    for item in packet.items:
        assert isinstance(item, Punctuation)
        yield item


def _withdraws(packet: Packet) -> bool:
    return any(m.intent is Intent.ASSUMED and m.noted(WITHDRAWN) for m in _messages(packet))
