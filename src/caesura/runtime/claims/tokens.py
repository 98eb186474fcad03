"""Claims by tokens: sources put them in, cells align them, and one at every output is a claim.

All sources put in the token of a round together, an idle one at the place where it stands, so that no
input waits for another. Where each source counts for itself (``sync_group="none"``), a cell waits for the
slower one; the claims are as right, and rarer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from caesura.consistency import Claim, Prefix, Synchronised, Tokens
from caesura.consistency.token import Marks, is_token, merged_tokens, number_of, prefix_of, token
from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.events.chunks import Chunks, json_chunk
from caesura.io.sources.source import Source
from caesura.plan import here, ticks
from caesura.punctuation import INFINITY, MIN_TIME, Punctuation
from caesura.runtime.claims.claiming import Claiming, CountedReader, insert_only
from caesura.runtime.claims.tuner import Tuner
from caesura.runtime.claims.views import View
from caesura.runtime.feedback.saved import snapshot_of
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.emitter import Emitter
from caesura.runtime.graph.publication import Subscribed

SLICE = 4096
"""How many rows a source gives at most before its CTI is looked at, where claims are at times."""


class TokenClaims(Claiming):
    """Tokens by count, by the clock, or at times t of the streams."""

    def __init__(self, mode: Tokens | Synchronised, *args: Any) -> None:
        super().__init__(mode, *args)
        _refuse_loops(self.graph.edges)
        self.graph.aligns = True
        self.mode = mode
        self.rounds = 0
        self._arrivals: dict[int, dict[str, tuple[int, Punctuation]]] = {}
        self._barriers: dict[int, Chunks] = {}
        self.saved: list[tuple[Claim, Chunks]] = []
        """Snapshots that are complete, each with the claim it lands on."""
        self._last = time.perf_counter()
        self._followed = 0
        self.roots = [e for e in self.emitters.values() if e.root]
        self._shared = not isinstance(mode, Tokens) or mode.sync_group == "query"
        self.tuner: Tuner | None = None
        if isinstance(mode, Tokens) and mode.tuned:
            self.tuner = Tuner(lambda: list(self.emitters.values()), 1 if self._shared else len(self.roots))
        self._times: list[int] = []
        """The times t that the sources have agreed on."""
        self._finished = False
        for label, reader in self.readers.items():
            if isinstance(reader.node, Source):
                self.emitters[label].breaks.extend(reader.node.reader.claims())
        self._led = any(e.breaks for e in self.emitters.values())
        """Whether another pipeline's claims say where tokens go."""

    # -- how many events until the next token -----------------------------------------------------------

    def _room(self, emitter: Emitter) -> int | None:
        """How many events a source may give before its next token; None for any number."""
        if emitter.breaks:
            return max(1, emitter.breaks[0][0] - emitter.offsets.get(0, 0))
        if self.followed or self._led:
            return None
        if isinstance(self.mode, Synchronised):
            return SLICE
        every = self._every
        return None if every is None else max(1, every - emitter.since)

    @property
    def _every(self) -> int | None:
        """The period now; that of the tuner is of all sources together."""
        if self.tuner is not None:
            return self.tuner.every
        return self.mode.every if isinstance(self.mode, Tokens) else None

    def turn(self, reader: CountedReader, emitter: Emitter) -> None:
        self._claimed_before(emitter)
        if self.tuner is not None:
            self.tuner.turn(emitter)
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
        if self.mode.saves or isinstance(self.mode, Synchronised) or reader.node.punctuated:
            return False
        return insert_only(reader) and len(self.roots) == len(self.emitters)

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
        cuts = list(range(room, rows, self._every or rows))
        if self.tuner is not None and self.tuner.batch(rows):
            cuts = []
        items = reader.cell.guarded(reader.ingress.raw, raw)
        if cuts and before <= raw.offset:
            items = self._marked(reader, emitter, items, raw.lane, [raw.offset + c for c in cuts])
        self.let_in(emitter, items)
        self._count(emitter, rows if not cuts else rows - cuts[-1])
        self._place(emitter)

    def _count(self, emitter: Emitter, rows: int) -> None:
        """Counts events towards the next token; the tuner counts those of all sources."""
        for each in self.emitters.values() if self.tuner is not None and self._shared else (emitter,):
            each.since += rows

    def _marked(
        self, reader: CountedReader, emitter: Emitter, items: list[Item], lane: int, cuts: list[int]
    ) -> list[Item]:
        """The items of a batch, with tokens inside its page, or in front where no row entered."""
        place = next((i for i, item in enumerate(items) if isinstance(item, Page)), None)
        entered = reader.ingress.entered if place is not None else None
        positions = np.zeros(len(cuts), np.int64) if entered is None else np.searchsorted(entered, cuts)
        tokens = []
        for cut, position in zip(cuts, positions.tolist(), strict=True):
            prefix = Prefix(
                emitter.rows + position,
                emitter.punctuations,
                {**emitter.offsets, lane: cut},
                tuple(emitter.promises.patterns()),
            )
            number = self._next_number(emitter)
            tokens.append(token(number, {emitter.label: prefix}))
            emitter.tokens = number
            self._others(emitter)
        if place is None:
            return [*tokens, *items]
        page = items[place]
        assert isinstance(page, Page)
        marked = Page(
            page.le, page.re, page.payload, page.re_new, tags=Marks(tuple(positions.tolist()), tuple(tokens))
        )
        return [*items[:place], marked, *items[place + 1 :]]

    # -- rounds -----------------------------------------------------------------------------------------

    def feed(self, label: str, item: Item) -> None:
        emitter = self.emitters[label]
        counted = isinstance(self.mode, Tokens)
        while counted and isinstance(item, Page) and len(item) > (room := self._room(emitter) or len(item)):
            self._fed(emitter, item.slice(0, room))
            item = item.slice(room, len(item) - room)
        self._fed(emitter, item)

    def _fed(self, emitter: Emitter, item: Item) -> None:
        if is_token(item):
            self._put(emitter, self._next_number(emitter))
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
        if isinstance(self.mode, Synchronised) and not all(isinstance(item, Page) for item in items):
            self._synchronise()

    def _place(self, emitter: Emitter) -> None:
        """Puts in a token where it is time to."""
        if self.followed or self._led or isinstance(self.mode, Synchronised):
            return
        every = self._every
        due = every is not None and emitter.since >= every
        if (due or self._due()) and not (self.tuner is not None and self.tuner.defers(emitter)):
            self._last = time.perf_counter()
            self._put(emitter, self._next_number(emitter))
            self._others(emitter)

    def _due(self) -> bool:
        """Whether the clock says that it is time for a token."""
        period = self.mode.period if isinstance(self.mode, Tokens) else None
        if self.tuner is not None and any(e.since for e in self.emitters.values()):
            period = self.tuner.patience
        return period is not None and (time.perf_counter() - self._last) * 1e6 >= period

    def _claimed_before(self, emitter: Emitter) -> None:
        """Puts in a token where the rows read so far are those of a claim of another pipeline."""
        while emitter.breaks and emitter.breaks[0][0] <= emitter.offsets.get(0, 0):
            emitter.pass_break()
            self._put(emitter, self._next_number(emitter))
            self._others(emitter)

    def round(self, at: int | None = None) -> None:
        """Puts a token into every source, where it stands."""
        number = max((e.tokens for e in self.roots), default=0) + 1
        for emitter in self.roots:
            while emitter.tokens < number:
                self._put(emitter, emitter.tokens + 1, at)

    def _next_number(self, emitter: Emitter) -> int:
        return emitter.tokens + 1

    def _others(self, emitter: Emitter) -> None:
        """The other sources follow: all of a group, and those that are at their end."""
        for other in self.roots:
            follows = (self._shared or other.closed) and not other.breaks
            while other is not emitter and follows and other.tokens < emitter.tokens:
                self._put(other, other.tokens + 1)
        if self._shared:
            for each in self.emitters.values():
                each.since = 0
        emitter.since = 0

    def _put(self, emitter: Emitter, number: int, at: int | None = None) -> None:
        emitter.tokens = number
        emitter.passed_at[number] = emitter.passed
        self.rounds = max(self.rounds, number)
        if self.mode.saves and emitter.cell is not None:
            self._save(number, emitter.cell)
        emitter.push(token(number, {**emitter.behind, emitter.label: emitter.prefix()}, at))

    def _synchronise(self) -> None:
        """Lets every source put in the tokens of times t that it has passed."""
        assert isinstance(self.mode, Synchronised)
        for emitter in self.roots:
            every = self._ticks(emitter)
            while True:
                if emitter.tokens < len(self._times):
                    t = self._times[emitter.tokens]
                else:
                    last = self._grid(emitter.promises.cti, every)
                    if last is None or (self._times and last <= self._times[-1]):
                        break
                    t = last
                    self._times.append(t)
                if emitter.promises.cti < t:
                    break
                self._put(emitter, emitter.tokens + 1, t)

    def _ticks(self, emitter: Emitter) -> int:
        assert isinstance(self.mode, Synchronised)
        nodes = [emitter.cell.node] if emitter.cell is not None else [c.node for c in self.graph.cells]
        every = ticks(self.mode.every, nodes[0].time, "period of synchronised claims")
        if every <= 0:
            raise StreamError(
                f"a synchronised claim every {self.mode.every} is none.", remedy="Give a period above 0."
            ).at("claims", here())
        return every

    def _grid(self, cti: int, every: int) -> int | None:
        """The last multiple of the period up to a time; the end of time is none until all are there."""
        if cti == MIN_TIME:
            return None
        if cti == INFINITY:
            return INFINITY if all(e.promises.cti == INFINITY for e in self.roots) else None
        return cti // every * every

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
        if self.mode.saves:
            self._save(number_of(merged), cell)
        return merged

    def _follow(self, came: Punctuation) -> None:
        """Another query's token has come: this query's own sources put in theirs."""
        self._followed += 1
        for emitter in self.roots:
            while emitter.tokens < self._followed:
                self._put(emitter, emitter.tokens + 1, came.noted("time"))

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
        if self.tuner is not None:
            self.tuner.out(number, self.rounds)
        if self.mode.saves:
            chunks = self._barriers.pop(number)
            self.saved.append((made, {**chunks, **self._own(made)}))
        for emitter in self.roots:
            emitter.passed_at.pop(number, None)

    def pull(self) -> bool:
        if isinstance(self.mode, Tokens) and self.mode.period is not None and self._due() and self.ahead:
            self._last = time.perf_counter()
            self.round()
            return True
        if self.tuner is not None and (emitter := self.tuner.quiet(self.rounds)) is not None:
            self._last = time.perf_counter()
            self._put(emitter, self._next_number(emitter))
            self._others(emitter)
            return True
        if super().pull():
            return True
        over = self.readers and not self.followed and all(e.closed for e in self.emitters.values())
        if over and not self._finished:
            self._finished = True
            if not self.ahead:
                return False
            if isinstance(self.mode, Synchronised):
                self._synchronise()
            else:
                self.round()
            return True
        return False

    def waiting(self) -> str:
        behind = [e for e in self.roots if e.tokens < max((e.tokens for e in self.roots), default=0)]
        return ", ".join(f"waits for '{e.label}', which has promised {_promised(e)}" for e in behind)

    # -- snapshots --------------------------------------------------------------------------------------

    def _save(self, number: int, cell: Cell) -> None:
        chunks = self._barriers.setdefault(number, {})
        for name, data in cell.operator.snapshot().items():
            chunks[f"{cell.node.fingerprint}/{name}"] = data
        chunks |= snapshot_of(cell)

    def _own(self, made: Claim) -> Chunks:
        """The part of a snapshot that is about the claim: offsets to read on from, and counts."""
        offsets = {
            label: {str(lane): at for lane, at in made.prefix[label].offsets.items()}
            for label in self.readers
        }
        own = {
            "prefix": {label: made.prefix[label].to_json() for label in self.emitters},
            "under": [message.to_json() for message in made.under],
            "number": made.number,
            "times": [] if made.time is None else [made.time],
            "passed": {e.label: e.passed_at.get(made.number, e.passed) for e in self.roots},
            "given": dict(made.output),
        }
        return {"offsets": json_chunk(offsets), "claims": json_chunk(own)}

    def meta(self) -> dict[str, Any]:
        passed = {emitter.label: emitter.passed for emitter in self.roots}
        return {**super().meta(), "number": self.rounds, "times": self._times[-1:], "passed": passed}

    def remember(self, meta: Mapping[str, Any]) -> None:
        super().remember(meta)
        self.rounds = self._followed = meta["number"]
        self._times = [MIN_TIME] * (meta["number"] - len(meta["times"])) + list(meta["times"])
        for emitter in self.roots:
            emitter.tokens = meta["number"]
            for _ in range(meta["passed"][emitter.label]):
                emitter.pass_break()


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
