"""What users choose: how consistent states are found or made, and what of the output they see.

>>> print(tokens(every=1000))
tokens every 1000 events
>>> print(tokens(every="2s", release="consistent"))
tokens every 2s; output in consistent states only
>>> print(heeding())
heeding
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from caesura.errors import ExprError, PlanError
from caesura.expr.durations import micros
from caesura.misuse import strict
from caesura.plan import Duration, here

Release = Literal["at once", "consistent"]
Group = Literal["query", "none"]


@dataclass(frozen=True)
class Mode:
    """How claims come about."""

    release: Release = "at once"
    """Whether output leaves as it comes, with claims in between, or only in consistent states."""

    def __str__(self) -> str:
        held = "; output in consistent states only" if self.release == "consistent" else ""
        return self.words() + held

    def words(self) -> str:
        """The mode as it is shown."""
        raise NotImplementedError


@dataclass(frozen=True)
class Tokens(Mode):
    """Sources put tokens into their streams; steps align them; one at the output is a claim."""

    every: int | None = None
    """So many events; None where time or the tuner decides."""
    period: int | None = None
    """So many microseconds."""
    sync_group: Group = "query"
    saves: bool = False
    """Whether each token is also a barrier for a snapshot."""

    def words(self) -> str:
        """The mode as it is shown."""
        if self.every is not None:
            return f"tokens every {self.every} events"
        if self.period is not None:
            return f"tokens every {self.period / 1e6:g}s"
        return "tokens, self-tuned"

    @property
    def tuned(self) -> bool:
        """Whether the period follows what claims cost."""
        return self.every is None and self.period is None


@dataclass(frozen=True)
class Synchronised(Mode):
    """Each source puts its token where its CTI passes the same multiple of a period of stream time."""

    every: Duration = 1
    saves: bool = False

    def words(self) -> str:
        """The mode as it is shown."""
        return f"synchronised tokens every {self.every} of stream time"


@dataclass(frozen=True)
class Heeding(Mode):
    """Labels per event tell when nothing in flight can add to what has left."""

    scan: Literal["multiset", "naive"] = "multiset"
    """The naive scan looks at every label in every queue; it is there to be measured."""

    def words(self) -> str:
        """The mode as it is shown."""
        return "heeding"


@dataclass(frozen=True)
class Draining(Mode):
    """Each item is worked off before the next one enters: every state is consistent, and slow to reach."""

    def words(self) -> str:
        """The mode as it is shown."""
        return "draining"


@strict
def tokens(
    every: int | str | timedelta | None = None,
    *,
    release: Release = "at once",
    sync_group: Group = "query",
    saves: bool = False,
) -> Tokens:
    """Tokens every n events (a number) or every d of time (a duration); tuned while it runs by default.

    ``sync_group="query"`` lets all sources share the period; with ``"none"`` each counts for itself. With
    ``saves`` each token is also the barrier of a snapshot.
    """
    _check_release(release, "tokens")
    if sync_group not in ("query", "none"):
        raise PlanError(
            f"sync_group={sync_group!r} names no group of sources.", remedy="Write 'query' or 'none'."
        ).at("tokens", here())
    if every is None:
        return Tokens(release, sync_group=sync_group, saves=saves)
    if isinstance(every, int):
        if every < 1:
            raise PlanError(
                f"a token every {every} events is none.", remedy="Give a number of events above 0."
            ).at("tokens", here())
        return Tokens(release, every=every, sync_group=sync_group, saves=saves)
    return Tokens(release, period=_span(every, "tokens"), sync_group=sync_group, saves=saves)


@strict
def synchronised(every: Duration, *, release: Release = "at once", saves: bool = False) -> Synchronised:
    """Claims at times t, multiples of a period of stream time: all sources have promised all before t."""
    _check_release(release, "synchronised")
    return Synchronised(release, every, saves)


@strict
def heeding(*, release: Release = "at once", scan: Literal["multiset", "naive"] = "multiset") -> Heeding:
    """Claims where labels tell that the output is consistent, without touching the schedule."""
    _check_release(release, "heeding")
    return Heeding(release, scan)


@strict
def draining(*, release: Release = "at once") -> Draining:
    """One item at a time through the whole plan: for tests and for small streams."""
    _check_release(release, "draining")
    return Draining(release)


def _check_release(release: str, step: str) -> None:
    if release not in ("at once", "consistent"):
        raise PlanError(
            f"release={release!r} is no way to let output go.", remedy="Write 'at once' or 'consistent'."
        ).at(step, here())


def _span(every: str | timedelta, step: str) -> int:
    try:
        span = micros(every)
    except ExprError:
        span = 0
    if span <= 0:
        raise PlanError(
            f"{every!r} is no period for tokens.", remedy="Write a number of events, or a time such as '1s'."
        ).at(step, here())
    return span
