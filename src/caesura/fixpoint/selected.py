"""A loop that keeps each row once, or the best row per key: in waves, so that no cycle feeds itself.

What comes is gathered until the marker behind the last wave is back; then all that followed from that
wave is here. First every row goes that no less deep derivation supports any more (it may owe its
support to itself); only when no such row is left do rows come, each one deeper than the derivation it
comes from. So a row of the loop always rests on less deep ones, down to the seed.

     a -> b,  b -> c,  c -> b      b has depth 0 (from the seed), c has 1, b again from c: depth 2
     a -> b is deleted             b loses its support of depth 0, that of depth 2 does not carry it: b
                                   goes, then c, and nothing comes back

Law: at every instant the rows of the loop are the least solution. The rows that a change touches are
those whose derivations it changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.fixpoint.node import RANK, Fixpoint
from caesura.fixpoint.operator import BODY, SEED, FlyingFixpoint
from caesura.fixpoint.state import LoopState
from caesura.kernels.hashing import I64
from caesura.plan.operator import GivenUp
from caesura.plan.ring import bound
from caesura.punctuation import INFINITY, MIN_TIME, Intent, Pattern, Punctuation

WAVES_LIMIT = 64
"""So many waves go around before what they did is given out although more is to come."""
NOTHING: I64 = np.zeros(0, np.int64)


class SelectedFixpoint(FlyingFixpoint):
    """A loop in which rows count once."""

    def __init__(self, node: Fixpoint) -> None:
        super().__init__(node)
        assert node.keep is not None
        self.state = LoopState(node.plain, node.keep)
        self._fresh: list[I64] = []
        """Keys that something came for since they were last looked at."""
        self._pending: list[I64] = []
        """Keys that were looked at for losses, and not yet for gains."""
        self._since = INFINITY
        """The earliest change that is not yet on its way around."""
        self._changed: list[tuple[I64, int]] = []
        """Keys whose rows in the loop changed since they were given out, and from when."""
        self._waving = False
        self._lost = False
        """Whether the last wave took rows back."""
        self._changes_left = False
        self._waves = 0
        self._settled = MIN_TIME
        """Before it, nothing is kept any more."""
        self.counters.extra.update(waves=0, touched=0)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        self._note(page.sync, port)
        depth = np.full(len(page), -1, np.int64)
        if port == BODY:
            depth = page.payload.column(RANK).to_numpy()
            page = page.with_payload(page.payload.drop_columns([RANK]))
        self._fresh.append(self.state.take(page, depth))
        self._since = min(self._since, int(page.sync.min()))
        self.counters.extra["touched"] += len(page)
        if self._busy or self.across:
            return []
        wave, _ = self._turn()
        return self._go_on(wave)

    def end_epoch(self, *, losing: bool) -> list[Item]:
        """One wave per epoch; rows come only when no bucket has taken any back in the epoch before.

        What the wave did leaves with it: if nothing follows from it, no other epoch may come.
        """
        wave, _ = self._turn(adding=not losing)
        if wave is not None:
            self.around.append(wave)
        items = [] if self._pending else self._send_changes(INFINITY)
        self._tidy()
        self._launch(INFINITY, lodge=False)
        return items

    @property
    def report(self) -> tuple[int, bool, bool]:
        share, _, _ = super().report
        return share, self._lost, bool(self._pending)

    @property
    def _busy(self) -> bool:
        """Whether a wave is on its way, or a guess that serves as its marker."""
        return self._waving or (not self.guessing.lodges and self.guessing.state.circulating is not None)

    def _turn(self, *, adding: bool = True) -> tuple[Page | None, int]:
        """The next wave, and the earliest time at which anything may still change."""
        self._lost = False
        fresh = _united(self._fresh)
        self._fresh = []
        settled = self.guessing.state.given
        if len(fresh):
            page, lost, keys = self.state.advance(fresh, settled, adding=False)
            self._pending.append(fresh)
            if lost and page is not None:
                self._lost = True
                self._noted(page, keys)
                return page, min(self._since, int(page.sync.min()))
        if not adding:
            return None, self._since
        wanted = _united(self._pending)
        self._pending, self._since = [], INFINITY
        if len(wanted) == 0:
            return None, INFINITY
        page, _, keys = self.state.advance(wanted, settled, adding=True)
        if page is None or len(page) == 0:
            return None, INFINITY
        self._noted(page, keys)
        return page, int(page.sync.min())

    def _noted(self, page: Page, keys: I64) -> None:
        self._changed.append((keys, int(page.sync.min())))
        self.counters.extra["touched"] += len(page)
        self.counters.extra["waves"] += 1
        self._waves += 1

    def _go_on(self, wave: Page | None) -> list[Item]:
        """Sends a wave with its marker, or, when there is none, gives out what the waves did."""
        if wave is None:
            items = self._send_changes(INFINITY)
            self._tidy()
            return [*items, *self._guess()]
        self.around.append(wave)
        if self.guessing.lodges:
            self._waving = True
            note = (("loop", self.loop), ("wave", self.counters.extra["waves"]))
            self.around.append(Punctuation(Pattern.before(INFINITY), Intent.SPECULATIVE, note))
            self._guess()
        elif self.guessing.state.circulating is None:
            self._launch(INFINITY, lodge=False)
        many = self._waves >= WAVES_LIMIT and not self._pending
        return self._send_changes(INFINITY) if many else []

    @property
    def retracting(self) -> bool:
        return bool(self._pending)

    @property
    def _unsent(self) -> int:
        return self._since

    def _launch(self, t: int, *, lodge: bool) -> None:
        super()._launch(t, lodge=lodge)
        if self.guessing.lodges:
            self.guessing.state.earliest = self._since

    def _returned(self, item: Punctuation) -> list[Item]:
        if item.noted("wave"):
            self._waving = False
            wave, _ = self._turn()
            return self._go_on(wave)
        if self.across:
            return self._proved(item)
        if self.guessing.lodges or item.noted("for") is not None:
            return super()._returned(item)
        wave, earliest = self._turn()
        self.guessing.state.earliest = earliest
        before = self.guessing.state.given
        t = self.guessing.returned(min(bound(item), self.promises[SEED].cti))
        items = [] if t is None else self._settle(before, t)
        return [*items, *self._go_on(wave)]

    def _proved(self, item: Punctuation) -> list[Item]:
        """All buckets have come so far; what is not sent yet was in their reports."""
        before = self.guessing.state.given
        self.guessing.state.earliest = INFINITY
        t = self.guessing.returned(min(bound(item), self.promises[SEED].cti))
        return [] if t is None else self._settle(before, t)

    def _all_sent(self) -> list[Item]:
        return self._send_changes(INFINITY)

    def _settle(self, before: int, t: int) -> list[Item]:
        sent = self._send_changes(t)
        items = super()._settle(before, t)
        self.state.purge(t)
        self._settled = t
        self._tidy()
        return [*sent, *items]

    def _send_changes(self, before: int) -> list[Item]:
        """Gives out the rows of the keys that changed before a time."""
        due = [keys for keys, since in self._changed if since < before]
        keys = _united(due)
        if len(keys) == 0:
            return []
        self._changed = [(k, s) for k, s in self._changed if s >= before]
        self._silent, self._waves = 0, 0
        page = self.state.send(keys, self._settled)
        return [page] if len(page) else []

    def _tidy(self) -> None:
        if self.state.wasteful and not self._fresh and not self._pending and not self._changed:
            self.state.index()

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Nothing, once no row with these values is there that may still be replaced."""
        return None if self.state.holds(pattern) else GivenUp([], MIN_TIME)

    def states(self) -> dict[str, RowState]:
        return self.state.states()

    def rebuild(self) -> None:
        self.state.index()
        if self._since < INFINITY or self._changes_left:
            keys = self.state.keys()
            self._pending = [keys] if self._since < INFINITY else []
            self._changed = [(keys, MIN_TIME)]

    def meta(self) -> dict[str, Any]:
        own = {"waving": self._waving, "settled": self._settled, "since": self._since, "lost": self._lost}
        return {**super().meta(), **own, "changed": bool(self._changed)}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._waving, self._settled = meta["waving"], meta["settled"]
        self._since, self._lost, self._changes_left = meta["since"], meta["lost"], meta["changed"]


def _united(parts: list[I64]) -> I64:
    return np.unique(np.concatenate(parts)) if parts else NOTHING
