"""Feedback of one stage in one bucket: taken from the buckets behind it, sent to those in front of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from caesura.events.chunks import Chunks
from caesura.feedback.messages import WITHDRAWN
from caesura.plan.cut import Exchange, Stages
from caesura.punctuation import INFINITY, Intent, Pattern, Punctuation
from caesura.runtime.buckets.exchange_filters import ExchangeFilters
from caesura.runtime.buckets.labels import FEEDBACK, OUT, READERS, UP
from caesura.runtime.buckets.losses import Losses
from caesura.runtime.buckets.repeated_demands import REPEATED, RepeatedDemands
from caesura.runtime.buckets.source_arrivals import SourceArrivals
from caesura.runtime.feedback.losses import start_over
from caesura.runtime.packets.packet import Packet
from caesura.runtime.query.query import Query


class StageFeedback:
    """What the readers of a stage assume, and what the stage asks of those in front of it."""

    def __init__(
        self, stages: Stages, number: int, bucket: int, buckets: int, query: Query, arrivals: SourceArrivals
    ) -> None:
        self._stages, self._stage = stages, stages.stages[number]
        self._bucket, self._buckets = bucket, buckets
        self._query, self._arrivals = query, arrivals
        between = [a.label for a in self._stage.arrivals if a.source_stage > 0 and not a.back]
        asked = {label: query.cell_of(label) for label in between if label in query.inputs}
        self.losses = Losses(query.graph.cells, asked, query.parts.ends, buckets)
        self.filters = ExchangeFilters(self._stage.departures, buckets)
        self._demands = RepeatedDemands(number - 1)

    def take(self, packets: Sequence[Packet]) -> None:
        """Takes what the buckets behind exchanges, then the consumers of outputs, have sent."""
        if any(_withdraws(p) for p in packets if p.label.startswith((UP, FEEDBACK))):
            self._note_unread(packets)
        for departure in self._stage.departures:
            for packet in packets:
                if packet.label == UP + departure.label:
                    self._take_from_bucket(departure, packet)
        for name in self._stage.outputs:
            for packet in packets:
                if packet.label == FEEDBACK + name:
                    self._take_from_consumer(OUT + name, packet)

    def _take_from_bucket(self, departure: Exchange, packet: Packet) -> None:
        """What all buckets behind an exchange assume holds; an order needs no agreement.

        What one of them assumes is filtered for it alone, until the others assume it too.
        """
        if packet.header.get(READERS) != self._stages.readers:
            return  # it was sent when others read what leaves here
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
        self._query.ports.send(output, message, reader)
        self._demands.note(output, message, reader)

    def repeat_demands(self) -> None:
        """Demands once more what earlier stages have sent on demand."""
        self._demands.repeat(self._query.ports.send)

    def _note_unread(self, packets: Sequence[Packet]) -> None:
        """Before a withdrawal: what was not read on account of feedback is lost, up to the latest time."""
        for label in self._arrivals.gates:
            responder = self._query.cell_of(label).responder if self._query.ports.ignored(label) else None
            if responder is not None:
                latest = min(self._arrivals.latest(label, packets), INFINITY - 1)
                responder.suppression.lost = max(responder.suppression.lost, latest + 1)

    def upstream(self) -> Iterator[Packet]:
        """The feedback of the steps here for those in front of each exchange, for all buckets there."""
        for arrival in self._stage.arrivals:
            if arrival.source_stage == 0:
                continue  # what the source has given is stopped here, at the gate
            sent = self._query.upstream_feedback(arrival.label)
            messages = tuple(m for m in sent if not m.noted(REPEATED))
            for bucket in range(self._buckets) if messages else ():
                where = (~arrival.source_stage, UP + arrival.label, bucket, str(self._bucket))
                yield Packet(*where, 0, {READERS: self._stages.readers}, messages)

    def ignored(self) -> dict[str, list[Pattern]]:
        """By path from a source, the rows that this bucket stops at its gate: they need not be read."""
        found = {label: self._query.ports.ignored(label) for label in self._arrivals.gates}
        return {label: patterns for label, patterns in found.items() if patterns}

    def wanted(self) -> dict[str, list[Pattern]]:
        """By path from a source, the rows that are wanted first in this bucket."""
        found = {label: self._query.ports.wanted(label) for label in self._arrivals.gates}
        return {label: patterns for label, patterns in found.items() if patterns}

    def start_over(self) -> None:
        """Forgets feedback that was given when others read what leaves here."""
        self._note_unread([])
        start_over(self._query.graph.cells)
        self.filters.start_over()
        for departure in self._stage.departures:
            self.losses.withdrawn(departure.label)
        self.losses.withdrawn(None)

    def snapshot(self) -> Chunks:
        return self.filters.snapshot() | self._demands.snapshot() | self.losses.snapshot()

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        for part in (self.losses, self._demands, self.filters):
            part.restore(chunks)


def _messages(packet: Packet) -> Iterator[Punctuation]:
    for item in packet.items:
        assert isinstance(item, Punctuation)
        yield item


def _withdraws(packet: Packet) -> bool:
    return any(m.intent is Intent.ASSUMED and m.noted(WITHDRAWN) for m in _messages(packet))
