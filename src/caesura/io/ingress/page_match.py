"""One page with retracts against the versions that are live: what leaves, what is settled, what waits."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events import NO_NEW_END, Page, concat, identity, take_rows
from caesura.events.columns import empty_rows
from caesura.events.identity import Secret, identity_at
from caesura.io.ingress.match_kernels import (
    BEGIN,
    COUNT,
    K1,
    K2,
    NEW,
    START,
    SYNC,
    WAITS,
    Matrix,
    match_events,
)
from caesura.io.ingress.run_kernels import pair_same, pair_up, take_found
from caesura.io.ingress.runs import NOTHING, InsertRun, RetractTargets, keys_of, new_index
from caesura.kernels.hashing import I64, U64, Mask
from caesura.punctuation import MIN_TIME

if TYPE_CHECKING:
    from caesura.io.ingress.matching import Matcher


class Origin(NamedTuple):
    """Where rows come from."""

    lane: int
    offsets: I64


MAX_ROUNDS = 16
"""So many versions of the same lifetime are looked at for a retract, one after the other."""


class NamedRetracts:
    """The retracts of a page, as who looks for their versions: by comparing payloads, or by key."""

    def __init__(self, payload: pa.RecordBatch, run: InsertRun, secret: Secret) -> None:
        self.payload, self.run, self._secret = payload, run, secret
        self.left = np.arange(len(run.retracts))
        """Those that have found no version yet, as numbers among all."""
        self.taken: list[tuple[InsertRun, I64]] = []
        """The rows of runs that were taken, whose counts have gone down already."""

    @cached_property
    def keys(self) -> tuple[I64, I64]:
        return keys_of(self._ids, self.run.named[0], self.run.named[1])

    @cached_property
    def _ids(self) -> tuple[U64, U64]:
        return identity_at(self.payload.columns, self.run.retracts, self._secret)

    def take_from(self, other: InsertRun) -> bool:
        """Pairs those that are left with versions of a run; False where there are too many to look at."""
        if not other.ordered:
            wants = self._targets(self.left)
            found = other.scan(wants)
            return found is not None and self._pair(other, wants, *found)
        if not self._find(other):
            return False
        if len(self.left) == 0 or other.strays.shape[1] == 0:
            return True
        wants = self._targets(self.left)
        return self._pair(other, wants, *other.scan_strays(wants))

    def give_back(self) -> None:
        """Leaves the versions of runs as they were."""
        for run, used in self.taken:
            np.add.at(run.counts, used, 1)

    def _targets(self, who: I64) -> RetractTargets:
        le, re, _ = self.run.named
        return RetractTargets(le[who], re[who], lambda: np.column_stack([k[who] for k in self.keys]))

    def _rows(self, other: InsertRun) -> I64:
        """Where the retracts are, if that matters: what is behind one in its page it cannot name."""
        return self.run.retracts if other is self.run else NOTHING

    def _find(self, other: InsertRun) -> bool:
        """Pairs with versions that came in the order of time."""
        who, gone = self.left, [NOTHING]
        since = np.zeros(len(self.run.retracts), np.int64)
        for number in range(MAX_ROUNDS):
            if number == 0 and other is self.run:
                found = other.first
            else:
                found = other.find(self.run.named, self._rows(other), who, since)
            if found is None:
                return False
            same = self._same(other, found, who)
            used, again, left = (np.empty(len(who), np.int64) for _ in range(3))
            took, more, none = take_found(who, found, same, other.counts, since, used, again, left)
            self.taken.append((other, used[:took]))
            gone.append(left[:none])
            who = again[:more]
            if more == 0:
                self.left = np.concatenate(gone)
                return True
        return False

    def _same(self, other: InsertRun, found: I64, who: I64) -> Mask:
        """Whether what was found has the payload of the retracts; of what was not, nothing is said."""
        picked = np.maximum(found, 0)
        known = other.equals(picked, self.run, self.run.retracts[who])
        if known is not None:
            return known
        theirs = identity_at(other.payload.columns, picked, self._secret)
        mine = self._ids
        same: Mask = (theirs[0] == mine[0][who]) & (theirs[1] == mine[1][who])
        return same

    def _pair(self, other: InsertRun, wants: RetractTargets, picked: I64, whom: I64) -> bool:
        """Pairs with the versions among those picked, each with another."""
        left, rows = self.left, self._rows(other)
        rows = rows[left] if len(rows) else NOTHING
        used, done = np.empty(len(picked), np.int64), np.zeros(len(left), np.bool_)
        same = None
        if wants.doubled == 0:
            same = other.equals(picked, self.run, self.run.retracts[left[whom]])
        if same is not None:
            count = pair_same(picked, whom, same, rows, done, used)
        else:
            k1, k2 = self.keys
            mine = k1[left], k2[left]
            count = pair_up(picked, whom, *other.keys(picked), *mine, wants.follow, rows, done, used)
        other.counts[used[:count]] -= 1
        self.taken.append((other, used[:count]))
        self.left = left[~done]
        return True


class PageMatch:
    """A page with retracts, or while retracts wait: the few versions and retracts that matter, as tables."""

    def __init__(self, matcher: Matcher, page: Page, starts: I64, run: InsertRun) -> None:
        self.matcher, self.page, self.starts, self.rows, self.named = (
            matcher,
            page,
            starts,
            run.retracts,
            run.named,
        )
        self.old = np.flatnonzero(matcher.held.alive)
        self.payload = take_rows(page.payload, self.rows)
        """Of the retracts at hand."""
        self.retracts, self.brought, wants = self._retracts()
        self.numbers = matcher.indexed(self.retracts)
        self.picked = [(run, rows) for run in matcher.runs if len(rows := run.named_by(wants))]
        self.versions = self._versions()

    def _retracts(self) -> tuple[Matrix, Matrix, RetractTargets]:
        """Those that wait, then those at hand; the keys of the versions that they bring; what they name."""
        rows, held = self.rows, self.matcher.held.get
        le, re, new = self.named
        ids = identity(self.payload.columns, len(rows), self.matcher.secret)
        parts: list[tuple[str, I64]] = [("sync", np.minimum(re, new)), ("new", new), ("le", le), ("re", re)]
        parts += zip(("k1", "k2", "n1", "n2"), (*keys_of(ids, le, re), *keys_of(ids, le, new)), strict=True)
        waiting = len(self.old)
        joined = {n: np.concatenate([held(n)[self.old], v]) if waiting else v for n, v in parts}
        table = np.zeros((waiting + len(rows), 6), np.int64)
        for place, name in ((K1, "k1"), (K2, "k2"), (SYNC, "sync"), (NEW, "new"), (START, "le")):
            table[:, place] = joined[name]
        table[:waiting, WAITS] = 1
        return (
            table,
            np.column_stack([joined["n1"], joined["n2"]]),
            RetractTargets(joined["le"], joined["re"], lambda: table),
        )

    def _versions(self) -> Matrix:
        """The indexed ones, those of runs with the page's own at last, then what retracts would bring."""
        state, numbers = self.matcher.live, self.numbers
        count = len(numbers) + sum(len(rows) for _, rows in self.picked)
        table = np.full((count + len(self.retracts), 4), MIN_TIME, np.int64)
        table[count:, : K2 + 1] = self.brought
        table[count:, COUNT] = 0
        at = len(numbers)
        if at:
            table[:at, K1], table[:at, K2] = state.get("k1")[numbers], state.get("k2")[numbers]
            table[:at, COUNT] = state.get("count")[numbers]
            if self.matcher.adjusts:
                table[:at, BEGIN] = state.get("begin")[numbers]
        for run, rows in self.picked:
            part = table[at : at + len(rows)]
            part[:, K1], part[:, K2] = run.keys(rows)
            part[:, COUNT] = run.counts[rows]
            if self.matcher.adjusts:
                part[:, BEGIN] = run.begin[rows]
            at += len(rows)
        return table

    def run(self, cti: I64) -> bool:
        """Matches; False if that cannot be done without knowing the bounds."""
        inserts = NOTHING
        if self.picked and self.picked[-1][0] is self.matcher.runs[-1]:
            inserts = self.picked[-1][1]
        freed = np.empty((len(self.retracts), 2), np.int64)
        slots, waits = new_index(len(self.versions)), new_index(len(self.retracts))
        count = match_events(inserts, self.rows, cti, self.versions, self.retracts, freed, slots, waits)
        self.freed = freed[: max(count, 0)]
        return count >= 0

    def finish(self, origin: Origin) -> Page | None:
        """Tells the matcher what became of it all; gives what leaves."""
        result = self._leaving(self.freed)
        self._settle()
        self._hold(origin)
        self.matcher.release(self.old[self.retracts[: len(self.old), WAITS] == 0])
        return result

    def _settle(self) -> None:
        """Writes back what became of versions, and adds those that retracts brought."""
        at = len(self.numbers)
        if at:
            self.matcher.settle(self.numbers, self.versions[:at, COUNT], self.versions[:at, BEGIN])
        for run, rows in self.picked:
            part = self.versions[at : at + len(rows)]
            run.counts[rows] = part[:, COUNT]
            if self.matcher.adjusts:
                run.begin[rows] = part[:, BEGIN]
            at += len(rows)
        some = np.flatnonzero(self.versions[at:, COUNT])
        if len(some) == 0:
            return
        brought = self.versions[at:][some]
        fields = {"k1": brought[:, K1], "k2": brought[:, K2], "re": self.retracts[some, NEW]}
        fields |= {"count": brought[:, COUNT], "begin": brought[:, BEGIN]}
        self.matcher.live.append(fields, self._payload(some) if self.matcher.live.payload.columns else None)

    def _payload(self, retracts: I64) -> pa.RecordBatch:
        """The payload of some retracts, ascending."""
        waiting = len(self.old)
        split = int(np.searchsorted(retracts, waiting))
        mine = take_rows(self.payload, retracts[split:] - waiting)
        if split == 0:
            return mine
        return pa.concat_batches([self.matcher.held.payload.take(self.old[retracts[:split]]), mine])

    def _hold(self, origin: Origin) -> None:
        """Keeps the retracts at hand that found no version."""
        waiting = len(self.old)
        mine = np.flatnonzero(self.retracts[waiting:, WAITS])
        if len(mine) == 0:
            return
        table, rows = self.retracts[waiting:][mine], self.rows[mine]
        fields = {"k1": table[:, K1], "k2": table[:, K2], "sync": table[:, SYNC], "new": table[:, NEW]}
        fields["n1"], fields["n2"] = self.brought[waiting:][mine].T
        fields |= {"le": self.named[0][mine], "re": self.named[1][mine], "offset": origin.offsets[rows]}
        fields["lane"] = np.full(len(rows), origin.lane)
        self.matcher.held.append(fields, take_rows(self.payload, mine))

    def _leaving(self, freed: Matrix) -> Page | None:
        """The page with its starts, without the retracts that wait, and with those released."""
        waiting = len(self.old)
        mine, held = self.retracts[waiting:], self.matcher.held
        le = self.starts
        if self.matcher.adjusts and len(self.rows):
            le = le.copy()
            le[self.rows] = mine[:, START]
        page = started(self.page, le)
        away = np.concatenate(
            [self.rows[mine[:, WAITS] == 1], self.rows[freed[freed[:, 1] >= waiting, 1] - waiting]]
        )
        if len(away) == 0 and len(freed) == 0:
            return page
        stay = np.setdiff1d(np.arange(len(page)), away)
        foreign = freed[:, 1] < waiting
        numbers = self.old[freed[foreign, 1]]
        payload = held.payload.take(numbers) if len(self.matcher.schema) else empty_rows(len(numbers))
        start = self.retracts[freed[foreign, 1], START]
        end, new = held.get("re")[numbers], np.maximum(held.get("new")[numbers], start)
        both = concat([page, Page.of(payload, le=start, re=end, re_new=new)], page.schema)
        source = np.empty(len(freed), np.int64)
        source[foreign] = len(page) + np.arange(len(numbers))
        source[~foreign] = self.rows[freed[~foreign, 1] - waiting]
        order = np.argsort(np.concatenate([stay, freed[:, 0]]), kind="stable")
        rows = np.concatenate([stay, source])[order]
        return both.take(rows) if len(rows) else None


def started(page: Page, le: I64) -> Page:
    """The page with these starts; no new end is before one."""
    if le is page.le or np.array_equal(le, page.le):
        return page
    if page.re_new is None:
        return Page(le, page.re, page.payload)
    ends = np.where(page.re_new == NO_NEW_END, NO_NEW_END, np.maximum(page.re_new, le))
    return Page.of(page.payload, le=le, re=page.re, re_new=ends)
