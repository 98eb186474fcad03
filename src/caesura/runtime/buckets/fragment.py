"""A stage of a plan in one bucket: packets in, packets out, and state that can be saved.

`step` is a pure function of the state and the set of packets: the inbox is put in order first, and
nothing asks for the time, for chance or for Python's hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.events.identity import Secret
from caesura.events.rows import Chunks
from caesura.feedback.guard import Guard
from caesura.feedback.messages import STANDING, WHY, WITHDRAWN
from caesura.io.sources.source import Source
from caesura.ops.input import Input
from caesura.plan import Counters, Node
from caesura.plan.cut import EVERYWHERE, LOOP, Exchange, Stages
from caesura.plan.feedback import could_go
from caesura.plan.node import rebuilt
from caesura.punctuation import INFINITY, MIN_TIME, Alignment, Intent, Pattern, Punctuation, cti
from caesura.runtime.buckets.clock import reading
from caesura.runtime.buckets.gate import Chunk, Gate
from caesura.runtime.buckets.losses import Losses
from caesura.runtime.buckets.reports import told_by
from caesura.runtime.buckets.rounds import Rounds
from caesura.runtime.buckets.stage0 import late_packet, over_together, path, root_of, route, teller
from caesura.runtime.buckets.status import COUNTS
from caesura.runtime.feedback.consumer import suppressed_at
from caesura.runtime.feedback.losses import start_over
from caesura.runtime.graph.edge import merged
from caesura.runtime.packets.packet import Packet
from caesura.runtime.query.query import Query

OUT = "out:"
WAKE = "wake"
"""Another epoch, for work that waits."""
AGAIN = "again"
"""The note of a demand that stays in its stage: those before it have heard it."""
READERS = "readers"
LOST = "lost"
"""In the header of an answer to a withdrawal: how late the rows end that were left out."""
ASKED, NONE = "demands", b"[]"
SAY = "say:"
"""What the consumer of an output says."""
UP = "up:"
"""Messages that climb an exchange: they go back to the stage that it comes from."""


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
        self._wakes = wakes
        """Whether work that waits asks for another epoch; else it goes on in the next that there is."""
        self._again: list[tuple[str, int, Punctuation, int]] = []
        """Demands that were sent on to earlier stages, and for how many epochs answers may come."""
        self._asked = NONE
        self._readers = b""
        self.bucket, self.buckets, self.secret = bucket, buckets, secret
        self._grafted: dict[str, Node] = {}
        self.gates: dict[str, Gate] = {}
        self.alignments: dict[str, Alignment] = {}
        """What the origins of each arrival have promised."""
        self._aligned = b""
        self._paths: dict[str, list[tuple[Node, int]]] = {}
        self._reached: dict[str, int] = {}
        self.sources: dict[str, Source] = {}
        self._producers: dict[str, Node] = {}
        for arrival in self.stage.arrivals:
            self._open(arrival)
        self._tellers = {teller(stages, source).label for source in self.sources.values()}
        outputs = {d.label: self._graft(d.producer) for d in self.stage.departures}
        outputs.update({OUT + name: self._graft(node) for name, node in self.stage.outputs.items()})
        labels = [a.label for a in self.stage.arrivals]
        crossing = {label[len(LOOP) :]: outputs[label] for label in labels if label.startswith(LOOP)}
        self.query = Query(
            outputs,
            speculate=speculate,
            unused=labels,
            crossing=crossing,
            readers={d.label: 1 if d.keys == () else self.buckets for d in self.stage.departures},
            secret=secret,
        )
        self.rounds = Rounds(self.query, buckets, tuple(crossing))
        before = [a.label for a in self.stage.arrivals if a.source_stage > 0 and not a.back]
        self.losses = Losses(self.query, buckets, [label for label in before if label in self.query.inputs])
        self.doors = {
            d.label: [Guard(d.producer.schema, d.producer.properties) for _ in range(self.buckets)]
            for d in self.stage.departures
        }
        """What each bucket behind an exchange does not want, though others still may."""
        self._told: dict[str, list[list[Pattern]]] = {
            d.label: [[] for _ in range(self.buckets)] for d in self.stage.departures
        }
        self._doors = b""

    def _open(self, arrival: Exchange) -> None:
        if arrival.source_stage > 0:
            self.alignments[arrival.label] = Alignment(range(self.buckets))
            return
        source = root_of(arrival.producer, self.stages)
        assert isinstance(source, Source)
        self.sources[arrival.label], self._producers[arrival.label] = source, arrival.producer
        self.gates[arrival.label] = Gate(source, arrival.producer, self.secret, first=self.bucket == 0)
        self._paths[arrival.label] = path(arrival.producer, source)

    def _graft(self, node: Node) -> Node:
        """The stage's own steps, with an input fed by hand where an exchange arrives."""
        if node.fingerprint in self._grafted:
            return self._grafted[node.fingerprint]
        if not any(node.fingerprint == own.fingerprint for own in self.stage.nodes):
            arrival = next(a for a in self.stage.arrivals if a.entry.fingerprint == node.fingerprint)
            return self._input(arrival)
        inputs = tuple(self._graft_input(node, port) for port in range(len(node.inputs)))
        made = self._grafted[node.fingerprint] = rebuilt(node, inputs)
        return made

    def _graft_input(self, node: Node, port: int) -> Node:
        child = node.inputs[port]
        crossing = [a for a in self.stage.arrivals if node.closes and a.label == LOOP + node.closes]
        if crossing and port == 1:
            return self._input(crossing[0])
        if any(child.fingerprint == own.fingerprint for own in self.stage.nodes):
            return self._graft(child)
        label = self.stages.exchange_of.get((node.fingerprint, port))
        if label is None:
            return child  # a table that every bucket holds
        return self._input(next(a for a in self.stage.arrivals if a.label == label))

    def _input(self, arrival: Exchange) -> Node:
        node = arrival.entry
        return Input(
            label=arrival.label,
            payload=node.schema,
            time_type=node.time,
            known=node.properties,
            name=node.name,
            place=node.place,
        )

    def step(self, inbox: Iterable[Packet], *, closes: bool = False) -> Iterator[Packet]:
        """Takes the packets of an epoch and gives those that follow; ``closes`` says no epoch follows."""
        packets = sorted(inbox, key=lambda p: (p.label, p.origin, p.seq))
        self._note_unread(packets)
        for departure in self.stage.departures:
            self._hear(departure, [p for p in packets if p.label == UP + departure.label])
        for name in self.stage.outputs:
            self._say(name, [p for p in packets if p.label == SAY + name])
        clock = reading(packets)
        for label, gate in self.gates.items():
            mine = [p for p in packets if p.label == label]
            own = clock if self.sources[label].heartbeat is not None else None
            if mine or closes or own is not None:
                yield from self._through_gate(label, gate.enter(mine, clock=own, closes=closes))
        for label, alignment in self.alignments.items():
            mine = [p for p in packets if p.label == label]
            if label.startswith(LOOP):
                self.rounds.arrive(label[len(LOOP) :], mine)
            else:
                self._align(label, alignment, mine)
        due = self.losses.settle()
        self.query.run()
        self._demand_again()
        self.rounds.end()
        for departure in self.stage.departures:
            items = merged(self.query.take(departure.label))
            if departure.label.startswith(LOOP):
                items = self.rounds.leave(departure.label[len(LOOP) :], items)
            yield from self._send(departure, items)
            if departure.label in due:
                yield from self._answer(departure, due[departure.label])
        yield from told_by(self)
        for name in self.stage.outputs:
            items = merged(self.query.take(OUT + name))
            if items:
                packet = Packet(0, OUT + name, 0, str(self.bucket), 0, {}, tuple(items))
                yield from packet.split()
        for arrival in self.stage.arrivals:
            yield from self._speak(arrival)
        if self._wakes and self.query.runner.budgets.waits:
            yield Packet(~self.stage.number, WAKE, self.bucket, str(self.bucket), 0)

    def _hear(self, departure: Exchange, packets: list[Packet]) -> None:
        """What the buckets behind an exchange said. What all of them assume holds; a wish is a wish.

        What one of them assumes is kept from it alone, until the others have said so too.
        """
        for packet in packets:
            if packet.header.get(READERS) != self.stages.readers:
                continue  # it was said when others read what is sent there
            bucket = int(packet.origin)
            if departure.keys == () and bucket:
                continue  # no row goes there, whatever is assumed of it
            for message in packet.items:
                assert isinstance(message, Punctuation)
                if message.intent is Intent.ASSUMED:
                    self._shut(departure.label, bucket, message)
                    if message.noted(WITHDRAWN):
                        self.losses.withdrawn(departure.label)
                self._tell(departure.label, message, bucket)

    def _shut(self, label: str, bucket: int, message: Punctuation) -> None:
        door, told = self.doors[label][bucket], self._told[label][bucket]
        if message.noted(WITHDRAWN):
            if message.pattern in told:
                told.remove(message.pattern)
            door.replace([*told])
        elif message.noted(STANDING):
            told.append(message.pattern)
            door.mount(message.pattern, message.noted(WHY) or "")
        elif could_go(message.pattern, frozenset({("time",)})):
            door.mount(message.pattern, message.noted(WHY) or "")

    def _note_unread(self, packets: list[Packet]) -> None:
        """Before a withdrawal: what was not read on account of feedback is lost, up to the latest time."""
        said = (m for p in packets if p.label.startswith((UP, SAY)) for m in p.items)
        told = (m for m in said if isinstance(m, Punctuation) and m.intent is Intent.ASSUMED)
        if any(m.noted(WITHDRAWN) for m in told):
            self._note_lost(packets)

    def _note_lost(self, packets: list[Packet]) -> None:
        for label, gate in self.gates.items():
            responder = self.query.cell_of(label).responder if self.query.ignored(label) else None
            if responder is None:
                continue
            tops = [Chunk.from_json(p.header).top for p in packets if p.label == label]
            latest = max([gate.report()["latest"], *tops])
            lost = responder.suppression.lost
            responder.suppression.lost = max(lost, min(latest, INFINITY - 1) + 1)

    def _say(self, name: str, packets: list[Packet]) -> None:
        """What the consumer of an output said."""
        for packet in packets:
            for message in packet.items:
                assert isinstance(message, Punctuation)
                self._tell(OUT + name, message, 0)
                if message.noted(WITHDRAWN):
                    self.losses.withdrawn(None)

    def _tell(self, output: str, message: Punctuation, reader: int) -> None:
        self.query.send_feedback(output, message, reader)
        if message.intent is Intent.DEMANDED and self.stage.number > 1:
            self._again.append((output, reader, message, self.stage.number - 1))

    def _demand_again(self) -> None:
        """Demands once more what earlier stages have sent on demand: they heard it an epoch later each."""
        waiting, self._again = self._again, []
        for output, reader, message, epochs in waiting:
            if not message.noted(AGAIN):  # this epoch has heard it already
                self._again.append((output, reader, replace(message, note=((AGAIN, True),)), epochs))
                continue
            self.query.send_feedback(output, message, reader)
            if epochs > 1:
                self._again.append((output, reader, message, epochs - 1))

    def _speak(self, arrival: Exchange) -> Iterator[Packet]:
        """What the steps here said to those in front of an exchange, for all buckets there."""
        if arrival.source_stage == 0:
            return  # what the source has given is stopped here, at the gate
        messages = tuple(m for m in self.query.upstream_feedback(arrival.label) if not m.noted(AGAIN))
        if messages:
            for bucket in range(self.buckets):
                where = (~arrival.source_stage, UP + arrival.label, bucket, str(self.bucket))
                yield Packet(*where, 0, {READERS: self.stages.readers}, messages)

    def _through_gate(self, label: str, items: list[Item]) -> Iterator[Packet]:
        """Takes what enters by a gate, and tells of what may not."""
        for item in merged(items):
            fed = self._carried(label, item)
            if fed is not None:
                self.query.feed(label, fed)
        reached = over_together(self._paths[label], self.gates[label].given)
        if reached > self._reached.get(label, MIN_TIME):
            self._reached[label] = reached
            self.query.feed(label, cti(reached))
        late = self.gates[label].drain_late()
        copied = any(a.label == label and a.keys == EVERYWHERE for a in self.stage.arrivals)
        if late is not None and label in self._tellers and (self.bucket == 0 or not copied):
            source, producer = self.sources[label], self._producers[label]
            yield late_packet(late, source, producer, f"{self.stage.number}:{self.bucket}")

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

    def _align(self, label: str, alignment: Alignment, packets: list[Packet]) -> None:
        """Pages of all origins first, then what all origins together promise."""
        told: list[tuple[int, Punctuation]] = []
        for packet in packets:
            if LOST in packet.header:
                self.losses.answered(label, packet.origin, packet.header[LOST])
            for item in packet.items:
                if isinstance(item, Page):
                    self.query.feed(label, item)
                else:
                    told.append((int(packet.origin), item))
        for origin, item in told:
            if item.intent is Intent.DEFINITE:
                for pattern in alignment.add(origin, item.pattern):
                    self.query.feed(label, Punctuation(pattern, Intent.DEFINITE))

    def _send(self, exchange: Exchange, items: list[Item]) -> Iterator[Packet]:
        boxes: list[list[Item]] = [[] for _ in range(self.buckets)]
        doors = self.doors[exchange.label]
        for item in items:
            if not isinstance(item, Page):
                for box in boxes:
                    box.append(item)
                continue
            for bucket, rows in enumerate(route(item, exchange, self.buckets, self.secret)):
                if rows is not None and not doors[bucket].idle:
                    rows = doors[bucket].stop(rows)
                if rows is not None and len(rows):
                    boxes[bucket].append(rows)
        self._settle(exchange.label)
        for bucket, box in enumerate(boxes):
            if box:
                target = ~exchange.target_stage if exchange.back else exchange.target_stage
                where = (target, exchange.label, bucket, str(self.bucket))
                yield from Packet(*where, 0, {}, tuple(box)).split()

    def _answer(self, exchange: Exchange, until: int) -> Iterator[Packet]:
        """Tells the stage behind an exchange how late the rows end that were left out here."""
        for bucket, door in enumerate(self.doors[exchange.label]):
            where = (exchange.target_stage, exchange.label, bucket, str(self.bucket))
            yield Packet(*where, 0, {LOST: max(until, door.until)})

    def _settle(self, label: str) -> None:
        """Opens doors that punctuation has passed."""
        responder = self.query.cell(label).responder
        for door in self.doors[label]:
            if responder is not None and not door.idle:
                door.settle(responder.given)

    def ignored(self) -> dict[str, list[Pattern]]:
        """By way from a source, the rows that this bucket stops at its gate: they need not be read."""
        found = {label: self.query.ignored(label) for label in self.gates}
        return {label: patterns for label, patterns in found.items() if patterns}

    def wanted(self) -> dict[str, list[Pattern]]:
        """By way from a source, the rows that are wanted first in this bucket."""
        found = {label: self.query.wanted(label) for label in self.gates}
        return {label: patterns for label, patterns in found.items() if patterns}

    def suppressed(self) -> list[tuple[str, str]]:
        """By step, what is kept back after a withdrawal until punctuation closes it."""
        return [(cell.label, what) for cell in self.query.graph.cells for what in suppressed_at(cell)]

    def counters(self) -> dict[str, Counters]:
        """What each step of the stage has done and holds here."""
        return self.query.counters()

    def report(self) -> Packet:
        """How this bucket stands, for whoever watches the query."""
        steps = {}
        for cell in self.query.graph.cells:
            if isinstance(cell.node, Input):
                continue
            cell.feedback.measure()
            counted = cell.operator.measure()
            told = None if counted.punctuation_out is None else counted.punctuation_out.pattern.time_bound
            steps[cell.label] = {
                "stage": self.stage.number,
                "rows_in": counted.rows_in,
                "rows_out": counted.rows_out,
                "state_rows": counted.state_rows,
                "state_bytes": counted.state_bytes,
                "promised": MIN_TIME if told is None else told,
                "held_by": counted.held_by,
                "extra": dict(counted.extra),
                "feedback": dict(counted.feedback),
            }
        telling = [label for label in self.gates if label in self._tellers]
        sources = {self.sources[label].step: self.gates[label].report() for label in telling}
        origin = f"{self.stage.number}:{self.bucket}"
        return Packet(0, COUNTS, 0, origin, 0, {"steps": steps, "sources": sources})

    def reached(self) -> dict[str, int]:
        """How far the sources that enter here have come, by fingerprint."""
        return {self.sources[label].fingerprint: gate.bound for label, gate in self.gates.items()}

    def snapshot(self) -> Chunks:
        """The chunks of state that changed since the last snapshot."""
        chunks: Chunks = {f"query/{name}": data for name, data in self.query.snapshot().items()}
        for label, gate in self.gates.items():
            chunks.update({f"gate/{label}/{name}": data for name, data in gate.snapshot().items()})
        for label, doors in self.doors.items():
            for bucket, door in enumerate(doors):
                rows = door.snapshot() if not door.idle else {}
                chunks.update({f"door/{label}/{bucket}/{name}": data for name, data in rows.items()})
        shut = json.dumps({label: self._shut_json(label) for label in self.doors}).encode()
        used = self._doors or any(d.hits or d.active for some in self.doors.values() for d in some)
        if shut != self._doors and used:
            chunks["doors"] = self._doors = shut
        again = json.dumps([[o, r, m.to_json(), n] for o, r, m, n in self._again]).encode()
        if again != self._asked:
            chunks[ASKED] = self._asked = again
        if self._readers != self.stages.readers.encode():
            chunks[READERS] = self._readers = self.stages.readers.encode()
        aligned = json.dumps({label: a.to_json() for label, a in self.alignments.items()}).encode()
        if aligned != self._aligned:
            chunks["aligned"] = self._aligned = aligned
        return chunks | self.rounds.snapshot() | self.losses.snapshot()

    def release(self) -> None:
        """Lets go of what the steps hold; nothing can be done with the fragment any more."""
        for cell in self.query.graph.cells:
            del cell.operator

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes the state that these chunks hold."""
        self.query.restore(_under("query/", chunks))
        for label, gate in self.gates.items():
            gate.restore(_under(f"gate/{label}/", chunks) or self._sibling(label, chunks))
        self.rounds.restore(chunks)
        self.losses.restore(chunks)
        self._asked = chunks.get(ASKED, NONE)
        self._again = [(o, r, Punctuation.from_json(m), n) for o, r, m, n in json.loads(self._asked)]
        if "doors" in chunks:
            self._doors = chunks["doors"]
            for label, saved in json.loads(self._doors).items():
                self._open_doors(label, saved, chunks)
        self._aligned = chunks["aligned"]
        aligned = json.loads(self._aligned)
        self.alignments |= {n: Alignment.from_json(a) for n, a in aligned.items() if n in self.alignments}
        self._readers = chunks.get(READERS, b"")
        if self._readers != self.stages.readers.encode():
            self._start_over()

    def _start_over(self) -> None:
        """Forgets feedback that was heard when others read what leaves here."""
        self._note_lost([])
        start_over(self.query.graph.cells)
        for label, doors in self.doors.items():
            self._told[label] = [[] for _ in doors]
            for door in doors:
                door.replace([])
            self.losses.withdrawn(label)
        self.losses.withdrawn(None)

    def _shut_json(self, label: str) -> list[Any]:
        told = [[p.to_json() for p in some] for some in self._told[label]]
        return [[door.to_json(), some] for door, some in zip(self.doors[label], told, strict=True)]

    def _open_doors(self, label: str, saved: list[Any], chunks: Mapping[str, bytes]) -> None:
        for bucket, (door, told) in enumerate(saved if label in self.doors else ()):
            self.doors[label][bucket].restore(door, _under(f"door/{label}/{bucket}/", chunks))
            self._told[label][bucket] = [Pattern.from_json(p) for p in told]

    def _sibling(self, label: str, chunks: Mapping[str, bytes]) -> dict[str, bytes]:
        """How far another gate of the same source has come: a new one goes on from there."""
        source = self.sources[label]
        ways = [other for other, s in self.sources.items() if s is source and other != label]
        found = next((mine for other in ways if (mine := _under(f"gate/{other}/", chunks))), None)
        if found is None:
            raise StreamError(
                f"the checkpoint belongs to another plan: it has no state for '{source.describe()}'.",
                remedy="Read it as before, under the same name= and with the same options, or start with a "
                "new checkpoint.",
            ).at(source.step, source.place)
        return found


def _under(prefix: str, chunks: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name[len(prefix) :]: data for name, data in chunks.items() if name.startswith(prefix)}
