"""Rows that may not enter: malformed ones, late ones, and those that definite punctuation forbids.

They go to the late table, each with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events import Page
from caesura.io.ingress.clock import as_text
from caesura.io.ingress.lanes import Lane, Lanes, forbidden_by
from caesura.io.ingress.late import LateTable
from caesura.io.ingress.shape import REASONS, Shaped
from caesura.kernels.hashing import I64, Mask
from caesura.punctuation import MIN_TIME, Pattern

Lateness = Literal["reject", "adjust", "error"]


@dataclass
class Refusals:
    """Judges the rows of a source, and notes those that it refuses."""

    lanes: Lanes
    table: LateTable
    time: pa.DataType
    lateness: Lateness

    def flawed(self, lane: Lane, shaped: Shaped, offsets: I64) -> tuple[Shaped, I64]:
        assert shaped.flaw is not None
        bad = np.flatnonzero(shaped.flaw)
        page = shaped.page
        reasons = pa.array(REASONS).take(pa.array(shaped.flaw[bad]))
        self.table.add(page.take(bad), reasons, lane=lane.number, offsets=offsets[bad])
        rows = np.flatnonzero(shaped.flaw == 0)
        good = page.take(rows)
        good_rows = Shaped(good.le, good.re, good.re_new, good.payload, None, shaped.advance[rows])
        return good_rows, offsets[rows]

    def on_time(
        self, lane: Lane, page: Page, bounds: I64, floor: int, offsets: I64
    ) -> tuple[Page, I64 | None, I64 | None] | None:
        """The rows that are not late, the starts they get (None: their own), and which rows they are."""
        promises = self.lanes.promises(lane)
        limit: I64 = np.maximum(bounds if len(bounds) else MIN_TIME, floor)
        late: Mask = page.sync < limit
        starts, times = None, page.sync
        if self.lateness == "adjust" and late.any():
            spans = late & (page.re > limit)
            if page.retracts is not None:
                spans &= ~page.retracts
            starts, times = np.where(spans, limit, page.le), np.where(spans, limit, times)
            late &= ~spans
        broken = forbidden_by(promises, page.payload, times)
        if not late.any() and broken is None:
            return page, starts, None
        if broken is not None:
            broken &= ~late
            self.broken(lane, page, broken, offsets)
        self.late(lane, page, np.flatnonzero(late), bounds, floor, offsets)
        rows = np.flatnonzero(~late if broken is None else ~(late | broken))
        if len(rows) == 0:
            return None
        return page.take(rows), None if starts is None else starts[rows], rows

    def late(self, lane: Lane, page: Page, late: I64, bounds: I64, floor: int, offsets: I64) -> None:
        if len(late) == 0:
            return
        some = page.take(late)
        bound = bounds[late] if len(bounds) else np.full(len(late), MIN_TIME)
        time = self.time
        behind = below_bound(some.sync, bound, time)
        reasons = pc.if_else(
            pa.array(some.sync < bound), behind, f"came after definite: {Pattern.before(floor)}"
        )
        self.table.add(some, reasons, lane=lane.number, offsets=offsets[late])

    def broken(self, lane: Lane, page: Page, broken: Mask, offsets: I64) -> None:
        rest = broken.copy()
        for promises in self.lanes.promises(lane):
            for pattern in promises.patterns():
                rows = np.flatnonzero(rest & pattern.matches(page.payload, page.sync))
                if len(rows):
                    reason = f"came after definite: {pattern}"
                    self.table.add(page.take(rows), reason, lane=lane.number, offsets=offsets[rows])
                    rest[rows] = False
        rows = np.flatnonzero(rest)
        if len(rows):
            reason = "came after definite punctuation on the time that it was moved to"
            self.table.add(page.take(rows), reason, lane=lane.number, offsets=offsets[rows])


BELOW = r" (?:came after its lane had passed|is below its lane's bound) "  # the second is how 0.1 said it
TICKS, SECONDS = BELOW + r"(?P<t>-?\d{1,18})$", BELOW + r"(?P<t>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
MICROSECONDS = r"\.(?P<t>\d{6})$"
DEFINITE = r"^came after definite: time < (?P<t>-?\d{1,18})$"


def behind_bound(late: pa.Table, time: pa.DataType) -> I64:
    """How far late rows lie behind the bound that their reason names; 0 where it names none.

    >>> late = {"reason": ["time 2 came after its lane had passed 7", "time is null"], "LE": [2, None]}
    >>> behind_bound(pa.table(late, pa.schema([("reason", pa.string()), ("LE", pa.int64())])), pa.int64())
    array([5, 0])
    """
    reasons, starts = (late.column(name).combine_chunks() for name in ("reason", "LE"))
    if pa.types.is_integer(time):
        bound, starts = _told(reasons, TICKS).cast(pa.int64()), starts.cast(pa.int64())
    else:
        seconds = pc.strptime(_told(reasons, SECONDS), "%Y-%m-%d %H:%M:%S", "us", error_is_null=True)
        fraction = pc.fill_null(_told(reasons, MICROSECONDS).cast(pa.int64()), 0)
        bound = pc.add(seconds.cast(pa.int64()), fraction)
        starts = starts.cast(pa.timestamp("us", getattr(starts.type, "tz", None))).cast(pa.int64())
    bound = pc.coalesce(bound, _told(reasons, DEFINITE).cast(pa.int64()))
    behind: I64 = np.maximum(np.asarray(pc.fill_null(pc.subtract(bound, starts), 0)), 0)
    return behind


def _told(reasons: pa.Array, pattern: str) -> pa.Array:
    return pc.struct_field(pc.extract_regex(reasons, pattern), "t")


def below_bound(sync: I64, bound: I64, time: pa.DataType) -> pa.Array:
    """Why rows are late that lie below their lane's bound, in words."""
    return pc.binary_join_element_wise(
        "time ", as_text(sync, time), " came after its lane had passed ", as_text(bound, time), ""
    )
