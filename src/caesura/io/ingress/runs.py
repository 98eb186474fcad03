"""The versions that pages brought, as they came: nothing is hashed until a retract may name it.

A run keeps the columns of its page, so adding one copies nothing, and forgetting one is letting go of it.
A retract names an event by start, end and payload. Rows that came in the order of time are found by their
start; else a run is looked through for the lifetime, and only rows that have it are compared or hashed. Where
that would be many rows, the run is hashed whole, once.

>>> page = Page.of(pa.record_batch({"p": ["P1", "P2", "P3", "P4"]}), le=[1, 3, 5, 5], re=[9, 9, 8, 9])
>>> run = InsertRun(page, page.le, LOCAL, adjusts=False)
>>> wants = RetractTargets(np.array([3]), np.array([9]), lambda: np.array([[5, 6]]))
>>> run.named_by(wants).tolist()
[1]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events import Page, take_rows
from caesura.events.columns import raw_parts, words
from caesura.events.identity import LOCAL, Secret, identity_at
from caesura.events.page import ChangedPage
from caesura.events.types import is_bytes, is_words
from caesura.io.ingress import match_kernels, open_kernels, run_kernels
from caesura.io.ingress.row_kernels import I8
from caesura.kernels.hashing import I64, U8, U64, Mask, frozen
from caesura.punctuation import INFINITY, MIN_TIME

DENSE = 4
"""A run is hashed whole when one row in so many may be named at once."""
BITS_EACH = 16
"""So many bits there are for the start of each retract, up to `MOST_WORDS` of 64: half a megabyte."""
MOST_WORDS = 1 << 16
IN_ORDER = 4
"""A run is in order when at most one row in so many starts before another in front of it."""
SAMPLE = 256
"""Of so many retracts the starts are looked at to tell how far they lie apart."""
NOTHING = np.zeros(0, np.int64)


class RetractTargets:
    """What some retracts name: lifetimes at first, keys where those tell too little."""

    def __init__(self, le: I64, re: I64, table: Callable[[], match_kernels.Matrix]) -> None:
        self.le, self.re, self._table = le, re, table
        self.lifetimes = new_index(len(le))
        self.start = np.array(LOCAL.start, np.uint64)
        self.follow = np.empty(len(le), np.int64)
        self.doubled = run_kernels.place_lifetimes(self.lifetimes, self.start, le, re, self.follow)
        """How many have a lifetime that another has too."""
        self._mark(le)

    def _mark(self, le: I64) -> None:
        """Sets a bit for each start, of so many that most rows learn from theirs that none names them."""
        self.low, self.high = int(le.min(initial=INFINITY)), int(le.max(initial=-INFINITY))
        words = 64
        while 64 * words < BITS_EACH * len(le) and words < MOST_WORDS:
            words *= 2
        self.bits = np.zeros(words, np.uint64)
        self.shift = _shift(le, 64 * words)
        run_kernels.mark_starts(le, self.shift, self.bits)

    @cached_property
    def keys(self) -> tuple[match_kernels.I32, match_kernels.Matrix]:
        """An index of the keys, made when it is first needed."""
        table = self._table()
        slots = new_index(len(table))
        match_kernels.place_distinct(slots, table)
        return slots, table


def _shift(le: I64, bits: int) -> int:
    """How much coarser than ticks starts are told apart, so that most of them have a bit each."""
    some = np.sort(le[:: max(1, len(le) // SAMPLE)])
    if len(some) == 0:
        return 0
    spread = int(some[len(some) * 15 // 16]) - int(some[len(some) // 16])
    return min(62, max(0, (2 * spread // bits).bit_length()))


class OpenedRows(NamedTuple):
    """What `read_changes` says of the rows of a page."""

    kinds: I8
    counts: match_kernels.I32
    strays: match_kernels.Matrix
    named: match_kernels.Matrix
    tops: I64
    told: I64

    @staticmethod
    def room(kinds: I8) -> OpenedRows:
        """Room for rows of these kinds."""
        count = len(kinds)
        return OpenedRows(
            kinds,
            np.empty(count, np.int32),
            np.empty((3, count // IN_ORDER), np.int64),
            np.empty((5, np.count_nonzero(kinds)), np.int64),
            np.empty(-(-count // run_kernels.TOGETHER), np.int64),
            np.empty(open_kernels.TOLD, np.int64),
        )

    @staticmethod
    def of(page: Page) -> OpenedRows:
        """The rows of a page."""
        kinds = np.zeros(len(page), np.int8) if page.retracts is None else page.retracts.view(np.int8)
        opened = OpenedRows.room(kinds)
        le, re = frozen(page.le), frozen(page.re)
        news = re if page.re_new is None else frozen(page.re_new)
        open_kernels.read_changes(le, re, news, le, *opened)
        opened.find(le, re)
        return opened

    def find(self, le: I64, re: I64) -> None:
        """Finds what the retracts may mean, of sound rows with these lifetimes."""
        open_kernels.find_events(le, re, self.counts, self.named, self.tops, self.told)

    def page(self, le: I64, re: I64, payload: pa.RecordBatch) -> Page:
        """The page of these rows, whose kinds are known."""
        if len(self.named[0]) == 0:
            return Page(le, re, payload)
        known = self.kinds.view(np.bool_), self.named[0], self.named[3]
        return ChangedPage.read(le, re, payload, *known, points=not self.told[open_kernels.LONGER])


class InsertRun:
    """One page's inserts that a retract may still name."""

    def __init__(
        self, page: Page, starts: I64, secret: Secret, *, adjusts: bool, opened: OpenedRows | None = None
    ) -> None:
        self._secret = secret
        opened = opened or OpenedRows.of(page)
        self.le, self.re, self.payload = frozen(page.le), frozen(page.re), page.payload
        self.begin = starts.copy() if adjusts else NOTHING
        """Where the events start that were moved to the bound, and the others."""
        self.counts = opened.counts
        """How many of each there are: none once it is taken away, more if another became equal to it."""
        self.tops = opened.tops
        """The latest start up to each few rows."""
        _, astray, low, high, last, crowded = opened.told[:6].tolist()
        named = opened.named
        self.retracts: I64 = named[0]
        """The rows of the page that are no versions of the run."""
        self.named = named[1:4]
        """The starts, ends and new ends of the retracts."""
        self.first: I64 | None = None if crowded else named[4]
        """The first row with the lifetime that each of them names, -1 for none; None for too many."""
        self.shortens = bool((self.named[2] > self.named[0]).any())
        """Whether one of them leaves something of its event behind."""
        self.ordered = IN_ORDER * astray <= len(page)
        """Whether most rows can be found by their start."""
        self.strays: match_kernels.Matrix = opened.strays[:, : astray if self.ordered else 0].copy()
        """The other rows, where most can, their starts and ends."""
        self.low, self.high, self.last = low, high, last
        self._keys: tuple[I64, I64] | None = None

    def __len__(self) -> int:
        return len(self.le)

    def over(self, cti: int) -> bool:
        """Whether no retract can name any of it."""
        return self.last < cti or cti == INFINITY

    def alive(self, cti: int) -> I64:
        """The rows that a retract may still name."""
        if cti == INFINITY:
            return NOTHING
        return np.flatnonzero((self.counts > 0) & (self.re >= cti))

    def named_by(self, wants: RetractTargets) -> I64:
        """The rows that some retracts may name, ascending."""
        some = self.scan(wants)
        if some is not None:
            return some[0]
        if self._keys is None:
            self._keys = self.keys(np.arange(len(self)))
        picked = np.empty(len(self), np.int64)
        return picked[: match_kernels.pick_wanted(*wants.keys, *self._keys, self.counts, picked)]

    def scan(self, wants: RetractTargets) -> tuple[I64, I64] | None:
        """The rows whose lifetimes are named, and by whom; None where they are too many to hash singly."""
        if wants.high < self.low or wants.low > self.high:
            return NOTHING, NOTHING
        if self._keys is not None:
            return None
        picked, whom = _scanned(wants, self.le, self.re, self.counts)
        return (picked, whom) if DENSE * len(picked) <= len(self) else None

    def scan_strays(self, wants: RetractTargets) -> tuple[I64, I64]:
        """The same among the rows that came out of order, however many."""
        if wants.high < self.low or wants.low > self.high:
            return NOTHING, NOTHING
        rows, le, re = self.strays
        picked, whom = _scanned(wants, frozen(le), frozen(re), self.counts, rows)
        return rows[picked], whom

    def find(self, named: match_kernels.Matrix, rows: I64, who: I64, since: I64) -> I64 | None:
        """The next row with the lifetime that each of some retracts names, -1 for none; None for too many."""
        found, hint = np.empty(len(who), np.int64), np.array([0, MIN_TIME])
        lifetimes = self.tops, self.le, self.re, self.counts
        many = run_kernels.find_named(*lifetimes, named[0], named[1], rows, who, since, hint, found)
        return None if many else found

    @cached_property
    def memory(self) -> list[tuple[Any, ...]] | None:
        """Its columns as they lie, numbers or offsets and bytes; None where equal rows may differ in it."""
        if not comparable(self.payload):
            return None
        return [_parts(c) if is_bytes(c.type) else (words(c),) for c in self.payload.columns]

    def equals(self, picked: I64, other: InsertRun, rows: I64) -> Mask | None:
        """Whether rows picked here have the payload of rows of another; None where memory does not tell."""
        if self.memory is None or other.memory is None:
            return None
        same = np.ones(len(picked), np.bool_)
        for mine, theirs in zip(self.memory, other.memory, strict=True):
            if len(mine) == 1:
                run_kernels.compare_rows(mine[0], picked, theirs[0], rows, same)
            else:
                run_kernels.compare_texts(mine[0], mine[1], picked, theirs[0], theirs[1], rows, same)
        return same

    def keys(self, rows: I64) -> tuple[I64, I64]:
        """The keys of these rows."""
        if self._keys is not None:
            return self._keys[0][rows], self._keys[1][rows]
        ids = identity_at(self.payload.columns, rows, self._secret)
        return keys_of(ids, self.le[rows], self.re[rows])

    def take(self, rows: I64) -> pa.RecordBatch:
        """The payload of these rows."""
        return take_rows(self.payload, rows)


def _scanned(
    wants: RetractTargets, le: I64, re: I64, counts: match_kernels.I32, rows: I64 = NOTHING
) -> tuple[I64, I64]:
    """Which of some versions have a lifetime that is named, and by whom; ``rows`` of a run, or all."""
    picked, whom = np.empty(len(le), np.int64), np.empty(len(le), np.int64)
    lifetimes = wants.bits, wants.shift, wants.lifetimes, wants.start, wants.le, wants.re
    found = run_kernels.scan_run(*lifetimes, le, re, counts, frozen(rows), picked, whom)
    return picked[:found], whom[:found]


def _parts(column: pa.Array) -> tuple[match_kernels.I32, U8]:
    offsets, data = raw_parts(column)
    return frozen(offsets), frozen(data)


def comparable(payload: pa.RecordBatch) -> bool:
    """Whether equal rows lie equally in memory."""
    return not any(
        c.null_count or pa.types.is_floating(c.type) or not (is_words(c.type) or is_bytes(c.type))
        for c in payload.columns
    )


def keys_of(ids: tuple[U64, U64], le: I64, re: I64) -> tuple[I64, I64]:
    """The keys of versions with these payloads, starts and ends."""
    k1, k2 = np.empty(len(le), np.int64), np.empty(len(le), np.int64)
    match_kernels.version_keys(ids[0], ids[1], le, re, k1, k2)
    return k1, k2


def new_index(count: int) -> match_kernels.I32:
    """An index with room for so many rows."""
    size = 256
    while size < 4 * count:
        size *= 2
    return np.full(size, match_kernels.FREE, np.int32)
