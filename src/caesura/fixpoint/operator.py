"""The FFP operator: passes events out and around, and circulates guesses about its own progress.

It sits where a loop closes. Port 0 is the seed, port 1 the loop's own result. Events leave at once,
to the output and around the loop; nothing waits while a guess is on its way (section 3.4). A guess
that comes back tells how far the loop has got; the definite punctuation that it proves goes to the
output and around the loop, where it frees state.

Law: nothing that follows a definite punctuation contradicts it, and progress outside is followed by
progress of the output as soon as the events before it have run their course.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.item import Item
from caesura.events.page import Page
from caesura.fixpoint.node import CUT, RANK, Fixpoint
from caesura.fixpoint.progress import Guessing
from caesura.kernels.hashing import I64
from caesura.plan import Operator
from caesura.plan.ring import bound
from caesura.punctuation import INFINITY, MIN_TIME, Intent, Pattern, Punctuation, cti

SEED, BODY = 0, 1


class FlyingFixpoint(Operator):
    """A loop in which every derivation is a row of its own."""

    def __init__(self, node: Fixpoint) -> None:
        super().__init__(2)
        self.node = node
        self.loop = node.loop
        self.guessing = Guessing(node.progress, ["seed"])
        self.outer: dict[str, dict[str, tuple[int, Punctuation]]] = {}
        """Guesses of outer loops, by loop and by where they entered this one."""
        self.entrances: dict[str, tuple[str, ...]] = {}
        """Where an outer loop's guess enters this loop; set when the loop is closed."""
        self._serving: str | None = None
        """The outer loop for which a guess of its own is on its way; this loop's own may be lodged."""
        self._met = INFINITY
        """The earliest event since that guess left."""
        self._waiting: dict[str, int] = {}
        """Outer guesses that lodge here, with how far this loop's own inputs had come then."""
        self._lodged: Punctuation | None = None
        self.across = False
        """Whether what the loop derives crosses buckets: then there is one guess per epoch, for all."""
        self._silent = 0
        self.counters.extra.update(guesses=0, definite=0, rounds=0, lag=0, silence=0)
        self._earliest = INFINITY
        """The earliest event, where explicit progress begins as long as nothing is definite."""

    def close_loop(self, entries: Iterable[str], entrances: Mapping[str, tuple[str, ...]]) -> None:
        """Told once, when the graph is built: where progress comes from outside, and outer guesses."""
        state = self.guessing.state
        state.entries = {name: state.entries.get(name, MIN_TIME) for name in ("seed", *entries)}
        self.entrances = dict(entrances)

    # Events.

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        self._note(page.sync, port)
        items = self._pass(port, page)
        self._guess()
        return items

    def _note(self, sync: I64, port: int) -> None:
        self.guessing.saw(int(sync.min()), int(sync.max()))
        self._met = min(self._met, int(sync.min()))
        self._earliest = min(self._earliest, int(sync.min()))
        extra = self.counters.extra
        extra["rounds"] += port == BODY
        self._silent += len(sync)
        extra["silence"] = max(extra["silence"], self._silent)
        self._lag()

    def _pass(self, port: int, page: Page) -> list[Item]:
        """The events, to the output and around the loop."""
        self._silent = 0
        if not self.node.ranked:
            self.around.append(page)
            return [page]
        rounds = np.zeros(len(page), np.int64)
        if port == BODY:
            rounds = page.payload.column(RANK).to_numpy() + 1
            page = page.with_payload(page.payload.drop_columns([RANK]))
        assert self.node.max_rounds is not None
        cut = rounds > self.node.max_rounds
        going = page.filter(~cut)
        if len(going):
            ranks = pa.array(rounds[~cut])
            self.around.append(going.with_payload(going.payload.append_column(RANK, ranks)))
        self.counters.extra["cut"] = self.counters.extra.get("cut", 0) + int(cut.sum())
        return [page.with_payload(page.payload.append_column(CUT, pa.array(cut)))]

    # Progress.

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        """A promise on the seed is external progress; the loop's own promises come from here."""
        return []

    def progressed(self, port: int) -> list[Item]:
        if port != SEED:
            return []
        items = super().progressed(port)
        self.guessing.external("seed", self.promises[SEED].cti)
        if self._lodged is not None and bound(self._lodged) <= self.promises[SEED].cti:
            lodged, self._lodged = self._lodged, None
            return [*items, *self._returned(lodged)]
        return [*items, *self._guess()]

    def signal(self, port: int, punctuation: Punctuation) -> Iterable[Item]:
        mine = punctuation.noted("loop") == self.loop
        if punctuation.intent is Intent.PROGRESS:
            return self._external(punctuation) if mine else [punctuation]
        if punctuation.intent is not Intent.SPECULATIVE:
            return super().signal(port, punctuation)
        if not mine:
            return self._outer(f"seed:{port}", punctuation)
        return self._returned(punctuation)

    def _external(self, item: Punctuation) -> list[Item]:
        outer = item.noted("outer")
        if outer is not None:
            guess = Punctuation(item.pattern, Intent.SPECULATIVE, _as_outer(item, outer))
            return self._outer(item.noted("at"), guess)
        self.guessing.external(item.noted("at"), bound(item))
        inner = [self._inside(loop) for loop in self.rings if self.inner_entries(loop)]
        return [*inner, *self._guess()]

    def inner_entries(self, outer: str) -> list[str]:
        """The inputs of this loop, but for the seed, that an outer loop does not reach."""
        reached = {"seed", *self.entrances.get(outer, ())}
        return [name for name in self.guessing.state.entries if name not in reached]

    def _independent(self, outer: str) -> int:
        """How far the inputs of this loop that an outer one does not reach have come."""
        entries = self.guessing.state.entries
        names = self.inner_entries(outer)
        names += [] if "seed:0" in self.entrances.get(outer, ()) else ["seed"]
        return min((entries[name] for name in names), default=INFINITY)

    def _inside(self, outer: str) -> Punctuation:
        """How far the inputs of this loop have come, for an outer loop that this one stands on."""
        entries = self.guessing.state.entries
        least = min(entries[name] for name in self.inner_entries(outer))
        note = (("loop", outer), ("at", f"{self.rings[outer].step}:inside"))
        return Punctuation(Pattern.before(least), Intent.PROGRESS, note)

    def _outer(self, at: str, guess: Punctuation) -> list[Item]:
        """An outer loop's guess has reached one of its entrances."""
        self.outer.setdefault(guess.noted("loop"), {})[at] = (bound(guess), guess)
        return self._guess()

    def _guess(self) -> list[Item]:
        """Sends a guess around if there is something to learn and none is on its way."""
        if self._serving is None:
            self._serve()
        t = None if self.across else self.guessing.wants()
        if t is not None:
            self._launch(t, lodge=self.guessing.lodges and t < INFINITY)
        self._held()
        return []

    def _serve(self) -> None:
        """Sends a guess around for an outer loop whose own has come in by every entrance."""
        for loop, came in self.outer.items():
            waits = self._waiting.get(loop) == self._independent(loop)
            if not waits and set(self.entrances.get(loop, ())) <= set(came):
                self._serving, self._met = loop, self._unsent
                self._send(INFINITY, (("for", loop),))
                return

    def end_epoch(self, *, losing: bool) -> list[Item]:
        """All of an epoch has come: the guess for all buckets leaves, behind what there is to send.

        ``losing`` says that some bucket took rows back in the epoch before.
        """
        self._launch(INFINITY, lodge=False)
        return []

    @property
    def report(self) -> tuple[int, bool, bool]:
        """For the other buckets: how far the seed has come, or the earliest change not sent yet; whether
        rows were taken back; whether another epoch is needed even if nothing comes.
        """
        return min(self._unsent, self.promises[SEED].cti), False, False

    @property
    def retracting(self) -> bool:
        """Whether rows are being taken back, for which what is to be added waits."""
        return False

    @property
    def _unsent(self) -> int:
        """The earliest change that has come and is not yet on its way around."""
        return INFINITY

    def _launch(self, t: int, *, lodge: bool) -> None:
        self.guessing.launch(t)
        self._send(t, (("lodge", True),) if lodge else ())

    def _send(self, t: int, more: tuple[tuple[str, Any], ...]) -> None:
        self.counters.extra["guesses"] += 1
        self.guessing.state.number += 1
        note = (("loop", self.loop), ("guess", self.guessing.state.number), *more)
        self.around.append(Punctuation(Pattern.before(t), Intent.SPECULATIVE, note))

    def _returned(self, item: Punctuation) -> list[Item]:
        """What a guess that came back proves, and the next one."""
        if item.noted("for") is not None:
            return self._served(item)
        if item.noted("lodge") and self.promises[SEED].cti < bound(item):
            self._lodged = item
            return []
        before = self.guessing.state.given
        t = self.guessing.returned(min(bound(item), self.promises[SEED].cti))
        items = [] if t is None else self._settle(before, t)
        return [*items, *self._guess()]

    def _settle(self, before: int, t: int) -> list[Item]:
        """A definite punctuation, out and around; the end of all time comes behind the last time named."""
        furthest = self.guessing.state.furthest
        promises: list[Item] = [cti(furthest)] if t == INFINITY and furthest > before else []
        promises.append(cti(t))
        self.around += promises
        self.counters.extra["definite"] += 1
        self._lag()
        return promises

    def _served(self, item: Punctuation) -> list[Item]:
        """A guess for an outer loop came back: if it is confirmed the outer guess goes on."""
        assert self._serving is not None
        loop, self._serving = self._serving, None
        came = self.outer[loop]
        seed = [t for at, (t, _) in came.items() if at.startswith("seed:")]
        t = min([bound(item), *(seed or [self.promises[SEED].cti])])
        if min(self._met, self._unsent) < t:
            return self._guess()
        passing = next(iter(came.values()))[1]
        if passing.noted("lodge") and t < min(at for at, _ in came.values()):
            self._waiting[loop] = self._independent(loop)
            return self._guess()
        del self.outer[loop]
        self._waiting.pop(loop, None)
        out = Punctuation(Pattern.before(t), Intent.SPECULATIVE, passing.note)
        return [*self._all_sent(), out, *self._guess()]

    def _all_sent(self) -> list[Item]:
        """What must leave before a guess does."""
        return []

    def _lag(self) -> None:
        """How far, in ticks, definite punctuation is behind the latest event; none is at the earliest."""
        state = self.guessing.state
        given = state.given if state.given > MIN_TIME else self._earliest
        known = state.high > MIN_TIME and given < INFINITY
        self.counters.extra["lag"] = max(0, state.high - given) if known else 0

    def _held(self) -> None:
        outside, given = self.guessing.outside, self.guessing.state.given
        waits = outside == MIN_TIME or (outside <= given and self.guessing.state.high >= given)
        self.counters.held_by = f"no progress at {self.guessing.behind}" if waits and given < INFINITY else ""

    def meta(self) -> dict[str, Any]:
        lodged = None if self._lodged is None else self._lodged.to_json()
        own = {
            "guessing": self.guessing.to_json(),
            "lodged": lodged,
            "serving": [self._serving, self._met],
            "waiting": self._waiting,
            "outer": {o: {at: [t, g.to_json()] for at, (t, g) in c.items()} for o, c in self.outer.items()},
        }
        return {**super().meta(), **own}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self.guessing.remember(meta["guessing"])
        self._lodged = None if meta["lodged"] is None else Punctuation.from_json(meta["lodged"])
        (self._serving, self._met), self._waiting = meta["serving"], meta["waiting"]
        self.outer = {
            o: {at: (t, Punctuation.from_json(g)) for at, (t, g) in c.items()}
            for o, c in meta["outer"].items()
        }


def _as_outer(item: Punctuation, loop: str) -> tuple[tuple[str, Any], ...]:
    notes = tuple((name, value) for name, value in item.note if name in ("guess", "lodge"))
    return (("loop", loop), *notes)
