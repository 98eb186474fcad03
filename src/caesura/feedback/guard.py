"""A guard: patterns whose rows are stopped at an input or an output of a step.

A plain guard stops inserts, and a retract only with its insert. A blind one stands before groups that
were given up whole, and stops everything that matches. Patterns that definite punctuation covers go.

>>> from caesura.events import draw, parse
>>> page, = parse(" LE RE | id |\\n 1 9 | 7 | +\\n 2 9 | 8 | +")
>>> guard = Guard(page.schema, Properties())
>>> _ = guard.mount(Pattern(id=7))
>>> print(draw([guard.stop(page)]))
 LE  RE | id |
  2  9  | 8  | +
>>> guard.hits, guard.size
(1, 2)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.chunks import Chunks
from caesura.events.noted import NotedRows
from caesura.events.page import Page
from caesura.feedback.bag import RowBag
from caesura.feedback.worth import Worth
from caesura.kernels.hashing import Mask
from caesura.plan.feedback import LE, RE
from caesura.plan.properties import Properties
from caesura.punctuation import INFINITY, MIN_TIME, TIME, Pattern, Promises, lt

MAX_MATCHED_SINGLY = 8
"""Beyond so many patterns they are looked up together."""
MAX_NOTED_ROWS = 10_000
"""So many rows whose reason is known are kept until they are asked for; all are counted."""
NOTED = "noted/"
MIN_CUTS_TO_TRIM = 16
"""From so many ends of stretches of time on, those that have passed are let go before the rest."""


def to_promise(pattern: Pattern) -> Pattern:
    """A feedback pattern with `time` for LE, and before every end it names."""
    return pattern.derived(_to_promise)


def _to_promise(pattern: Pattern) -> Pattern:
    if LE not in pattern and RE not in pattern:
        return pattern
    constraints = {name: values for name, values in pattern.items() if name != LE}
    times, ends = pattern[LE], pattern[RE]
    if not ends.is_any and ends.intervals and ends.intervals[-1].hi is not None:
        earlier = lt(int(ends.intervals[-1].hi))
        times = earlier if times.is_any else times.intersect(earlier)
    return Pattern(**constraints, **({} if times.is_any else {TIME: times}))


def from_promise(pattern: Pattern) -> Pattern:
    """The feedback pattern again."""
    constraints = {name: values for name, values in pattern.items() if name != TIME}
    return Pattern(**constraints, **({LE: pattern[TIME]} if TIME in pattern else {}))


def before(pattern: Pattern, until: int) -> Pattern:
    """The part of a feedback pattern whose rows start before a time."""
    if until == INFINITY:
        return pattern
    starts = pattern[LE].intersect(lt(until)) if LE in pattern else lt(until)
    return Pattern(**{**dict(pattern.items()), LE: starts})


def overtaken(promises: Promises, pattern: Pattern) -> bool:
    """Whether punctuation covers a pattern (with `time` for LE), as far as that is cheap to see.

    A promise on attributes that the pattern leaves open covers it only together with others for the rest
    of their domain; that is not looked for, and such a pattern goes at the end of time.
    """
    if promises.cti == INFINITY:
        return True
    last = pattern[TIME].last
    if last is not None and last < promises.cti:
        return True
    named = set(pattern.attributes)
    return any(named.issuperset(p.attributes) for p in promises.others()) and promises.covers(pattern)


def covered(promises: Promises, pattern: Pattern) -> bool:
    """Whether punctuation covers a feedback pattern, as far as that is cheap to see."""
    last = pattern[LE].last
    if last is not None and last < promises.cti:
        return True
    return overtaken(promises, to_promise(pattern))


def middle_of(pattern: Pattern) -> int | None:
    """Where half of the times lie behind, of a pattern with many: from there on the earlier ones can go."""
    cuts = pattern[TIME].cuts
    return cuts[len(cuts) // 2][0] if len(cuts) >= MIN_CUTS_TO_TRIM else None


def reach_of(held: list[Pattern]) -> tuple[int, set[str]]:
    """The earliest time from which on one of some patterns, or a part of it, can go; and what they name."""
    ends = [end for p in held for end in (p[TIME].last, middle_of(p)) if end is not None]
    return min(ends, default=INFINITY), {name for p in held for name in p.attributes}


def drop_overtaken(held: Promises, promises: Promises) -> int:
    """Forgets the patterns that punctuation covers; gives how many."""
    over = [p for p in held.others() if overtaken(promises, p)] if held.size else []
    held.forget(over)
    for pattern in held.others() if held.size else ():
        middle = middle_of(pattern)
        if middle is not None and middle <= promises.cti:
            held.forget([pattern])
            held.add(pattern.replace(TIME, pattern[TIME].minus(lt(promises.cti))))
    if MIN_TIME < held.cti <= promises.cti:
        held.cti = MIN_TIME
        return len(over) + 1
    return len(over)


def drop_reasons(why: dict[str, Promises], promises: Promises) -> None:
    """Forgets the reasons for patterns that punctuation covers."""
    for reason, held in [*why.items()]:
        drop_overtaken(held, promises)
        if held.cti == MIN_TIME and not held.size:
            del why[reason]


class Guard:
    """Patterns, the live rows dropped because of them, and what was counted."""

    def __init__(self, schema: pa.Schema, known: Properties, *, blind: bool = False) -> None:
        self.held = Promises()
        self.why: dict[str, Promises] = {}
        """What is stopped for a reason that is known, by reason."""
        self.noted: NotedRows | None = None
        """The rows stopped for such a reason, until they are asked for."""
        self._schema = schema
        self.blind = blind
        self.bag = None if blind or known.insert_only else RowBag(schema, fixed=known.fixed_ends)
        self.hits = 0
        """Rows stopped."""
        self.until = MIN_TIME
        """The latest end of a row stopped."""
        self.moving: tuple[int, int] | None = None
        """After a withdrawal, while rows that were stopped may yet end later: before when they start, and the
        latest end."""
        self._ends_move = not known.fixed_ends
        self.active = False
        """Whether it stands for any pattern."""
        self.worth: Worth | None = None
        """What it costs and saves, where it may be left out."""
        self.required = blind
        """Whether results depend on all that it stops; else it is only to save work."""
        self._ends = False
        self._version = 0
        self._behind: tuple[int, int, bool] = (-1, -1, False)

    def implied_by(self, above: Guard) -> bool:
        """Whether all that it would stop is stopped by a guard that rows have to pass before it.

        Rows that were on their way when that was put up may come through; that is allowed, and soon over.
        """
        if self.bag is not None or not self.active:
            return False
        if self.weighed is None and above.weighed is not None:
            return False  # what does not pay above does not pay here, but here it may be needed
        if self._behind[:2] != (self._version, above._version):
            cheap = max(self.held.size, above.held.size) <= MAX_MATCHED_SINGLY
            implied = cheap and all(above.held.covers(p) for p in self.held.patterns())
            self._behind = self._version, above._version, implied
        return self._behind[2]

    def watch(self, cti: int = MIN_TIME) -> None:
        """A withdrawal comes: the rows stopped so far are followed until none of them can end later."""
        if self._ends_move and MIN_TIME < self.until < INFINITY and self.until >= cti:
            self.moving = self.until, self.until

    def follow(self, page: Page, rows: Mask | None = None) -> None:
        """Takes note of how late rows end now that may have been stopped before a withdrawal."""
        if self.moving is None or page.re_new is None:
            return
        before, until = self.moving
        moved = (page.le < before) & (page.re_new > page.re)
        later = page.re_new[moved if rows is None else moved & rows]
        if len(later):
            self.moving = before, max(until, int(later.max()))
            self.until = max(self.until, int(later.max()))

    def mount(self, pattern: Pattern, why: str = "") -> bool:
        """Takes a feedback pattern; False if it stopped all that before."""
        if why:
            self.why.setdefault(why, Promises()).add(to_promise(pattern))
        added = self.held.add(to_promise(pattern))
        self._changed()
        return added

    def replace(self, patterns: list[Pattern]) -> None:
        """Stands for these patterns only from now on; rows dropped before stay known."""
        self.held = Promises(map(to_promise, patterns))
        self.required = self.blind
        self._changed()

    def _changed(self) -> None:
        self._version += 1
        self.active = self.held.cti > MIN_TIME or self.held.size > 0
        self._ends = any(RE in pattern for pattern in self.held.others())

    @property
    def patterns(self) -> list[Pattern]:
        """What it stops, as feedback patterns."""
        return [from_promise(p) for p in self.held.patterns()]

    @property
    def weighed(self) -> Worth | None:
        """Its account, where it may be left out: not while a retract may name a row that was stopped, and not
        where rows are stopped for a reason."""
        return None if self.required or self.why or self.holds_rows else self.worth

    def rests(self, above: Guard | None) -> bool:
        """Whether it need not look: it does not pay, or one above that does not would stop as much."""
        worth = self.weighed
        if worth is None:
            return False
        rests = above is not None and above.weighed is not None and not above.weighed.pays
        return not worth.pays or (rests and above is not None and self.implied_by(above))

    @property
    def idle(self) -> bool:
        """Whether it lets everything pass, and follows no rows."""
        return not self.active and not self.holds_rows and self.moving is None

    @property
    def holds_rows(self) -> bool:
        """Whether it keeps rows that a retract may still name."""
        return self.bag is not None and self.bag.rows.live > 0

    @property
    def size(self) -> int:
        """Its state: patterns and rows kept."""
        return (self.held.cti > MIN_TIME) + self.held.size + (0 if self.bag is None else self.bag.rows.live)

    def matches(self, page: Page) -> Mask:
        """Which rows match a pattern."""
        if not self.active:
            return np.zeros(len(page), np.bool_)
        if self.held.size > MAX_MATCHED_SINGLY:
            columns: dict[str, Any] = dict(zip(page.schema.names, page.payload.columns, strict=True))
            if self._ends:
                columns[RE] = page.re
            return self.held.forbids(columns, page.le)
        mask = page.le < self.held.cti if self.held.cti > MIN_TIME else None
        for pattern in self.held.others():
            found = _matching(pattern, page)
            mask = found if mask is None else mask | found
        assert mask is not None
        return mask

    def stop(self, page: Page) -> Page:
        """The rows that may pass."""
        if (not self.active and self.idle) or len(page) == 0:
            return page
        worth = self.weighed
        if worth is not None and not worth.looks():
            return page
        mask = self.matches(page)
        if self.bag is not None and not page.settled:
            mask = self.bag.take(page, mask)
        ends = page.re[mask]
        if worth is not None:
            worth.looked(len(page), len(ends))
        if len(ends) == 0:
            return page
        self.hits += len(ends)
        self.until = max(self.until, ends.item(ends.argmax()))  # a third of what max() takes
        if page.re_new is not None:
            self.until = max(self.until, int(page.re_new[mask].max()))
            self.follow(page, mask)
        if self.why and (self.noted is None or not self.noted.full):
            self._note(page.filter(mask))
        return page.filter(~mask)

    def _note(self, stopped: Page) -> None:
        """Keeps the rows that were stopped for a reason that is known."""
        reasons = np.full(len(stopped), "", object)
        for why, held in self.why.items():
            mask = stopped.le < held.cti
            for pattern in held.others():
                mask = mask | _matching(pattern, stopped)
            reasons[mask & (reasons == "")] = why
        known = reasons != ""
        if known.any():
            self.noted = self.noted or NotedRows(self._schema, limit=MAX_NOTED_ROWS)
            self.noted.add(stopped.filter(known), reasons[known].tolist())

    def take_noted(self, time: pa.DataType) -> pa.Table | None:
        """The rows stopped for a reason that is known since the last call; None when there are none."""
        return None if self.noted is None else self.noted.taken(time)

    def settle(self, promises: Promises) -> int:
        """Lets go of what definite punctuation covers; gives how many patterns went."""
        if self.moving is not None and (self.moving[1] < promises.cti or self.moving[1] == INFINITY):
            self.moving = None
        if self.bag is not None and self.bag.rows.live:
            self.bag.settle(promises)
        if self.why and (self.bag is None or not self.bag.rows.live):  # else a retract may follow its insert
            drop_reasons(self.why, promises)
        dropped = drop_overtaken(self.held, promises) if self.active else 0
        self._changed()
        return dropped

    def to_json(self) -> dict[str, Any]:
        """What it stands for and has counted."""
        why = {why: held.to_json() for why, held in self.why.items()}
        counted = {"hits": self.hits, "until": self.until, "required": self.required}
        moving = {} if self.moving is None else {"moving": list(self.moving)}
        return {"held": self.held.to_json(), **counted, "why": why, **moving}

    def snapshot(self) -> Chunks:
        """The rows kept, as chunks of what changed."""
        noted = {} if self.noted is None else self.noted.rows.snapshot()
        stopped = {} if self.bag is None else self.bag.rows.snapshot()
        return stopped | {NOTED + name: data for name, data in noted.items()}

    def restore(self, meta: dict[str, Any], chunks: dict[str, bytes]) -> None:
        self.held = Promises.from_json(meta["held"])
        self._changed()
        self.hits, self.until = meta["hits"], meta["until"]
        self.required = meta.get("required", True)
        if "moving" in meta:
            self.moving = meta["moving"][0], meta["moving"][1]
        self.why = {why: Promises.from_json(held) for why, held in meta.get("why", {}).items()}
        mine = {name: data for name, data in chunks.items() if name.startswith(NOTED)}
        self.noted = NotedRows(self._schema, limit=MAX_NOTED_ROWS) if mine else None
        if self.noted is not None:
            self.noted.rows.restore({name[len(NOTED) :]: data for name, data in mine.items()})
        if self.bag is not None:
            self.bag.rows.restore({name: data for name, data in chunks.items() if name not in mine})
            self.bag.rebuild()


def _matching(pattern: Pattern, page: Page) -> Mask:
    """Which rows of a page match a pattern with `time` for LE."""
    mask: Mask | None = None
    for name, values in pattern.items():
        column = page.le if name == TIME else page.re if name == RE else page.payload.column(name)
        found = values.mask(column)
        mask = found if mask is None else mask & found
    return np.ones(len(page), np.bool_) if mask is None else mask
