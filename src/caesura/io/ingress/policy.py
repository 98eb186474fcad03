"""Ingress policies: the punctuation a source gives, as small frozen values that users write.

A policy only says what is promised; `SourceIngress` keeps the promise. Policies join with ``&``.

>>> print(delay("30s", every=1000))
time: 30s behind the latest event of the slowest lane, after each 1000 events; all at the end of input
>>> (delay(5) & in_data("punct")).gives
'any'
>>> print(at_end())
all at the end of input
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import timedelta

import pyarrow as pa

from caesura.errors import PlanError
from caesura.io.ingress.future_bound import FutureBound
from caesura.misuse import checked_methods, strict
from caesura.plan import Duration, Node, here, ticks

CLOCK = pa.timestamp("us")
AUTO = "auto"
AHEAD, AHEAD_OF_CLOCK = "366d", "1d"
"""How far ahead a timestamp may be by default: of its lane, which may pause, and of a clock."""
BEATS_PER_IDLE = 4  # how often the clock is read within the time that makes a lane idle, or a row be ahead


@checked_methods
@dataclass(frozen=True)
class Policy:
    """What a source promises while it reads; made by the functions of this module."""

    lag: Duration | None = None
    """A lane's bound is its running maximum of event time minus this."""
    every: int = 1
    """A CTI is announced after so many events."""
    moved: Duration | None = None
    """A CTI is announced only when time has moved by this since the last."""
    beat: Duration | None = None
    """How often the clock is read."""
    clock_lag: Duration | None = None
    """The CTI is the clock reading minus this."""
    idle: Duration | None = None
    """A lane silent for so long of clock time no longer holds the CTI back."""
    column: str | None = None
    """A column whose non-null texts are punctuation; such rows are no events."""
    scheme: str | None = None
    """The forms of the punctuation in the column, such as ``{[[id:#]]}``; None where any may come."""
    node: Node | None = None
    """A step whose CTIs become ours."""
    closes: bool | None = None
    """Whether the end of input promises that nothing follows; None where nothing can, as far as is known."""
    future: Duration | None = AUTO
    """A row further ahead than this, of the clock or else of its lane, is refused."""

    def __and__(self, other: Policy) -> Policy:
        """Both policies at once; they may not set the same thing differently."""
        if not isinstance(other, Policy):
            raise PlanError(
                f"a policy is joined with another, not with {other!r}.",
                remedy="Join what these give: delay, every, heartbeat, in_data, imported, at_end.",
            )
        merged = {}
        for f in fields(self):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            if mine != f.default and theirs != f.default and mine != theirs:
                raise PlanError(
                    f"two policies disagree about '{f.name}': {mine!r} and {theirs!r}.",
                    remedy="Keep one of the two.",
                )
            merged[f.name] = theirs if mine == f.default else mine
        return Policy(**merged)

    @property
    def gives(self) -> str:
        """The attributes that punctuation comes on while input lasts: 'time', 'any' or 'nothing'."""
        if self.column is not None:
            return "any"
        return "time" if self.timely else "nothing"

    @property
    def timely(self) -> bool:
        """Whether time is promised, whatever the data says."""
        return self.lag is not None or self.clock_lag is not None or self.node is not None

    @property
    def key(self) -> str:
        """Equal for policies that promise the same; for fingerprints."""
        same = replace(self, closes=self.closes is not False)  # when it ends changes no state
        parts = [repr(getattr(same, f.name)) for f in fields(self) if f.name != "node"]
        return f"Policy({', '.join(parts)}, {self.node.fingerprint if self.node else None})"

    @property
    def period(self) -> int | None:
        """How often the clock must be read, in microseconds; None when no policy asks for it."""
        if self.beat is not None:
            period = ticks(self.beat, CLOCK, "heartbeat")
        elif self.idle is not None:
            period = ticks(self.idle, CLOCK, "idle time") // BEATS_PER_IDLE
        else:
            return None
        bound = AHEAD_OF_CLOCK if self.future == AUTO else self.future
        if self.lag is not None and isinstance(bound, str | timedelta):
            period = min(period, ticks(bound, CLOCK, "bound on the future") // BEATS_PER_IDLE)
        return max(1, period)

    def clocked(self, time: pa.DataType) -> bool:
        """Whether rows are held against a clock; plain ticks cannot be."""
        return self.period is not None and not pa.types.is_integer(time)

    def lags(self, time: pa.DataType) -> tuple[int | None, int | None, int | None]:
        """(lane lag, clock lag, idle time) in ticks and microseconds; refuses what cannot be."""
        lag = None if self.lag is None else _span(self.lag, time, "delay")
        clock = None if self.clock_lag is None else _span(self.clock_lag, time, "delay")
        idle = None if self.idle is None else _span(self.idle, CLOCK, "idle time")
        return lag, clock, idle

    def stride(self, time: pa.DataType) -> int:
        """How far time must move before another CTI is announced, in ticks."""
        return 0 if self.moved is None else _span(self.moved, time, "stride of time")

    def ahead(self, time: pa.DataType) -> FutureBound | None:
        """How far ahead a row may be; None where rows move no bound, or may be anywhere."""
        chosen = self.future
        if chosen == AUTO:
            timely = self.lag is not None and not pa.types.is_integer(time)
            chosen = (AHEAD_OF_CLOCK if self.clocked(time) else AHEAD) if timely else None
        if chosen is None:
            return None
        return FutureBound(_span(chosen, time, "bound on the future"), str(chosen))

    def __str__(self) -> str:
        parts = []
        if self.lag is not None:
            parts.append(f"time: {self.lag} behind the latest event of the slowest lane{self._pace()}")
        if self.clock_lag is not None:
            parts.append(f"time: {self.clock_lag} behind the clock, read every {self.beat}")
        if self.future not in (None, AUTO):
            parts.append(f"rows more than {self.future} ahead are refused")
        if self.column is not None:
            parts.append(f"{self.scheme or 'any'}: where '{self.column}' says so")
        if self.node is not None:
            parts.append(f"time: when '{self.node.step}' gives it")
        if self.closes is not False:
            parts.append("all at the end of input")
        return "; ".join(parts) or "nothing"

    def _pace(self) -> str:
        pace = f", after each {self.every} events" if self.every != 1 else ""
        pace += f", when it has moved by {self.moved}" if self.moved is not None else ""
        return pace + (f", lanes silent for {self.idle} left out" if self.idle is not None else "")


def _span(duration: Duration, time: pa.DataType, what: str) -> int:
    span = ticks(duration, time, what)
    if span < 0:
        raise PlanError(
            f"the {what} is {duration!r}, below zero.", remedy="Give zero or more, like 5 or '30s'."
        )
    return span


@strict
def delay(
    by: Duration,
    *,
    every: int = 1,
    moved: Duration | None = None,
    idle: Duration | None = None,
    future: Duration | None = AUTO,
    closes: bool | None = None,
) -> Policy:
    """CTIs that stay this far behind the latest event of the slowest lane.

    A row below its own lane's bound, the running maximum of the rows before it minus the delay, is late.
    They are announced after each ``every`` events, and, with ``moved``, when time has moved by so much.
    A row more than ``future`` ahead, of the clock where one is read (``idle=``) and time is no plain number,
    and else of the rows before it in its lane, is refused too, for it would make all behind it late.
    Timestamps may be a year ahead of their lane, or a day ahead of the clock, unless you say otherwise;
    ``future=None`` takes whatever comes.
    """
    return Policy(lag=by, every=_count(every), moved=moved, idle=idle, future=future, closes=closes)


@strict
def every(n: int, *, future: Duration | None = AUTO, closes: bool | None = None) -> Policy:
    """CTIs at the latest event of the slowest lane, announced after each n events."""
    return Policy(lag=0, every=_count(n), future=future, closes=closes)


@strict
def heartbeat(
    period: Duration,
    *,
    delay: Duration = 0,
    idle: Duration | None = None,
    future: Duration | None = AUTO,
    closes: bool | None = None,
) -> Policy:
    """CTIs from a clock that is read every so often, minus a delay."""
    return Policy(beat=period, clock_lag=delay, idle=idle, future=future, closes=closes)


@strict
def at_end(*, closes: bool = True) -> Policy:
    """No punctuation until the input ends."""
    return Policy(closes=closes)


@strict
def in_data(column: str = "punct", *, gives: str | None = None, closes: bool | None = None) -> Policy:
    """Punctuation found in the data: rows whose column holds a text such as ``time < 20, id = 4``.

    ``gives`` declares its forms, such as ``"{[[time:+]], [[id:#]]}"``: then `check` knows what comes, and
    punctuation of another form is not taken, but told in the late table.
    """
    return Policy(column=column, scheme=gives, closes=closes)


@strict
def imported(node: Node, *, closes: bool | None = None) -> Policy:
    """The CTIs of another step, taken over as they come."""
    return Policy(node=node, closes=closes)


def _count(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise PlanError(
            f"a CTI after each {n!r} events can never come.", remedy="Give a whole number from 1 on."
        ).at("every", here())
    return n
