"""Joins that find chances: `thrifty` says what can meet nothing, `impatient` what would meet something now.

     left:   nothing on [20, 40), and that is settled   ->   the right need not make rows on [20, 40)
     right:  rows with key 3 wait                       ->   the left is asked for key 3 first

Both hold for inner joins, where a row that meets nothing leaves no trace. (Thesis, section 3.1.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.item import Item
from caesura.events.page import Page
from caesura.feedback.messages import WITHDRAWN, assumed
from caesura.kernels.hashing import I64
from caesura.ops.join.node import Join
from caesura.ops.join.physical import JoinOperator
from caesura.punctuation import MIN_TIME, Intent, Pattern, Punctuation, one_of

KEYS_LIMIT = 100
"""More keys than this are not asked for by name."""
STRETCHES_LIMIT = 64
"""Of so many stretches with rows half are kept apart."""
STANDING_LIMIT = 16
"""So many keys that were asked for stand at a time, for each side."""


def stretches(starts: I64, ends: I64) -> tuple[I64, I64]:
    """Where there is any of these lifetimes, as stretches apart; of very many the widest gaps are kept.

    A gap less is a chance less, and no feedback is wrong.

    >>> [part.tolist() for part in stretches(np.array([7, 1, 2]), np.array([8, 2, 5]))]
    [[1, 7], [5, 8]]
    """
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    apart = np.flatnonzero(starts[1:] > reach[:-1])
    if len(apart) >= STRETCHES_LIMIT:
        wide = starts[apart + 1].astype(np.float64) - reach[apart]
        apart = np.sort(apart[np.argsort(-wide, kind="stable")[: STRETCHES_LIMIT // 2]])
    return starts[np.append(0, apart + 1)], reach[np.append(apart, len(starts) - 1)]


class SeekingJoin(JoinOperator):
    """A join that sends feedback to its inputs."""

    def __init__(self, node: Join) -> None:
        super().__init__(node)
        nothing: I64 = np.zeros(0, np.int64)
        self._ahead = [(nothing, nothing), (nothing, nothing)]
        """Per side, the stretches with rows that start past what is settled, apart and in order."""
        self._until = [MIN_TIME, MIN_TIME]
        """Per side, the latest end of rows that start in the settled past."""
        self._sent_until = [MIN_TIME, MIN_TIME]
        self._wanted: list[list[Pattern]] = [[], []]
        """Per side that was asked, what stands of it, oldest first; what is older was withdrawn."""

    def meta(self) -> dict[str, Any]:
        ahead = [[starts.tolist(), ends.tolist()] for starts, ends in self._ahead]
        wanted_keys = [[p.to_json() for p in some] for some in self._wanted]
        own = {"ahead": ahead, "until": self._until, "sent until": self._sent_until, "wanted": wanted_keys}
        return {**super().meta(), **own}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._ahead = [
            (np.array(starts, np.int64), np.array(ends, np.int64)) for starts, ends in meta["ahead"]
        ]
        self._until, self._sent_until = meta["until"], meta["sent until"]
        self._wanted = [[Pattern.from_json(p) for p in some] for some in meta["wanted"]]

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if self.node.thrifty and len(page):
            starts, ends = self._ahead[port]
            latest = page.re if page.re_new is None else np.maximum(page.re, page.re_new)
            self._ahead[port] = stretches(np.append(starts, page.le), np.append(ends, latest))
        if self.node.impatient and len(page):
            self._ask(port, page)
        return super().page(port, page)

    def _ask(self, port: int, page: Page) -> None:
        """Asks the other side for the keys that came here."""
        wanted = {}
        for mine, theirs in zip(self.names[port], self.names[1 - port], strict=True):
            if pa.types.is_nested(page.schema.field(mine).type):
                continue  # no pattern speaks of what is inside
            keys = page.payload.column(mine).unique().drop_null()
            if len(keys) > KEYS_LIMIT:
                return
            wanted[theirs] = one_of(keys.to_pylist())
        if wanted:
            self._want(1 - port, Pattern(**wanted))

    def _want(self, port: int, wanted: Pattern) -> None:
        """Asks one side; of many requests the oldest is withdrawn: what it was for has come, or not."""
        standing = self._wanted[port]
        if wanted in standing:
            return
        standing.append(wanted)
        self.outbox.send(port, Punctuation(wanted, Intent.DESIRED))
        if len(standing) > STANDING_LIMIT:
            self.outbox.send(port, Punctuation(standing.pop(0), Intent.DESIRED, ((WITHDRAWN, True),)))

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        if self.node.thrifty:
            self._find_gap(port)
        return super().definite(port, pattern)

    def _find_gap(self, port: int) -> None:
        """Says to the other side on which settled stretch this one has nothing."""
        settled = self.promises[port].cti
        starts, ends = self._ahead[port]
        past = starts < settled
        begin = max(self._until[port], int(ends[past].max(initial=MIN_TIME)))
        self._until[port] = begin
        self._ahead[port] = starts[~past], ends[~past]
        begin = max(begin, self._sent_until[port])
        if begin >= settled:
            return
        self._sent_until[port] = settled
        pattern = self.node.gap(1 - port, begin, settled)
        if pattern is not None:
            self.outbox.send(1 - port, assumed(pattern))
