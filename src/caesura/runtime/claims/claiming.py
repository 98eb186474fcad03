"""Claims about a running query: who counts what enters, and who says when a state is consistent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from caesura.consistency import Claim, Level, Mode, Prefix
from caesura.consistency.claim import Covers
from caesura.errors import CaesuraError, StreamError
from caesura.events import Item
from caesura.events.chunks import Chunks, SavedJson, json_chunk
from caesura.plan import Ingress, Raw, SourceNode
from caesura.punctuation import Intent, Punctuation
from caesura.runtime.claims.views import View
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.emitter import Emitter
from caesura.runtime.graph.graph import Graph
from caesura.runtime.graph.source_reader import ReadableSource, next_ready


class CountedReader(ReadableSource, Protocol):
    """A source of the query being read."""

    node: SourceNode
    cell: Cell
    done: bool
    ends: bool
    limit: int | None

    @property
    def ingress(self) -> Ingress: ...
    @property
    def offsets(self) -> dict[int, int]: ...

    def next(self, limit: int | None) -> Raw | None: ...
    def clock_items(self) -> list[Item]: ...


class Claiming:
    """What all ways of making claims share: emitters at the sources, views at the outputs."""

    level = Level.PREFIX_CONSISTENT

    def __init__(
        self,
        mode: Mode,
        graph: Graph,
        outputs: Mapping[str, Cell],
        readers: Mapping[str, CountedReader],
        inputs: Mapping[str, tuple[Cell, Edge]],
        followed: Mapping[str, Cell],
    ) -> None:
        self.graph = graph
        self.claims: list[Claim] = []
        self.covered: dict[str, Prefix] = {}
        """The prefix that the last claim answers for."""
        self.under: list[Punctuation] = []
        self.readers = dict(readers)
        self.followed = set(followed.values())
        """Inputs that another query's tokens come by."""
        held = mode.release == "consistent"
        self.views = {n: View(n, held=held, arrived=self.arrived) for n in outputs}
        for name, cell in outputs.items():
            cell.taps.append(self.views[name])
        self.emitters: dict[str, Emitter] = {}
        for label, reader in readers.items():
            self.emitters[label] = Emitter(label, _Into(reader.cell), reader.cell)
        for label, (cell, edge) in inputs.items():
            if cell not in self.followed:
                self.emitters[label] = Emitter(label, edge.push)
        self.at = {e.cell: e for e in self.emitters.values() if e.cell is not None}
        for cell in graph.cells:
            cell.watch = self

    # -- what the graph tells -------------------------------------------------------------------------

    def token(self, cell: Cell, tokens: list[Punctuation]) -> Punctuation:
        """A token that passes a cell."""
        raise StreamError(
            "a token came to a query that does not align them.", remedy="Run it with claims=cz.tokens()."
        )

    def derived(self, cell: Cell, item: Item, items: list[Item]) -> list[Item]:
        """What a cell sends because of an item; a source that imports punctuation gives it."""
        own = self.at.get(cell)
        for made in items if own is not None else ():
            assert own is not None
            own.count(made)
        return items

    def arrived(self, view: View, item: Item) -> None:
        """An item that leaves the plan."""

    def worked(self) -> None:
        """A cell has worked."""

    # -- what enters ----------------------------------------------------------------------------------

    def feed(self, label: str, item: Item) -> None:
        """An item fed by hand."""
        self.let_in(self.emitters[label], [item])

    def pull(self) -> bool:
        """Lets the source give more whose turn it is; False when none has anything now."""
        labels = {reader: label for label, reader in self.readers.items()}
        live = [reader for reader in self.readers.values() if not reader.done]
        for passed in (ready := next_ready(live)).passed_over:
            self.let_in(self.emitters[labels[passed]], passed.clock_items())
        if ready.chosen is not None:
            self.turn(ready.chosen, self.emitters[labels[ready.chosen]])
        return ready.chosen is not None

    def turn(self, reader: CountedReader, emitter: Emitter) -> None:
        """Reads a batch."""
        self.read(reader, emitter, reader.limit)

    def read(self, reader: CountedReader, emitter: Emitter, limit: int | None) -> Raw | None:
        """Reads at most so many rows, and lets in what they give; None at the end."""
        self.let_in(emitter, reader.clock_items())
        raw = reader.next(limit)
        if raw is None:
            items = reader.cell.guarded(partial(reader.ingress.close, ends=reader.ends))
            emitter.closed = True
            self.let_in(emitter, items)
            return None
        self.note(reader, emitter, raw)
        self.let_in(emitter, reader.cell.guarded(reader.ingress.raw, raw))
        return raw

    def note(self, reader: CountedReader, emitter: Emitter, raw: Raw) -> None:
        """Counts what was read; an offset that was read before is refused, naming the source."""
        try:
            emitter.read(raw)
        except CaesuraError as error:
            raise error.at(reader.node.step, reader.node.place) from None

    def let_in(self, emitter: Emitter, items: list[Item]) -> None:
        emitter.send(items)

    # -- claims ---------------------------------------------------------------------------------------

    def take_feedback(self, message: Punctuation) -> None:
        """A consumer gave feedback: claims from now on name what it ignores, and what it is shown early."""
        plain = Punctuation(message.pattern, message.intent)
        early = message.intent is Intent.DEMANDED and any(map(holds_back, self.graph.cells))
        if (message.intent is Intent.ASSUMED or early) and plain not in self.under:
            self.under.append(plain)

    @property
    def ahead(self) -> bool:
        """Whether something has entered that no claim covers."""
        return any(self.covered.get(label) != e.prefix() for label, e in self.emitters.items())

    def prefixes(self) -> dict[str, Prefix]:
        return {label: emitter.prefix() for label, emitter in self.emitters.items()}

    def claim(
        self,
        number: int,
        prefix: Mapping[str, Prefix],
        output: Mapping[str, int],
        time: int | None = None,
        covers: Covers = "all",
    ) -> Claim:
        """Makes a claim, and lets held output go."""
        level = self.level if time is None else Level.SYNCHRONISED
        made = Claim(number, level, dict(prefix), time, tuple(self.under), dict(output), covers)
        self.claims.append(made)
        self.covered = dict(prefix)
        for view in self.views.values():
            view.release(number)
        return made

    def waiting(self) -> str:
        """Which source holds up the next claim, in words; empty where none does."""
        return ""

    # -- memory ---------------------------------------------------------------------------------------

    def snapshot(self) -> Chunks:
        """Where the sources are, and how many claims there were."""
        prefix = {label: emitter.prefix().to_json() for label, emitter in self.emitters.items()}
        under = [message.to_json() for message in self.under]
        own = {"prefix": prefix, "under": under, **self.meta()}
        return {"claims": json_chunk(own)}

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        own = SavedJson("claims").read(chunks)
        self.covered = {label: Prefix.from_json(prefix) for label, prefix in own["prefix"].items()}
        for label, prefix in self.covered.items():
            self.emitters[label].go_on(prefix)
        self.under = [Punctuation.from_json(message) for message in own["under"]]
        self.remember(own)

    def meta(self) -> dict[str, Any]:
        given = {name: view.rows for name, view in self.views.items()}
        return {"number": self.claims[-1].number if self.claims else 0, "given": given}

    def remember(self, meta: Mapping[str, Any]) -> None:
        """Takes back what `meta` gave; claims go on counting what each view has given."""
        for name, view in self.views.items():
            view.rows = meta["given"].get(name, 0)


class _Into:
    """Sends what a source gives on through its cell."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def __call__(self, item: Item) -> None:
        self.cell.send([item])


def insert_only(reader: CountedReader) -> bool:
    """Whether every row that a source lets in is one that it read, in the same order."""
    return reader.node.properties.insert_only and not reader.node.inputs


def holds_back(cell: Cell) -> bool:
    """Whether a step keeps results until they are final, and shows them earlier on demand."""
    return cell.operator.speculate == "watermark" or cell.node.shows_early
