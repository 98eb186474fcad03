"""A plan at work in this process: feed it or let it read, run it, take what comes out.

>>> import pyarrow as pa
>>> from caesura.events import draw, parse
>>> from caesura.ops.input import Input
>>> clicks = Input(label="clicks", payload=pa.schema([("id", pa.int64())]))
>>> query = Query({"out": clicks})
>>> for item in parse(" LE RE | id |\\n 1 2 | 7 | +\\n-- 5 --"):
...     query.feed("clicks", item)
>>> query.run()
>>> print(draw(query.take("out")))
 LE  RE | id |
  1  2  | 7  | +
-- definite: time < 5 --
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Literal

import pyarrow as pa

from caesura.consistency import Claim, Mode
from caesura.errors import StreamError, looked_up
from caesura.events.identity import Secret
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import Chunks
from caesura.events.show.html import table
from caesura.expr import Expr
from caesura.feedback.messages import WITHDRAWN
from caesura.fixpoint.node import Fixpoint
from caesura.io.ingress.pushed import Door
from caesura.ops.input import Input
from caesura.plan import Counters, Node, SourceNode, here, walk
from caesura.punctuation import INFINITY, Intent, Pattern, Punctuation
from caesura.runtime.claims.choose import claiming_for, put_token, saved_by
from caesura.runtime.claims.claiming import Claiming
from caesura.runtime.feedback.consumer import (
    Assumptions,
    Spoken,
    note_losses,
    restore_into,
    snapshot_of,
    start_over,
)
from caesura.runtime.graph.budgets import Budgets
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.graph import Cell, Graph
from caesura.runtime.graph.loops import Loop, close, refuse_open
from caesura.runtime.graph.publication import Publication, Subscribed
from caesura.runtime.graph.queued import Queues
from caesura.runtime.graph.rejected import stopped_rows
from caesura.runtime.graph.schedule import BottomUp, Schedule
from caesura.runtime.graph.source_reader import SourceReader, next_of, refused_by, share
from caesura.runtime.query.secret import Keeper, refuse_foreign

Speculate = Literal["arrival", "watermark"]
PUBLISHED = "published:"
OUTPUT = "output:"


class Query:
    """Runs the nodes behind some outputs; equal sub-plans run once."""

    def __init__(
        self,
        outputs: Mapping[str, Node],
        *,
        schedule: Schedule | None = None,
        capacity: int = 8,
        speculate: Speculate = "arrival",
        unused: Iterable[str] = (),
        claims: Mode | None = None,
        crossing: Mapping[str, Node] | None = None,
        readers: Mapping[str, int] | None = None,
        listens: bool = True,
        secret: Secret | None = None,
    ) -> None:
        self.keeper = Keeper(secret)
        self._listens = listens
        """Whether feedback is heeded; a run without it shows what it changes."""
        self._speaking: list[Cell] = []
        """Steps that have said something, which is heard before the next page is taken."""
        self._unused = set(unused)
        """Inputs that may be fed although no output needs them."""
        self.graph = Graph(capacity)
        self._queues = Queues(self.graph)
        self.schedule = schedule or BottomUp()
        self.outputs = dict(outputs)
        self._taps: dict[str, list[Item]] = {name: [] for name in outputs}
        self._inputs: dict[str, Edge] = {}
        self._cells: dict[str, Cell] = {}
        self._readers: dict[str, SourceReader] = {}
        self._offsets = b""
        self._read_by = b""
        """The outputs under which feedback was heard, as they were last saved."""
        self._published: dict[str, Publication] = {}
        self._feeders: list[Query] = []
        """Running queries that this one reads publications of."""
        self._loops: list[Loop] = []
        for node in walk(*outputs.values()):
            self._mount(node, speculate)
        for node in [cell.node for cell in self.graph.cells]:
            if isinstance(node, Fixpoint):
                body = (crossing or {}).get(node.loop)
                head = self._cells[node.fingerprint]
                self._loops.append(close(self.graph, node, head, self._cells, body))
        refuse_open(self._cells, self._loops)
        share(list(self._readers.values()))
        self.claiming: Claiming | None = None
        for name, node in outputs.items():
            many = (readers or {}).get(name, 1)
            self._cells[node.fingerprint].branches += [f"{OUTPUT}{name}#{n}" for n in range(many)]
            if claims is None:
                self._cells[node.fingerprint].taps.append(self._taps[name])
        if claims is not None:
            ends = {name: self._cells[node.fingerprint] for name, node in outputs.items()}
            for reader in self._readers.values():
                reader.wishes = False
            self.claiming = claiming_for(claims, self.graph, ends, self._readers, self._inputs)
        self.assumptions = Assumptions(self)
        self._readers_now = json.dumps(sorted((n, node.fingerprint) for n, node in outputs.items())).encode()
        self.turns = Budgets(self.graph.cells)

    def _mount(self, node: Node, speculate: Speculate) -> None:
        operator = node.operator()
        operator.keep_pace(speculate)
        operator.secret.become(self.keeper.secret)
        label = node.step
        taken = {cell.label for cell in self._cells.values()}
        number = 2
        while label in taken:
            label = f"{node.step}-{number}"
            number += 1
        cell = self.graph.add(node, operator, label)
        self._cells[node.fingerprint] = cell
        for port, source in enumerate(node.inputs):
            self.graph.connect(self._cells[source.fingerprint], cell, port)
        if isinstance(node, SourceNode):
            self._readers[label] = SourceReader(node, cell)
        elif isinstance(node, Input):
            self._inputs[node.label] = self.graph.open(cell, 0)
            if isinstance(node, Subscribed):
                node.publication.attach(self._inputs[node.label])
                self._feeders.append(node.publication.query)

    def publish(self, output: str, *, name: str = "") -> Publication:
        """Opens an output to later queries; to be asked for before anything has left it.

        A name tells it from the same output of another query of the same plan.
        """
        cell = self._cells[looked_up(self.outputs, output, "output", "publish").fingerprint]
        if output in self._published:
            return self._published[output]
        if cell.responder is not None:
            raise StreamError(
                f"feedback was given to '{output}' already, which later readers have not agreed to.",
                remedy="Publish the output before you speak to it.",
            ).at(cell.node.step, cell.node.place)
        if cell.operator.counters.rows_out:
            raise StreamError(
                f"rows have left '{output}' already, and a publication must know those that may change.",
                remedy="Publish the output before the query runs.",
            ).at(cell.node.step, cell.node.place)
        published = self._published[output] = Publication(self, output, cell.node, name)
        cell.taps.append(published)
        cell.branches.append(PUBLISHED + output)
        return published

    def feed(self, label: str, item: Item) -> None:
        """Queues an item at an `Input`; at a pushed one, what its laws let in."""
        if label not in self._inputs and label in self._unused:
            return
        looked_up(self._inputs, label, "input", "feed")
        door = self.cell_of(label).operator
        for legal in self.cell_of(label).guarded(door.enter, item) if isinstance(door, Door) else (item,):
            if self.claiming is None:
                self._inputs[label].push(legal)
            else:
                self.claiming.feed(label, legal)

    def send_up(self, output: str, message: Punctuation, reader: int = 0) -> None:
        """Speaks to the operator behind an output, as its consumer, or as one of its readers."""
        cell = self._cells[self.outputs[output].fingerprint]
        if not self._listens:
            return
        if message.noted(WITHDRAWN):
            note_losses(self.graph.cells)
        if self.claiming is not None:
            self.claiming.heard(message)
        cell.upward(message, f"{OUTPUT}{output}#{reader}")
        self._hear()

    def ignored(self, label: str) -> list[Pattern]:
        """What everybody behind an `Input` ignores: rows that need not be fed."""
        self.listen()
        responder = self.cell_of(label).responder if label in self._inputs else None
        return responder.output.patterns if responder is not None and responder.output.active else []

    def wanted(self, label: str) -> list[Pattern]:
        """What somebody behind an `Input` wants first."""
        return list(self.cell_of(label).desired) if label in self._inputs else []

    def heard(self, label: str) -> list[Punctuation]:
        """What operators have said to whoever feeds an `Input`, since the last call."""
        if label not in self._inputs:
            return []
        self.listen()
        messages = list(self._inputs[label].up)
        self._inputs[label].up.clear()
        responder = self.cell_of(label).responder
        if responder is not None and any(m.intent is Intent.ASSUMED for m in messages):
            responder.lost = INFINITY  # what others leave out on account of it cannot be known here
        return messages

    def assume(self, what: Pattern | Expr | bool, *, output: str | None = None) -> Spoken:
        """These rows will be ignored: steps need not make them. Gives a handle to withdraw."""
        return self.assumptions.say(Intent.ASSUMED, what, output)

    def desire(self, what: Pattern | Expr | bool, *, output: str | None = None) -> Spoken:
        """These rows are wanted first: what waits is worked off in that order. Nothing else changes."""
        return self.assumptions.say(Intent.DESIRED, what, output)

    def demand(self, what: Pattern | Expr | bool = True, *, output: str | None = None) -> None:
        """These rows are wanted now, as far as they are known: marked partial, and corrected later."""
        self.assumptions.demand(what, output)

    def withdraw(self, spoken: Spoken | int) -> None:
        """Takes feedback back; what lost state or input to it stays suppressed until it is closed."""
        self.assumptions.withdraw(spoken)

    def feedback(self) -> list[str]:
        """The feedback that stands, and what is still suppressed."""
        return self.assumptions.list()

    @property
    def inputs(self) -> frozenset[str]:
        """The labels of what can be fed."""
        return frozenset(self._inputs)

    def start_over(self) -> None:
        """Forgets all feedback: outputs are there that have not agreed to it."""
        start_over(self.graph.cells)

    def cell_of(self, label: str) -> Cell:
        """The step that an input feeds, at work."""
        target = self._inputs[label].target
        assert target is not None
        return target

    def cell(self, output: str) -> Cell:
        """The step behind an output, at work."""
        return self._cells[self.outputs[output].fingerprint]

    def run(self) -> None:
        """Works until nothing is queued and every source is at its end: an epoch, for budgets.

        Work that waits has a turn, also when no item came for it.
        """
        self.turns.begin()
        self.work()
        if self._resume():
            self.work()

    def work(self) -> None:
        """Works off what is queued and what the sources have, within the epoch that `run` began."""
        while self._step():
            pass

    def step(self) -> bool:
        """Takes one item, or one batch of raw rows when nothing is queued, or else work that waits.

        False when there is nothing to do.
        """
        if self._step():
            return True
        self.turns.begin()
        return self._resume()

    def _resume(self) -> bool:
        """Lets work that waits go on; not under claims, which speak of what each item became."""
        return self.claiming is None and self.turns.resume()

    def _step(self) -> bool:
        edge = self._next()
        if edge is None:
            if self._readers or self._feeders or self.graph.urgent or self.claiming is not None:
                if self._speaking:
                    self._attend()
                self.listen()
            return self._pull()
        target = edge.target
        assert target is not None
        if self._speaking and edge.items[0].__class__ is Page:  # for every item: no call
            self._attend()
        target.work(edge.port)
        if target.spoke:
            target.spoke = False
            self._spoken(target)
        if self.claiming is not None:
            self.claiming.worked()
        return True

    def _spoken(self, cell: Cell) -> None:
        """Sees that the feedback of a step, sent or pending, is heard before the next page, or at once."""
        if cell.operator.pending_feedback and cell.unheard():
            for above in cell.inputs:
                if above.up:
                    break
            else:
                return
        self._speaking.append(cell)
        if self.claiming is not None or any(above.urgent for above in cell.inputs):
            self._hear()

    def _next(self) -> Edge | None:
        """The edge whose next item is taken; None when none can be."""
        if type(self.schedule) is BottomUp:
            return self.graph.deepest()
        ready = self.graph.ready()
        return None if not ready else self.schedule.pick(ready) if len(ready) > 1 else ready[0]

    def _attend(self) -> None:
        """Lets messages climb that wait for the next page, if any is left."""
        heard = False
        for cell in self._speaking:
            if not cell.operator.pending_feedback:
                heard = heard or any(above.up for above in cell.inputs)
            elif cell.send_pending():
                heard = True
        self._speaking.clear()
        if heard:
            self._hear()

    def listen(self) -> None:
        """Lets messages climb that wait for the next page."""
        if any(cell.has_control for cell in self.graph.cells):
            self._hear()

    def _hear(self) -> None:
        """Lets waiting messages climb, nearest to the outputs first."""
        self._speaking.clear()
        for cell in self.graph.cells:
            if cell.operator.pending_feedback:
                cell.send_pending()
        if not self._listens:
            for edge in self.graph.edges:
                edge.up.clear()
            return
        said = (m for edge in self.graph.edges for m in edge.up if m.note and m.intent is Intent.ASSUMED)
        if any(m.noted(WITHDRAWN) for m in said):
            note_losses(self.graph.cells)
        for cell in self.graph.bottom_up:
            if any(edge.up for edge in cell.outputs):
                cell.hear()
        if any(cell.demanded for cell in self.graph.cells):
            self._give_now()

    def _give_now(self) -> None:
        """Lets every step give what is demanded of it, from the sources down, so that each has the latest."""
        for cell in sorted(self.graph.cells, key=lambda c: c.depth):
            patterns, cell.demanded = cell.demanded, []
            if not patterns:
                continue
            while (edge := self._next()) is not None:
                assert edge.target is not None
                edge.target.work(edge.port)
                if edge.target.operator.pending_feedback:
                    self._speaking.append(edge.target)
            for pattern in patterns:
                cell.send(cell.guarded(cell.operator.demand, pattern))

    def _pull(self) -> bool:
        """Lets the source read whose turn it is; False when all are at their end.

        When none is left, the queries that this one reads from take a step.
        """
        if self.claiming is not None:
            return self.claiming.pull() or any(query.step() for query in self._feeders)
        live = [r for r in self._readers.values() if not r.done]
        if live:
            next_of(live).turn()
        return bool(live) or any(query.step() for query in self._feeders)

    def take(self, output: str) -> list[Item]:
        """What came out since the last call; with claims, a token stands wherever one holds."""
        if self.claiming is not None:
            return looked_up(self.claiming.views, output, "output", "take").take()
        tap = looked_up(self._taps, output, "output", "take")
        items = tap[:]
        tap.clear()
        return items

    @property
    def claims(self) -> list[Claim]:
        """The claims so far."""
        return [] if self.claiming is None else self.claiming.claims

    def token(self) -> None:
        """Puts a token into every source now, where tokens are aligned."""
        put_token(self._claiming())

    def waiting(self) -> str:
        """What the next claim waits for, in words; empty where nothing holds it up."""
        return self._claiming().waiting()

    def saved(self) -> list[tuple[Claim, Chunks]]:
        """Snapshots that were completed since the last call, each landing on its claim."""
        found = saved_by(self._claiming())
        spoken = self.assumptions.snapshot() | self.keeper.snapshot() if found else {}
        return [(claim, {**chunks, **spoken}) for claim, chunks in found]

    def _claiming(self) -> Claiming:
        if self.claiming is None:
            raise StreamError(
                "this query makes no claims.", remedy="Make it with query(claims=cz.tokens())."
            ).at("query", here())
        return self.claiming

    def late(self) -> dict[str, pa.Table]:
        """Rows that sources refused, that steps speak of, or that were stopped above, since the last call."""
        return refused_by(self.graph.cells) | self.notes() | stopped_rows(self.graph.cells)

    def notes(self) -> dict[str, pa.Table]:
        """Rows that steps have something to say of since the last call, by step."""
        tables: dict[str, pa.Table] = {}
        for cell in self.graph.cells:
            table = cell.operator.drain_notes()
            if table is not None:
                tables[cell.label if cell.node.step in tables else cell.node.step] = table
        return tables

    def counters(self) -> dict[str, Counters]:
        """What each step has done and holds; messages that wait are heard first."""
        self.listen()
        for cell in self.graph.cells:
            cell.measure()
        counted = {cell.label: cell.operator.measure() for cell in self.graph.cells}
        for loop in self._loops:
            loop.measure()
        return counted

    def loop_head(self, loop: str) -> Cell:
        """The step that closes a loop."""
        return next(known.head for known in self._loops if known.name == loop)

    def _repr_html_(self) -> str:
        heads = ("step", "rows in", "rows out", "state rows", "state bytes", "last promise")
        counted = self.counters().items()
        rows = ((n, c.rows_in, c.rows_out, c.state_rows, c.state_bytes, c.last_out) for n, c in counted)
        return table(heads, rows)

    @property
    def state_rows(self) -> int:
        return sum(c.state_rows for c in self.counters().values())

    def snapshot(self) -> Chunks:
        """The chunks of state that changed since the last snapshot; with what waits between the steps."""
        self.listen()
        chunks: Chunks = self._queues.snapshot(tagged=self.claiming is not None)
        for cell in self.graph.cells:
            for name, data in cell.operator.snapshot().items():
                chunks[f"{cell.node.fingerprint}/{name}"] = data
            chunks |= snapshot_of(cell)
        chunks |= self.assumptions.snapshot()
        if self._read_by != self._readers_now and any(cell.responder for cell in self.graph.cells):
            chunks["readers"] = self._read_by = self._readers_now
        for output, published in self._published.items():
            chunks |= {f"{PUBLISHED}{output}/{n}": data for n, data in published.snapshot().items()}
        if self.claiming is not None:
            chunks |= self.claiming.snapshot()
        offsets = json.dumps({label: reader.offsets for label, reader in self._readers.items()}).encode()
        if offsets != self._offsets:
            chunks["offsets"] = self._offsets = offsets
        return chunks | self.keeper.snapshot()

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes the state of a query of the same plan; a step that it has none for begins empty."""
        refuse_foreign(chunks, self._readers, claims=self.claiming is not None)
        self.keeper.restore(chunks, [cell.operator for cell in self.graph.cells])
        for cell in self.graph.cells:
            prefix = cell.node.fingerprint + "/"
            mine = {k[len(prefix) :]: v for k, v in chunks.items() if k.startswith(prefix)}
            if mine:
                cell.operator.restore(mine)
                restore_into(cell, mine)
        self._queues.restore(chunks)
        self._read_by = chunks.get("readers", b"")
        others = bool(self._read_by) and self._read_by != self._readers_now
        if others:
            self.start_over()
        self.assumptions.restore(chunks, again=others)
        for output, published in self._published.items():
            prefix = f"{PUBLISHED}{output}/"
            published.restore({k[len(prefix) :]: v for k, v in chunks.items() if k.startswith(prefix)})
        self._offsets = chunks["offsets"]
        if self.claiming is not None:
            self.claiming.restore(chunks["claims"])
        for label, offsets in json.loads(self._offsets).items():
            self._readers[label].seek({int(lane): at for lane, at in offsets.items()})
