"""Claims by tokens: sources put them in, cells align them, and one at every output is a claim.

All sources put in the token of a round together, an idle one at the place where it stands, so that no
input waits for another. Where each source counts for itself (``sync_group="none"``), or each group of them, a
cell waits for the slower one; the claims are as right, and rarer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from caesura.consistency import Synchronised, Tokens
from caesura.consistency.token import is_token, merged_tokens, number_of, prefix_of, token
from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.io.sources.source import Source
from caesura.punctuation import MIN_TIME, Punctuation
from caesura.runtime.claims.barriers import Barriers
from caesura.runtime.claims.claiming import Claiming, CountedReader
from caesura.runtime.claims.figures import TokenFigures, TokenWatch
from caesura.runtime.claims.marked_batches import carries, marked
from caesura.runtime.claims.token_places import token_places
from caesura.runtime.claims.views import View
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.emitter import Emitter
from caesura.runtime.graph.publication import Subscribed


class TokenClaims(Claiming):
    """Tokens by count, by the clock, or at times t of the streams."""

    def __init__(self, mode: Tokens | Synchronised, *args: Any) -> None:
        super().__init__(mode, *args)
        _refuse_loops(self.graph.edges)
        self.graph.aligns = True
        self.rounds = 0
        self._arrivals: dict[int, dict[str, tuple[int, Punctuation]]] = {}
        self.barriers = Barriers(self) if mode.saves else None
        self._followed = 0
        self.roots = [e for e in self.emitters.values() if e.root]
        self.group = _groups(mode, self.emitters)
        """The group of each source: those of one put in tokens together."""
        self.watch = TokenWatch()
        self.places = token_places(mode, self)
        self._finished = False
        for label, reader in self.readers.items():
            if isinstance(reader.node, Source):
                self.emitters[label].breaks.extend(reader.node.reader.claims())
        self._led = any(e.breaks for e in self.emitters.values())
        """Whether another pipeline's claims say where tokens go."""

    # -- what enters ----------------------------------------------------------------------------------

    @property
    def _elsewhere(self) -> bool:
        """Whether others say where tokens go."""
        return self._led or bool(self.followed)

    def _room(self, emitter: Emitter) -> int | None:
        """How many events a source may give before its next token; None for any number."""
        if emitter.breaks:
            return max(1, emitter.breaks[0][0] - emitter.offsets.get(0, 0))
        return None if self._elsewhere else self.places.room(emitter)

    def turn(self, reader: CountedReader, emitter: Emitter) -> None:
        self._claimed_before(emitter)
        self.places.turn(emitter)
        room = self._room(emitter)
        if room is not None and self._carries(reader):
            self._read_whole(reader, emitter, room)
            return
        raw = self.read(reader, emitter, room)
        if raw is not None:
            self._count(emitter, raw.batch.num_rows)
        self._claimed_before(emitter)
        self._place(emitter)

    def _carries(self, reader: CountedReader) -> bool:
        """Whether a batch enters as one page, in which tokens can stand."""
        if self.barriers is not None or not self.places.in_batches:
            return False
        return carries(reader) and len(self.roots) == len(self.emitters)

    def _read_whole(self, reader: CountedReader, emitter: Emitter, room: int) -> None:
        """Reads a batch, and puts tokens into its page as row positions."""
        self.let_in(emitter, reader.clock_items())
        raw = reader.next(None)
        if raw is None:
            self.read(reader, emitter, None)
            self._place(emitter)
            return
        rows, before = raw.batch.num_rows, emitter.offsets.get(raw.lane, 0)
        self.note(reader, emitter, raw)
        cuts = self.places.cuts(room, rows)
        items = reader.cell.guarded(reader.ingress.raw, raw)
        if cuts and before <= raw.offset:
            items = marked(reader, emitter, items, raw.lane, [raw.offset_of(c) for c in cuts])
            for _ in cuts:
                emitter.tokens += 1
                self.watch.put(emitter.tokens)
                self._others(emitter)
        self.let_in(emitter, items)
        self._count(emitter, rows if not cuts else rows - cuts[-1])
        self._place(emitter)

    def _count(self, emitter: Emitter, rows: int) -> None:
        """Counts events towards the next token."""
        for each in self.places.counted_with(emitter):
            each.since += rows

    # -- rounds -----------------------------------------------------------------------------------------

    def feed(self, label: str, item: Item) -> None:
        emitter = self.emitters[label]
        cut = self.places.in_batches
        while cut and isinstance(item, Page) and len(item) > (room := self._room(emitter) or len(item)):
            self._fed(emitter, item.slice(0, room))
            item = item.slice(room, len(item) - room)
        self._fed(emitter, item)

    def _fed(self, emitter: Emitter, item: Item) -> None:
        if is_token(item):
            self.put(emitter)
            return
        self.let_in(emitter, [item])
        if isinstance(item, Page):
            self._count(emitter, len(item))
        self._place(emitter)

    def let_in(self, emitter: Emitter, items: list[Item]) -> None:
        for item in items:
            if is_token(item):
                emitter.push(item)
                continue
            emitter.send([item])
        # Only behind all that a batch gives: its offsets, and what the source keeps, are those of its end.
        if not all(isinstance(item, Page) for item in items):
            self.places.promised()

    def _place(self, emitter: Emitter) -> None:
        """Puts in a token where it is time to."""
        if not self._elsewhere and self.places.due(emitter):
            self.put_first(emitter)

    def put_first(self, emitter: Emitter) -> None:
        """Puts in a source's next token; the others follow."""
        self.put(emitter)
        self._others(emitter)

    def _claimed_before(self, emitter: Emitter) -> None:
        """Puts in a token where the rows read so far are those of a claim of another pipeline."""
        while emitter.breaks and emitter.breaks[0][0] <= emitter.offsets.get(0, 0):
            emitter.pass_break()
            self.put_first(emitter)

    def round(self) -> None:
        """Puts a token into every source, where it stands."""
        number = max((e.tokens for e in self.roots), default=0) + 1
        for emitter in self.roots:
            while emitter.tokens < number:
                self.put(emitter)

    def _others(self, emitter: Emitter) -> None:
        """The other sources follow: all of a group, and those that are at their end."""
        group = self.group[emitter.label]
        for other in self.roots:
            follows = (self.group[other.label] == group or other.closed) and not other.breaks
            while other is not emitter and follows and other.tokens < emitter.tokens:
                self.put(other)
        for each in self.together(emitter):
            each.since = 0

    def together(self, emitter: Emitter) -> list[Emitter]:
        """The sources of a source's group, with itself."""
        return [e for e in self.emitters.values() if self.group[e.label] == self.group[emitter.label]]

    def put(self, emitter: Emitter, at: int | None = None) -> None:
        """Puts a source's next token in."""
        number = emitter.tokens = emitter.tokens + 1
        emitter.passed_at[number] = emitter.passed
        self.rounds = max(self.rounds, number)
        self.watch.put(number)
        if emitter.cell is not None:
            self._save(number, emitter.cell)
        emitter.push(token(number, {**emitter.behind, emitter.label: emitter.prefix()}, at))

    def _save(self, number: int, cell: Cell) -> None:
        if self.barriers is not None:
            self.barriers.save(number, cell)

    # -- what passes ------------------------------------------------------------------------------------

    def token(self, cell: Cell, tokens: list[Punctuation]) -> Punctuation:
        own = self.at.get(cell)
        more = {own.label: own.prefix()} if own is not None else None
        merged = merged_tokens(tokens, more)
        at = merged.noted("time")
        if own is not None and at is not None and own.promises.cti < at:
            merged = token(number_of(merged), prefix_of(merged), own.promises.cti)
        if cell in self.followed:
            merged = _from_elsewhere(cell, merged)
            self._follow(merged)
        self._save(number_of(merged), cell)
        return merged

    def _follow(self, came: Punctuation) -> None:
        """Another query's token has come: this query's own sources put in theirs."""
        self._followed += 1
        for emitter in self.roots:
            while emitter.tokens < self._followed:
                self.put(emitter, came.noted("time"))

    def arrived(self, view: View, item: Item) -> None:
        if not is_token(item):
            return
        number = number_of(item)
        there = self._arrivals.setdefault(number, {})
        there[view.name] = (view.rows, item)
        if len(there) < len(self.views):
            return
        del self._arrivals[number]
        whole = merged_tokens([came for _, came in there.values()])
        output = {name: rows for name, (rows, _) in there.items()}
        made = self.claim(number, prefix_of(whole), output, whole.noted("time"))
        self.watch.out(number, sum(e.rows for e in self.emitters.values()))
        self.places.out(number)
        if self.barriers is not None:
            self.barriers.complete(made)
        for emitter in self.roots:
            emitter.passed_at.pop(number, None)

    def figures(self) -> TokenFigures:
        """What tokens take now."""
        return self.watch.figures(self.places.present)

    def pull(self) -> bool:
        if self.places.quiet() or super().pull():
            return True
        over = self.readers and not self.followed and all(e.closed for e in self.emitters.values())
        if over and not self._finished:
            self._finished = True
            if not self.ahead:
                return False
            self.places.finish()
            return True
        return False

    def waiting(self) -> str:
        behind = [e for e in self.roots if e.tokens < max((e.tokens for e in self.roots), default=0)]
        return ", ".join(f"waits for '{e.label}', which has promised {_promised(e)}" for e in behind)

    def meta(self) -> dict[str, Any]:
        passed = {emitter.label: emitter.passed for emitter in self.roots}
        return {**super().meta(), "number": self.rounds, "times": self.places.times[-1:], "passed": passed}

    def remember(self, meta: Mapping[str, Any]) -> None:
        super().remember(meta)
        self.rounds = self._followed = meta["number"]
        self.places.times = [MIN_TIME] * (meta["number"] - len(meta["times"])) + list(meta["times"])
        for emitter in self.roots:
            emitter.tokens = meta["number"]
            for _ in range(meta["passed"][emitter.label]):
                emitter.pass_break()


def _groups(mode: Tokens | Synchronised, sources: Iterable[str]) -> dict[str, str]:
    """The group of each source; one that is not named counts for itself."""
    asked = mode.sync_group if isinstance(mode, Tokens) else "query"
    if isinstance(asked, str):
        return {label: "" if asked == "query" else label for label in sources}
    named = {label: name for name, labels in asked for label in labels}
    unknown = sorted(set(named) - set(sources))
    if unknown:
        raise StreamError(
            f"there is no source '{unknown[0]}' to be in the group '{named[unknown[0]]}'.",
            remedy=f"The sources are {', '.join(sources)}.",
        )
    return {label: named.get(label, f"'{label}' alone") for label in sources}


def _from_elsewhere(cell: Cell, came: Punctuation) -> Punctuation:
    """Another query's token, its sources named after the output that it came by."""
    name = cell.node.publication.output if isinstance(cell.node, Subscribed) else cell.label
    prefix = {f"{name}/{label}": part for label, part in prefix_of(came).items()}
    return token(number_of(came), prefix, came.noted("time"))


def _promised(emitter: Emitter) -> str:
    return "nothing" if emitter.promises.cti == MIN_TIME else f"time < {emitter.promises.cti}"


def _refuse_loops(edges: list[Any]) -> None:
    if any(edge.back for edge in edges):
        raise StreamError(
            "tokens cannot be aligned around a loop.",
            remedy="Take claims from the loop's own punctuation: claims=cz.synchronised(...).",
        )
