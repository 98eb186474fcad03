"""The embedded host with several buckets: real exchanges, real packets, one process.

It runs a plan as the Spark host does, epoch by epoch, so that all but Spark itself is tested here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from caesura.events import Item
from caesura.events.chunks import Chunks, SavedJson, json_chunk, under
from caesura.events.identity import Secret
from caesura.io.sinks.current import TableLayout
from caesura.io.sources.source import Source
from caesura.plan import Node, Raw, Speculate
from caesura.plan.cut import Stages, cut
from caesura.plan.prune import prune
from caesura.punctuation import Punctuation
from caesura.runtime.buckets.aligner import Aligner
from caesura.runtime.buckets.clock import clock_readings, listening, period
from caesura.runtime.buckets.fragment import Fragment
from caesura.runtime.buckets.labels import FEEDBACK
from caesura.runtime.buckets.stage0 import Mapper
from caesura.runtime.packets.packet import Packet, rows_bytes, rows_packets


class Cluster:
    """A plan in n buckets; `epoch` takes raw rows of some sources and gives what follows."""

    def __init__(
        self,
        outputs: Mapping[str, Node],
        buckets: int,
        *,
        speculate: Speculate = "arrival",
        stages: Stages | None = None,
        wakes: bool = False,
        secret: Secret | None = None,
        netted: Mapping[str, TableLayout] | None = None,
    ) -> None:
        self.secret = secret or Secret.drawn()
        """What the identities of rows begin with; all buckets share it."""
        self.stages = stages or cut(prune(outputs), buckets)
        self.buckets = buckets
        self.mappers = {
            s.fingerprint: Mapper(self.stages, _source(s), buckets, self.secret, repeats=buckets % 2 == 0)
            for s in self.stages.sources  # both ways to spread rows that may lie anywhere
        }
        self.fragments = [
            [
                Fragment(
                    self.stages, n, b, buckets, self.secret, speculate=speculate, wakes=wakes, netted=netted
                )
                for b in range(buckets)
            ]
            for n in range(1, len(self.stages.stages))
        ]
        self.items: dict[str, list[Item]] = {name: [] for name in outputs}
        self.late: dict[str, list[pa.RecordBatch]] = {}
        self._aligner = Aligner(buckets)
        self._chunks = 0
        self._epochs = 0
        self._next_reading = 0
        self.returning: list[Packet] = []
        """What went backwards in the last epoch, for the next one."""

    def epoch(
        self, raws: Iterable[tuple[Source, Raw]], *, closes: bool = False, clock: int | None = None
    ) -> None:
        """Takes raw rows as one micro-batch; ``closes`` says that no row follows in any source.

        ``clock`` is what the clock reads, in microseconds, for those sources whose policies ask for it.
        """
        packets = [packet.arrived() for packet in self.returning]
        if clock is not None:
            packets += clock_readings(listening(self.stages), self.buckets, clock)
        for source, raw in raws:
            self._chunks += 1
            made = self.mappers[source.fingerprint].map(raw, (self._chunks,))
            packets += [part for whole in made for part in whole.split()]
        if closes:
            packets += self._closing()
        for fragments in self.fragments:
            packets = self._stage(fragments, [Packet.from_row(p.to_row()) for p in packets])
        self.returning = [p for p in packets if p.back]
        self._collect([p for p in packets if not p.back])

    def say(self, message: Punctuation, output: str = "out") -> None:
        """Gives feedback as the consumer of an output; every bucket takes it in the next epoch."""
        stage = next(s for s in self.stages.stages if output in s.outputs)
        self.returning += [
            Packet(~stage.number, FEEDBACK + output, bucket, "consumer", 0, {}, (message,))
            for bucket in range(self.buckets)
        ]

    def drain(self) -> None:
        """Goes on until nothing goes backwards any more."""
        while self.returning:
            self.epoch([])

    def _closing(self) -> list[Packet]:
        packets: list[Packet] = []
        for mapper in self.mappers.values():
            self._chunks += 1
            empty = pa.RecordBatch.from_pylist([], mapper.source.reader.schema)
            packets += mapper.map(Raw(0, 0, empty), (self._chunks,), closes=True)
        return packets

    def _stage(self, fragments: list[Fragment], packets: list[Packet]) -> list[Packet]:
        number = fragments[0].stage.number
        out = [p for p in packets if p.stage != number]
        for fragment in fragments:
            mine = [p for p in packets if p.stage == number and p.bucket == fragment.bucket]
            if mine:
                out += fragment.step(mine)
        return out

    def _collect(self, packets: list[Packet]) -> None:
        epoch = self._aligner.epoch(self._epochs, packets)
        self._epochs += 1
        for name, items in epoch.items.items():
            self.items[name] += items
        for source, rows in epoch.late.items():
            self.late.setdefault(source, []).extend(rows)

    def snapshot(self) -> Chunks:
        """The chunks of state that changed since the last snapshot, of all buckets and of the host."""
        own = {"chunks": self._chunks, "epochs": self._epochs, "aligned": self._aligner.to_json()}
        chunks: Chunks = {"host": json_chunk(own), "loop": rows_bytes(self.returning)}
        for place, fragment in self._places():
            chunks.update({f"{place}{name}": data for name, data in fragment.snapshot().items()})
        return chunks

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes the state of a cluster of the same plan and size."""
        own = SavedJson("host").read(chunks)
        self._chunks, self._epochs = own["chunks"], own["epochs"]
        self._aligner.remember(own["aligned"])
        self.returning = rows_packets(chunks["loop"])
        for place, fragment in self._places():
            fragment.restore(under(place, chunks))

    def _places(self) -> Iterator[tuple[str, Fragment]]:
        for fragments in self.fragments:
            for fragment in fragments:
                yield f"{fragment.stage.number}:{fragment.bucket}/", fragment

    def run(self, *, every: int = 1) -> None:
        """Reads every source to its end, some batches per epoch."""
        readers = [(_source(s), s.read({})) for s in self.stages.sources]
        while readers:
            batch: list[tuple[Source, Raw]] = []
            for source, raws in list(readers):
                for _ in range(every):
                    raw = next(raws, None)
                    if raw is None:
                        readers.remove((source, raws))
                    if not isinstance(raw, Raw):
                        break
                    batch.append((source, raw))
            clock = self._reading()
            if readers and not batch and clock is None:
                time.sleep(min(source.reader.poll_seconds for source, _ in readers))
            else:
                self.epoch(batch, closes=not readers, clock=clock)
        self.drain()

    def _reading(self) -> int | None:
        """The clock, where a policy asks for it and it is due."""
        every, now = period(self.stages), time.time_ns() // 1000
        if every is None or now < self._next_reading:
            return None
        self._next_reading = now + every
        return now


def _source(node: Node) -> Source:
    assert isinstance(node, Source)
    return node
