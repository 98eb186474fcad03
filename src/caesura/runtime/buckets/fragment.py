"""A stage of a plan in one bucket: packets in, packets out, and state that can be saved.

`step` is a pure function of the state and the set of packets: the inbox is put in order first, and
nothing asks for the time, for chance or for Python's hash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from caesura.events import Item, Page
from caesura.events.chunks import Chunks, SavedJson, under
from caesura.events.identity import Secret
from caesura.events.interleaved import by_time
from caesura.io.sinks.current import TableLayout, net_items
from caesura.plan import Counters, Speculate
from caesura.plan.cut import LOOP, Exchange, Stages
from caesura.punctuation import Alignment, Intent, Punctuation
from caesura.runtime.buckets.epoch_figures import EpochFigures
from caesura.runtime.buckets.grafting import StagePlan
from caesura.runtime.buckets.labels import COUNTS, LOST, OBSERVED, OUT, READERS, WAKE
from caesura.runtime.buckets.owner import SavedOwner
from caesura.runtime.buckets.reports import rows_with_reasons
from caesura.runtime.buckets.rounds import Rounds
from caesura.runtime.buckets.source_arrivals import SourceArrivals
from caesura.runtime.buckets.stage0 import route
from caesura.runtime.buckets.stage_feedback import StageFeedback
from caesura.runtime.feedback.consumer import suppressed_at
from caesura.runtime.graph.edge import merged
from caesura.runtime.metrics.status import step_report
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
        speculate: Speculate = "arrival",
        wakes: bool = False,
        netted: Mapping[str, TableLayout] | None = None,
        state_memory: int | None = None,
        owner: str = "",
    ) -> None:
        self.stages, self.stage = stages, stages.stages[number]
        self.bucket, self.buckets, self.secret = bucket, buckets, secret
        self._wakes = wakes
        """Whether work that waits asks for another epoch; else it goes on in the next that there is."""
        self._netted = netted or {}
        """By label, outputs that tables hold, of which the net change of an epoch leaves alone."""
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
            state_memory=state_memory,
        )
        heads = {loop: query.parts.loop_head(loop) for loop in plan.crossing}
        self.rounds = Rounds(heads, query.feed, query.runner.work, buckets)
        self.feedback = StageFeedback(stages, number, bucket, buckets, query, self.arrivals)
        self._aligned, self._readers = SavedJson("aligned"), SavedJson(READERS)
        self.owner = SavedOwner(stages, number, bucket, buckets, owner)
        self.figures = EpochFigures(stages, self.stage, bucket, query, self.arrivals)

    @property
    def origin(self) -> str:
        return f"{self.stage.number}:{self.bucket}"

    def step(self, inbox: Iterable[Packet], *, closes: bool = False) -> Iterator[Packet]:
        """Takes the packets of an epoch and gives those that follow; ``closes`` says no epoch follows."""
        packets = sorted(inbox, key=lambda p: (p.label, p.origin, p.seq))
        self.feedback.take(packets)
        yield from self.arrivals.enter(packets, self.query.feed, closes=closes)
        for label, alignment in self.alignments.items():
            mine = [p for p in packets if p.label == label]
            if label.startswith(LOOP):
                self.rounds.arrive(label[len(LOOP) :], mine)
            else:
                self._align(label, alignment, mine)
        due = self.feedback.losses.settle(moving=self.feedback.filters.moving)
        self.query.run()
        self.feedback.repeat_demands()
        self.rounds.end()
        for departure in self.stage.departures:
            yield from self._depart(departure, due.get(departure.label))
        yield from rows_with_reasons(self)
        yield from self._results()
        yield from self.feedback.upstream()
        if self._wakes and self.query.runner.budgets.waits:
            yield Packet(~self.stage.number, WAKE, self.bucket, str(self.bucket), 0)

    # Items.

    def _align(self, label: str, alignment: Alignment, packets: Sequence[Packet]) -> None:
        """Pages of all origins first, then what all origins together promise."""
        promised: list[tuple[int, Punctuation]] = []
        pages: dict[str, list[Page]] = defaultdict(list)
        for packet in packets:
            if LOST in packet.header:
                self.feedback.losses.answered(label, packet.origin, packet.header[LOST])
            for item in packet.items:
                if isinstance(item, Page):
                    pages[packet.origin].append(item)
                elif item.intent is Intent.DEFINITE:
                    promised.append((int(packet.origin), item))
        for page in by_time(list(pages.values())):
            self.query.feed(label, page)
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
            until = max(lost, self.feedback.filters.lost_until(label, bucket))
            yield Packet(departure.target_stage, label, bucket, str(self.bucket), 0, {LOST: until})

    def _routed(self, departure: Exchange, items: list[Item]) -> list[list[Item]]:
        """The items by bucket: rows by their keys, as far as they are wanted there, punctuation to all."""
        boxes: list[list[Item]] = [[] for _ in range(self.buckets)]
        label, filters = departure.label, self.feedback.filters
        for item in items:
            if not isinstance(item, Page):
                for box in boxes:
                    box.append(item)
                continue
            for bucket, rows in enumerate(route(item, departure, self.buckets, self.secret)):
                admitted = (
                    None if rows is None else self.feedback.filters.admitted(departure.label, bucket, rows)
                )
                if admitted is not None and len(admitted):
                    boxes[bucket].append(admitted)
        responder = self.query.cell(label).responder
        if responder is not None:
            filters.settle(label, responder.given)
        return boxes

    def _results(self) -> Iterator[Packet]:
        """What leaves the plan."""
        for name in self.stage.outputs:
            items = merged(self.query.take(OUT + name))
            if OUT + name in self._netted:
                items = net_items(items, self._netted[OUT + name])
            self.figures.rows_out += sum(len(item) for item in items if isinstance(item, Page))
            if items:
                yield from Packet(0, OUT + name, 0, str(self.bucket), 0, {}, tuple(items)).split()

    # Status.

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
        own = [cell for cell in self.query.graph.cells if not cell.node.fed]
        steps = {cell.label: step_report(cell, self.stage.number) for cell in own}
        return Packet(0, COUNTS, 0, self.origin, 0, {"steps": steps, "sources": self.arrivals.reports()})

    def observed(self) -> Iterator[Packet]:
        """What was done here since the last call, in an epoch, as numbers that the host adds up.

        A number is the origin of its packet, as text, and its sequence number, if it is whole and fits.
        """
        for place, figure in enumerate(self.figures.take()):
            if figure is not None:
                fits = isinstance(figure, int) and -(2**63) <= figure < 2**63
                yield Packet(0, f"{OBSERVED}{place}", 0, str(figure), int(figure) if fits else 0)

    # State.

    def snapshot(self) -> Chunks:
        """The chunks of state that changed since the last snapshot."""
        chunks: Chunks = {f"query/{name}": data for name, data in self.query.snapshot().items()}
        chunks |= self.arrivals.snapshot() | self.feedback.snapshot() | self.rounds.snapshot()
        chunks |= self._readers.changed(self.stages.readers) | self.owner.snapshot()
        return chunks | self._aligned.changed({label: a.to_json() for label, a in self.alignments.items()})

    def release(self) -> None:
        """Lets go of what the steps hold; nothing can be done with the fragment any more."""
        for cell in self.query.graph.cells:
            del cell.operator

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes the state that these chunks hold."""
        self.owner.restore(chunks)
        self.query.restore(under("query/", chunks))
        for part in (self.arrivals, self.rounds, self.feedback):
            part.restore(chunks)
        aligned = self._aligned.read(chunks)
        self.alignments |= {n: Alignment.from_json(a) for n, a in aligned.items() if n in self.alignments}
        if self._readers.read(chunks) != self.stages.readers:
            self.feedback.start_over()
        self.figures.begin()
