"""Puts the buckets' outputs of an epoch together: pages first, then what all buckets promise.

A bucket's punctuation speaks for its own rows; the output as a whole promises what every bucket has.

>>> from caesura.punctuation import cti
>>> aligner = Aligner(buckets=2)
>>> some = [Packet(0, "out:out", 0, "0", 0, {}, (cti(20),)), Packet(0, "out:out", 0, "1", 0, {}, (cti(10),))]
>>> [str(item) for item in aligner.epoch(0, some).items["out"]]
['definite: time < 10']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caesura.events import Item, Page
from caesura.io.sinks.current import NetChange, layout_of, net_change
from caesura.io.sinks.rows import rows_table
from caesura.plan import Node
from caesura.punctuation import Alignment, Intent, Punctuation
from caesura.runtime.buckets.labels import COUNTS, LATE, OUT, UNREAD
from caesura.runtime.graph.rejected import late_tables
from caesura.runtime.packets.packet import Packet


@dataclass
class Epoch:
    """What came out of one epoch."""

    number: int
    items: dict[str, list[Item]]
    late: dict[str, list[pa.RecordBatch]]
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    """How each bucket stands, by stage and bucket."""
    unread: list[dict[str, Any]] = field(default_factory=list)
    """What sources did not read."""
    outputs: Mapping[str, Node] = field(default_factory=dict)
    """The last steps of the plan, by output."""

    def table(self, output: str = "out") -> pa.Table:
        """The rows of an output as they came: kind, LE, RE, RE_new and the payload."""
        node = self.outputs[output]
        return rows_table(self.items.get(output, []), node.schema, node.time)

    def change(self, output: str = "out") -> NetChange:
        """The net change of an output whose plan names a key, see `Stream.upserts`."""
        return net_change(self.items.get(output, []), layout_of(self.outputs[output]))

    def upserts(self, output: str = "out") -> pa.Table:
        """The rows that take the place of those of their keys, a row a key."""
        return self.change(output).put

    def deletes(self, output: str = "out") -> pa.Table:
        """The keys whose rows go."""
        return self.change(output).delete

    def late_tables(self) -> dict[str, pa.Table]:
        """The late rows by source, or by the step that refused them."""
        return {name: t for source, some in self.late.items() for name, t in late_tables(source, some)}


@dataclass
class Aligner:
    """Remembers what each bucket has promised on each output."""

    buckets: int
    alignments: dict[str, Alignment] = field(default_factory=dict)

    def epoch(self, number: int, packets: Iterable[Packet]) -> Epoch:
        """The items by output and the late rows by source of the packets of an epoch."""
        items: dict[str, list[Item]] = {}
        late: dict[str, list[pa.RecordBatch]] = {}
        reports: dict[str, dict[str, Any]] = {}
        unread: list[dict[str, Any]] = []
        promised: list[tuple[str, int, Punctuation]] = []
        for packet in sorted(packets, key=lambda p: (p.label, p.origin, p.seq)):
            if packet.label == LATE:
                rows = [i.payload for i in packet.items if isinstance(i, Page)]
                late.setdefault(packet.header["source"], []).extend(rows)
                continue
            if packet.label == COUNTS:
                reports[packet.origin] = packet.header
                continue
            if packet.label == UNREAD:
                unread.append(packet.header)
                continue
            name = packet.label.removeprefix(OUT)
            for item in packet.items:
                if isinstance(item, Page):
                    items.setdefault(name, []).append(item)
                else:
                    promised.append((name, int(packet.origin), item))
        for name, origin, item in promised:
            if item.intent is Intent.DEFINITE:
                items.setdefault(name, []).extend(self._held(name, origin, item))
        return Epoch(number, items, late, reports, unread)

    def to_json(self) -> dict[str, Any]:
        """What the buckets have promised, as JSON."""
        return {name: alignment.to_json() for name, alignment in self.alignments.items()}

    def remember(self, data: Mapping[str, Any]) -> None:
        """Takes back what `to_json` gave."""
        self.alignments = {name: Alignment.from_json(a) for name, a in data.items()}

    def _held(self, name: str, origin: int, item: Punctuation) -> list[Punctuation]:
        alignment = self.alignments.setdefault(name, Alignment(range(self.buckets)))
        return [Punctuation(p, Intent.DEFINITE) for p in alignment.add(origin, item.pattern)]
