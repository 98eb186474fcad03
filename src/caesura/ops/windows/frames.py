"""Where windows lie: on a grid, between end points, around n end points, or as long as events keep coming.

     grid(10, every 5)   0-10  5-15  10-20 ...    whatever the events are
     snapshot            the stretches on which no event starts or ends
     count_by_start(2)   from a start to the next one, that tick included
     session(gap 5)      events with less than 5 ticks of silence between them

An event belongs to the windows that its lifetime overlaps; to a count window when its start (or end)
lies in it; to the session in which it starts. (StreamInsight, section III.B.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from caesura.errors import PlanError
from caesura.kernels.grid import Lattice, lattice
from caesura.kernels.hashing import I64
from caesura.kernels.ticks import later
from caesura.ops.aggregate.shape import check_grid
from caesura.plan import shown

POINTS_LIMIT = 2**31
"""End points of a count window: so many would have to be kept."""
Belongs = Literal["overlap", "start", "end"]


@dataclass(frozen=True)
class Grid:
    """Windows of one size, one from ``offset`` on and one at every hop from it."""

    size: int
    hop: int
    offset: int = 0

    belongs: ClassVar[Belongs] = "overlap"

    @property
    def kind(self) -> str:
        return "tumbling" if self.hop == self.size else "hopping"

    def check(self) -> None:
        check_grid(self.size, self.hop)

    @property
    def grid(self) -> Lattice:
        """Where windows lie."""
        return lattice(self.size, self.hop, self.offset)

    def describe(self, time: pa.DataType) -> str:
        every = "" if self.hop == self.size else f" every {shown(self.hop, time)}"
        return f"{shown(self.size, time)}{every}"


@dataclass(frozen=True)
class Snapshot:
    """The longest stretches on which no event starts or ends."""

    kind: ClassVar[str] = "snapshot"
    belongs: ClassVar[Belongs] = "overlap"

    def check(self) -> None:
        return None

    def describe(self, time: pa.DataType) -> str:
        return ""


@dataclass(frozen=True)
class Count:
    """From each distinct start (or end) over n of them, the last one's tick included."""

    n: int
    by: Literal["start", "end"]

    @property
    def kind(self) -> str:
        return f"count_by_{self.by}"

    @property
    def belongs(self) -> Belongs:
        return self.by

    def check(self) -> None:
        if self.n <= 0:
            raise PlanError(
                f"a count window of {self.n} end points holds nothing.",
                remedy="Count 1 or more, as in count_by_start(3).",
            )
        if self.n > POINTS_LIMIT:
            raise PlanError(
                f"a count window of {self.n} end points is never full.",
                remedy=f"Count {POINTS_LIMIT:,} or fewer; totals() takes all rows there are.",
            )

    def describe(self, time: pa.DataType) -> str:
        return str(self.n)


@dataclass(frozen=True)
class Session:
    """Events with less than ``gap`` ticks of silence between them; cut ``longest`` ticks from its start."""

    gap: int
    longest: int | None = None

    kind: ClassVar[str] = "session"
    belongs: ClassVar[Belongs] = "start"

    def check(self) -> None:
        if self.gap <= 0:
            raise PlanError(
                f"a session with a gap of {self.gap} ticks ends before it begins.",
                remedy="Give a positive gap, like '30m'.",
            )
        if self.longest is not None and self.longest <= 0:
            raise PlanError(
                f"a session of at most {self.longest} ticks can hold no event.",
                remedy="Give a positive length, or none.",
            )

    def describe(self, time: pa.DataType) -> str:
        most = "" if self.longest is None else f", at most {shown(self.longest, time)}"
        return f"gap {shown(self.gap, time)}{most}"


Frame = Grid | Snapshot | Count | Session


def inside(frame: Frame, le: I64, re: I64) -> tuple[I64, I64]:
    """The stretch of time by which an event belongs to windows: its lifetime, its start or its end."""
    if frame.belongs == "start":
        return le, le + 1
    if frame.belongs == "end":
        return re, later(re, 1)
    return le, re
