"""The physical side of a step: pages and punctuation in, items out, state that can be saved.

`page`, `definite` and `signal` give the items that leave, in order. The runtime calls them one at a
time and never concurrently; an operator keeps no clock, no randomness and no reference to a page
beyond its own state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.chunks import Chunks, SavedJson, under
from caesura.events.identity import LOCAL
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.paging import StatePages
from caesura.events.rows import RowState
from caesura.plan.ring import Ring
from caesura.plan.tally import Tallies
from caesura.punctuation import MIN_TIME, Alignment, Intent, Pattern, Promises, Punctuation

Up = tuple[int, Punctuation]
"""A message for the operator behind an input port."""
OVERTAKEN = "overtaken while it waited"
"""What is counted of messages that can save nothing any more when their turn comes; they go no further."""

Speculate = Literal["arrival", "passed", "watermark"]
"""When a window's result leaves: with its first row; once time has passed it; or when it cannot change."""


class Outbox(Protocol):
    """Where an operator puts its feedback; the runtime delivers it."""

    def send(self, port: int, message: Punctuation, /) -> None:
        """Sends a message to the operator behind an input."""

    def defer(self, page: Page, /) -> None:
        """Sends `feedback_for` a page before the next page is taken, if it matters then."""


class NoOutbox:
    """The outbox of an operator that stands alone: nobody is above it."""

    def send(self, port: int, message: Punctuation, /) -> None:
        """Nobody takes it."""

    def defer(self, page: Page, /) -> None:
        """Nobody asks for it."""


class GivenUp(NamedTuple):
    """What leaves because results were given up, and the latest end of what is gone: results, and rows."""

    items: list[Item]
    until: int
    rows: int = 0
    """How many rows of state went."""


@dataclass
class Counters:
    """What an operator has done and holds; shown to people and read by tests."""

    rows_in: int = 0
    rows_out: int = 0
    pages_in: int = 0
    sweeps: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    held_by: str = ""
    punctuation_in: Punctuation | None = None
    punctuation_out: Punctuation | None = None
    extra: dict[str, int] = field(default_factory=dict)
    feedback: dict[str, int] = field(default_factory=dict)
    """What feedback did here: rows stopped by place, state let go, messages by their fate."""
    observed: Tallies = field(default_factory=dict)
    """What `observe` counts, by the user's names."""

    @property
    def last_out(self) -> str:
        """The last punctuation that left."""
        return "" if self.punctuation_out is None else str(self.punctuation_out)

    def count_feedback(self, what: str, by: int = 1) -> None:
        """Adds to what feedback did here."""
        if by:
            self.feedback[what] = self.feedback.get(what, 0) + by


class Operator:
    """A step at work. Subclasses say what a page and a definite punctuation do."""

    speculate: Speculate = "arrival"
    """Whether results that may still change leave at once, once time has passed them, or not at all."""
    joined_bytes = 0
    """Up to how many bytes of pages that wait behind each other it takes as one; 0 for each by itself."""

    def __init__(self, ports: int = 1) -> None:
        self.promises = [Promises(tidy=True) for _ in range(ports)]
        self.secret = LOCAL.copied()
        """What the identities begin with that it saves; becomes the query's before anything comes."""
        self.counters = Counters()
        self.outbox: Outbox = NoOutbox()
        """Takes feedback for the operators above."""
        self.topics: tuple[str, ...] = ()
        """The attributes that the patterns of `feedback_for` name."""
        self.watched: list[Pattern] = []
        """Results that are given up as soon as they match, because they never cease to."""
        self.crossed: list[Pattern] = []
        """The results that have come to match since; the runtime takes them when a call is done."""
        self._saved = SavedJson("meta")
        self.rings: dict[str, Ring] = {}
        """The loops that this step stands on, innermost first."""
        self.around: list[Item] = []
        """What goes back around a loop that ends here; the runtime takes it when a call is done."""

    def attach(self, outbox: Outbox) -> None:
        """Takes its place in a graph: feedback goes to the operators above from now on."""
        self.outbox = outbox

    def keep_pace(self, speculate: Speculate) -> None:
        """Takes the pace of the query; only windows can be passed by time."""
        self.speculate = "arrival" if speculate == "passed" else speculate

    def page(self, port: int, page: Page) -> Iterable[Item]:
        """What leaves because these events came."""
        raise NotImplementedError

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        """What leaves because nothing matching the pattern can come any more."""
        raise NotImplementedError

    def signal(self, port: int, punctuation: Punctuation) -> Iterable[Item]:
        """What leaves because of a punctuation that is not definite."""
        ring = self.rings.get(punctuation.noted("loop"))
        if ring is not None and punctuation.intent is Intent.PROGRESS:
            return [punctuation]
        if ring is not None and punctuation.intent is Intent.SPECULATIVE:
            inner = [r for r in self.rings.values() if r is not ring and port in r.outside]
            if inner:
                return [inner[0].outer(port, punctuation)]
            return ring.guess(port, punctuation, self.promises)
        raise StreamError(
            f"the punctuation '{punctuation}' came to a step outside of any loop or claim.",
            remedy="Feed definite punctuation only; loops and claims make the other kinds themselves.",
        )

    def heed(self, sources: Sequence[tuple[int, ...]]) -> None:
        """Rows carry labels from now on, of these sources by port; who keeps rows may keep labels too."""

    def control(self, message: Punctuation) -> Iterable[Up]:
        """What goes further up because a consumer spoke. By default a message stops here."""
        self.counters.extra["control"] = self.counters.extra.get("control", 0) + 1
        return ()

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Lets go of the results that match and takes back what was sent of them.

        None where something sent may still change and can no longer be taken back: it must be corrected,
        so its input is still needed.
        """
        return None

    def let_go(self, port: int, pattern: Pattern) -> GivenUp:
        """Lets go of an input's rows that match and have nothing to correct."""
        return GivenUp([], MIN_TIME)

    def prefer(self, patterns: list[Pattern]) -> None:
        """Rows that match are wanted first, of what waits here; takes the place of the patterns before."""

    def begin(self) -> None:
        """Another epoch begins; a budget for one is there again."""

    @property
    def pending(self) -> bool:
        """Whether rows wait here that need no further input to leave: they are still in flight."""
        return False

    def flush(self) -> Iterable[Item]:
        """Lets out what is pending, before a token."""
        return ()

    def resume(self) -> Iterable[Item]:
        """What leaves because pending work was taken up, where nothing has come since `begin`."""
        return ()

    def demand(self, pattern: Pattern) -> Iterable[Item]:
        """What there is now of rows that match, marked as partial; it is corrected later."""
        return ()

    def punctuation(self, port: int, item: Punctuation) -> Iterable[Item]:
        """Takes a punctuation; one that says nothing new ends here."""
        if item.intent is not Intent.DEFINITE:
            return self.signal(port, item)
        known = self.promises[port]
        before = known.cti
        if not known.add(item.pattern):
            return ()
        items = list(self.definite(port, item.pattern))
        if known.cti > before and item.pattern != Pattern.before(known.cti):
            items += self.definite(port, Pattern.before(known.cti))  # several together speak of all
        if known.cti > before:
            items += self.progressed(port)
        return items

    def feedback_for(self, page: Page) -> Iterable[Punctuation]:
        """The feedback for a page, for the operator above; asked for only where it still matters."""
        return ()

    def progressed(self, port: int) -> list[Item]:
        """What a loop gets when an input from outside it has come further."""
        items: list[Item] = []
        for ring in self.rings.values():
            if port in ring.outside:
                items += [ring.progress(port, self.promises), *ring.release(self.promises)]
        return items

    def states(self) -> Mapping[str, RowState]:
        """The row states that make up this operator's memory."""
        return {}

    def page_to(self, pages: StatePages) -> None:
        """From now on wide values of its rows beyond a budget lie on the disk; before anything comes."""
        for state in self.states().values():
            state.page_to(pages)

    def meta(self) -> dict[str, Any]:
        """What else must survive, as JSON; extended by subclasses."""
        counted = [self.counters.rows_in, self.counters.rows_out]
        own: dict[str, Any] = {"promises": [p.to_json() for p in self.promises], "rows": counted}
        last = self.counters.punctuation_out
        if last is not None and last.intent is Intent.DEFINITE:
            own["last out"] = Punctuation(last.pattern).to_json()
        if self.rings:
            own["rings"] = {loop: ring.to_json() for loop, ring in self.rings.items()}
        return own

    def remember(self, meta: dict[str, Any]) -> None:
        """Takes back what `meta` gave."""
        self.promises = [Promises.from_json(p, tidy=True) for p in meta["promises"]]
        self.counters.rows_in, self.counters.rows_out = meta["rows"]
        if "last out" in meta:
            self.counters.punctuation_out = Punctuation.from_json(meta["last out"])
        for loop, data in meta.get("rings", {}).items():
            self.rings[loop].remember(data)

    def rebuild(self) -> None:
        """Derives indexes again after the row states were restored."""

    def snapshot(self) -> Chunks:
        """The chunks that changed since the last snapshot; None for one that is gone."""
        chunks = self._saved.changed(self.meta())
        for name, state in self.states().items():
            for part, data in state.snapshot().items():
                chunks[f"{name}/{part}"] = data
        return chunks

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes the state that these chunks hold."""
        for name, state in self.states().items():
            state.restore(under(f"{name}/", chunks))
        self.remember(self._saved.read(chunks))
        self.rebuild()

    def drain_notes(self) -> pa.Table | None:
        """What this step has to say of single rows since the last call, with reasons; None for nothing."""
        return None

    def measure(self) -> Counters:
        """The counters, with the state as it is now."""
        states = self.states().values()
        self.counters.state_rows = sum(s.live for s in states)
        self.counters.state_bytes = sum(s.nbytes for s in states)
        return self.counters


def definite(pattern: Pattern | None) -> list[Item]:
    """A definite punctuation as output; nothing where there is no pattern."""
    return [] if pattern is None else [Punctuation(pattern, Intent.DEFINITE)]


class AlignedOperator(Operator):
    """A step whose output is promised what all of its inputs promise."""

    def __init__(self, ports: int) -> None:
        super().__init__(ports)
        self.alignment = Alignment(range(ports))

    def aligned(self, port: int, pattern: Pattern | None) -> list[Item]:
        """What the inputs together promise after one of them spoke."""
        if pattern is None:
            return []
        return [Punctuation(p, Intent.DEFINITE) for p in self.alignment.add(port, pattern)]

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "alignment": self.alignment.to_json()}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self.alignment = Alignment.from_json(meta["alignment"])
