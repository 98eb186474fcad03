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
from caesura.plan import CLOCK, Duration, Node, here, ticks

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
    """The forms of the punctuation in the column, such as ``id``; None where any may come."""
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
    """Progress that stays this far behind the latest event of the slowest lane.

    A row below its own lane's bound, the running maximum of the rows before it minus the delay, is late.

    Parameters
    ----------
    by
        How far behind: ``"30s"``, ``5`` ticks.
    every
        After how many events it is announced.
    moved
        By how much time must have moved before it is announced again.
    idle
        A lane that is silent for so long of clock time holds nothing back any more.
    future
        How far ahead a row may be: of the clock where one is read (``idle=``) and time is no plain number,
        and else of the rows before it in its lane. One further ahead is refused, for it would make all
        behind it late. Timestamps may be a year ahead of their lane, or a day ahead of the clock, unless
        you say otherwise; ``None`` takes whatever comes.
    closes
        Whether the end of input promises that nothing follows; by default where nothing can.

    Returns
    -------
    Policy
        For ``punctuate=``; policies are joined with ``&``.

    See Also
    --------
    Stream.pace : rows that are not too far behind.
    every : progress after so many events.
    heartbeat : progress by the clock.
    at_end : nothing before the end.
    in_data : punctuation in the rows.
    imported : the progress of another step.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = [{"ts": 1, "id": 7}, {"ts": 9, "id": 8}, {"ts": 3, "id": 9}]
    >>> result = cz.from_rows(rows, time="ts", punctuate=cz.delay(5)).run()
    >>> print(result.draw())
     LE  RE | id |
      1  2  | 7  | +
      9  10 | 8  | +
    -- definite: time < 4 --
    -- definite: * --
    >>> result.late["read"].select(["reason", "id"]).to_pylist()
    [{'reason': 'time 3 came after its lane had passed 4', 'id': 9}]
    """
    return Policy(lag=by, every=_count(every), moved=moved, idle=idle, future=future, closes=closes)


@strict
def every(n: int, *, future: Duration | None = AUTO, closes: bool | None = None) -> Policy:
    """Progress up to the latest event of the slowest lane, announced after every so many events.

    Parameters
    ----------
    n
        After how many events.
    future
        How far ahead a row may be, as in `delay`.
    closes
        Whether the end of input promises that nothing follows; by default where nothing can.

    Returns
    -------
    Policy
        For ``punctuate=``; policies are joined with ``&``.

    See Also
    --------
    delay : progress behind the latest event.
    heartbeat : progress by the clock.
    at_end : nothing before the end.
    in_data : punctuation in the rows.
    imported : the progress of another step.

    Examples
    --------
    >>> import caesura as cz
    >>> clicks = cz.from_rows([{"ts": t, "id": 7} for t in (1, 4, 8)], time="ts", punctuate=cz.every(2))
    >>> print(clicks.run().draw())
     LE  RE | id |
      1  2  | 7  | +
      4  5  | 7  | +
      8  9  | 7  | +
    -- definite: time < 8 --
    -- definite: * --
    """
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
    """Progress by a clock that is read every so often, minus a delay.

    Parameters
    ----------
    period
        How often the clock is read.
    delay
        How far behind the clock progress stays.
    idle
        A lane that is silent for so long of clock time holds nothing back any more.
    future
        How far ahead a row may be, as in `delay`.
    closes
        Whether the end of input promises that nothing follows; by default where nothing can.

    Returns
    -------
    Policy
        For ``punctuate=``; policies are joined with ``&``.

    See Also
    --------
    delay : progress behind the latest event.
    every : progress after so many events.
    at_end : nothing before the end.
    in_data : punctuation in the rows.
    imported : the progress of another step.
    ingestion_time : the clock as the time of events.

    Examples
    --------
    >>> import caesura as cz
    >>> print(cz.heartbeat("1s", delay="5s"))
    time: 5s behind the clock, read every 1s; all at the end of input
    """
    return Policy(beat=period, clock_lag=delay, idle=idle, future=future, closes=closes)


@strict
def at_end(*, closes: bool | None = None) -> Policy:
    """No progress until the input ends: what a source promises unless you say otherwise.

    Parameters
    ----------
    closes
        Whether the end of input promises that nothing follows; by default where nothing can: rows in memory
        and single files end, and so does everything that is read once, by a query without a checkpoint. A
        folder, a topic or a table that a query with a checkpoint reads may grow until its next start.

    Returns
    -------
    Policy
        For ``punctuate=``; policies are joined with ``&``.

    See Also
    --------
    delay : progress behind the latest event.
    every : progress after so many events.
    heartbeat : progress by the clock.
    in_data : punctuation in the rows.
    imported : the progress of another step.

    Examples
    --------
    >>> import caesura as cz
    >>> clicks = cz.from_rows([{"ts": t, "id": 7} for t in (1, 4)], time="ts", punctuate=cz.at_end())
    >>> print(clicks.run().draw())
     LE  RE | id |
      1  2  | 7  | +
      4  5  | 7  | +
    -- definite: * --
    """
    return Policy(closes=closes)


@strict
def in_data(column: str = "punct", *, gives: str | None = None, closes: bool | None = None) -> Policy:
    """Punctuation found in the data: rows whose column holds a text such as ``time < 20, id = 4``.

    Parameters
    ----------
    column
        The column of texts; a row in which it is null is an event.
    gives
        The columns that the punctuation speaks of, such as ``"time; id"`` for progress on time and values
        of id one by one: then `check` knows what comes, and punctuation of another form is not taken, but
        told in the late table.
    closes
        Whether the end of input promises that nothing follows; by default where nothing can.

    Returns
    -------
    Policy
        For ``punctuate=``; policies are joined with ``&``.

    See Also
    --------
    delay : progress behind the latest event.
    every : progress after so many events.
    heartbeat : progress by the clock.
    at_end : nothing before the end.
    imported : the progress of another step.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = [{"ts": 1, "id": 7, "punct": None}, {"ts": 0, "id": 0, "punct": "time < 5"}]
    >>> print(cz.from_rows(rows, time="ts", punctuate=cz.in_data("punct")).run().draw())
     LE  RE | id |
      1  2  | 7  | +
    -- definite: time < 5 --
    -- definite: * --
    """
    return Policy(column=column, scheme=gives, closes=closes)


@strict
def imported(node: Node, *, closes: bool | None = None) -> Policy:
    """The progress of another step, taken over as it comes.

    Parameters
    ----------
    node
        The step: ``other.node``.
    closes
        Whether the end of input promises that nothing follows; by default where nothing can.

    Returns
    -------
    Policy
        For ``punctuate=``; policies are joined with ``&``.

    See Also
    --------
    delay : progress behind the latest event.
    every : progress after so many events.
    heartbeat : progress by the clock.
    at_end : nothing before the end.
    in_data : punctuation in the rows.

    Examples
    --------
    >>> import caesura as cz
    >>> clock = cz.from_rows([{"ts": 4, "beat": 1}], time="ts", punctuate=cz.delay(0), name="clock")
    >>> print(cz.imported(clock.node))
    time: when 'clock' gives it; all at the end of input
    """
    return Policy(node=node, closes=closes)


def _count(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise PlanError(
            f"a CTI after each {n!r} events can never come.", remedy="Give a whole number from 1 on."
        ).at("every", here())
    return n
