"""The sources that enter a stage in one bucket, each by its gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.events.chunks import Chunks, under
from caesura.events.identity import Secret
from caesura.io.sources.source import Source
from caesura.plan import Node
from caesura.plan.cut import EVERYWHERE, Stages
from caesura.punctuation import MIN_TIME, Pattern, Punctuation, cti
from caesura.runtime.buckets.clock import only_stamps, reading
from caesura.runtime.buckets.gate import Chunk, Gate
from caesura.runtime.buckets.stage0 import late_packet, over_together, path, reporting_exchange, root_of
from caesura.runtime.graph.edge import merged
from caesura.runtime.packets.packet import Packet

Feed = Callable[[str, Item], None]


class SourceArrivals:
    """The gates of a stage in one bucket."""

    def __init__(self, stages: Stages, number: int, bucket: int, secret: Secret) -> None:
        self.bucket, self.origin = bucket, f"{number}:{bucket}"
        self.arrivals = {a.label: a for a in stages.stages[number].arrivals if a.source_stage == 0}
        self.gates: dict[str, Gate] = {}
        self.sources: dict[str, Source] = {}
        self._paths: dict[str, list[tuple[Node, int]]] = {}
        self._reached: dict[str, int] = {}
        for label, arrival in self.arrivals.items():
            source = root_of(arrival.producer, stages)
            assert isinstance(source, Source)
            self.sources[label] = source
            self.gates[label] = Gate(source, arrival.producer, secret, first=bucket == 0)
            self._paths[label] = path(arrival.producer, source)
        self._reporting = {reporting_exchange(stages, source).label for source in self.sources.values()}
        """Of several paths from a source, the one that reports of it."""

    def enter(self, packets: Sequence[Packet], feed: Feed, *, closes: bool) -> Iterator[Packet]:
        """Feeds what enters in an epoch; gives the rows that may not, for the late table."""
        clock, stamps = reading(packets), only_stamps(packets)
        for label, gate in self.gates.items():
            mine = [p for p in packets if p.label == label]
            source = self.sources[label]
            own = clock if source.stamped or (source.heartbeat is not None and not stamps) else None
            if mine or closes or own is not None:
                self._feed(label, gate.enter(mine, clock=own, closes=closes), feed)
                yield from self._late(label)

    def _feed(self, label: str, items: list[Item], feed: Feed) -> None:
        for item in merged(items):
            carried = self._carried(label, item)
            if carried is not None:
                feed(label, carried)
        reached = over_together(self._paths[label], self.gates[label].given)
        if reached > self._reached.get(label, MIN_TIME):
            self._reached[label] = reached
            feed(label, cti(reached))

    def _late(self, label: str) -> Iterator[Packet]:
        late, arrival = self.gates[label].drain_late(), self.arrivals[label]
        copied = arrival.keys == EVERYWHERE
        if late is not None and label in self._reporting and (self.bucket == 0 or not copied):
            yield late_packet(late, self.sources[label], arrival.producer, self.origin)

    def _carried(self, label: str, item: Item) -> Item | None:
        """Punctuation of a source as it is behind the steps that stage 0 ran."""
        if isinstance(item, Page):
            return item
        pattern: Pattern | None = item.pattern
        for node, port in self._paths[label]:
            if pattern is None:
                return None
            pattern = node.carry(port, pattern)
        return None if pattern is None else Punctuation(pattern, item.intent)

    def latest(self, label: str, packets: Sequence[Packet]) -> int:
        """The latest time of a source that its gate has seen, or these packets bring."""
        tops = [Chunk.from_json(p.header).top for p in packets if p.label == label]
        return max([self.gates[label].report()["latest"], *tops])

    def reports(self) -> dict[str, dict[str, int]]:
        """How each source stands that this stage reports of, by its step."""
        return {self.sources[n].step: gate.report() for n, gate in self.gates.items() if n in self._reporting}

    def reached(self) -> dict[str, int]:
        """How far the sources have come, by fingerprint."""
        return {self.sources[label].fingerprint: gate.bound for label, gate in self.gates.items()}

    def snapshot(self) -> Chunks:
        chunks: Chunks = {}
        for label, gate in self.gates.items():
            chunks |= {f"gate/{label}/{name}": data for name, data in gate.snapshot().items()}
        return chunks

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        for label, gate in self.gates.items():
            gate.restore(under(f"gate/{label}/", chunks) or self._sibling(label, chunks))

    def _sibling(self, label: str, chunks: Mapping[str, bytes]) -> dict[str, bytes]:
        """How far another gate of the same source has come: a new one goes on from there."""
        source = self.sources[label]
        others = [other for other, s in self.sources.items() if s is source and other != label]
        found = next((mine for other in others if (mine := under(f"gate/{other}/", chunks))), None)
        if found is None:
            raise StreamError(
                f"the checkpoint belongs to another plan: it has no state for '{source.describe()}'.",
                remedy="Read it as before, under the same name= and with the same options, or start with a "
                "new checkpoint.",
            ).at(source.step, source.place)
        return found
