"""What users choose: how consistent states are found or made, and what of the output they see.

>>> print(tokens(every=1000))
tokens every 1000 events
>>> print(tokens(every="2s", release="consistent"))
tokens every 2s; output in consistent states only
>>> print(heeding())
heeding
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from caesura.consistency.levels import Level
from caesura.errors import ExprError, PlanError
from caesura.expr.durations import micros
from caesura.misuse import check_word, strict
from caesura.plan import Duration, here

Release = Literal["at once", "consistent"]
Group = Literal["query", "none"]
Groups = tuple[tuple[str, tuple[str, ...]], ...]
"""Names of groups of sources, each with the sources that belong to it."""
COST = 0.03
"""The share of the time that tokens may take, where nothing else is asked for."""


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
    sync_group: Group | Groups = "query"
    saves: bool = False
    """Whether each token is also a barrier for a snapshot."""
    cost: float = COST
    """The share of the work that tuned tokens may take."""
    latency: int | None = None
    """How many microseconds an event may wait for the claim that covers it; the cost then follows."""
    first: int | None = None
    """The period that tuning begins with."""

    def words(self) -> str:
        """The mode as it is shown."""
        if self.every is not None:
            return f"tokens every {self.every} events"
        if self.period is not None:
            return f"tokens every {self.period / 1e6:g}s"
        if self.latency is not None:
            return f"tokens, tuned to {self.latency / 1e6:g}s"
        return "tokens, self-tuned" + ("" if self.cost == COST else f" to {self.cost:.0%} of the work")

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
    level: Level = Level.PREFIX_CONSISTENT

    def words(self) -> str:
        """The mode as it is shown."""
        return "heeding" if self.level is Level.PREFIX_CONSISTENT else f"heeding, {self.level}"


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
    sync_group: str | Mapping[str, Sequence[str]] = "query",
    saves: bool = False,
    cost: float | None = None,
    latency: str | timedelta | None = None,
    first: int | None = None,
) -> Tokens:
    """Claims where marks that sources put into their streams have come out of all outputs.

    Parameters
    ----------
    every
        After how many events (a number) or how much time (a duration) a token is put in; by default that is
        tuned while it runs.
    release
        Whether output leaves ``"at once"``, with claims in between, or in ``"consistent"`` states only.
    sync_group
        ``"query"``: all sources share the period. ``"none"``: each counts for itself. ``{"orders": ["east",
        "west"]}``: those of a group do, by name.
    saves
        Whether each token is also the barrier of a snapshot.
    cost
        What it is tuned to: the share of the work that tokens may take, 0.03 by default; or
    latency
        how long an event may wait for the claim that covers it.
    first
        The period that tuning begins with, in events.

    Returns
    -------
    Tokens
        For ``claims=``. What tuning comes to is in ``query.token_figures()``.

    See Also
    --------
    caesura.runtime.Query.token : a token now.
    heeding : claims where labels meet.
    synchronised : claims at times that all sources reach.
    draining : claims when nothing is on its way.
    pipeline : views that share their claims.

    Examples
    --------
    >>> import caesura as cz
    >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
    >>> for claim in moves.run(claims=cz.tokens(every=1)).claims:
    ...     print(claim)
    claim 1: input-prefix consistent for read 1 row + 0 punctuations
    claim 2: input-prefix consistent for read 2 rows + 0 punctuations
    claim 3: input-prefix consistent for read 2 rows + 1 punctuation (*)
    """
    _check_release(release, "tokens")
    groups = _groups(sync_group)
    if every is None:
        span = None if latency is None else _span(latency, "tokens")
        _check_goal(cost, span, first)
        return Tokens(
            release, None, None, groups, saves, COST if cost is None else cost, latency=span, first=first
        )
    if cost is not None or latency is not None or first is not None:
        raise PlanError(
            "a period that is given is not tuned.", remedy="Leave out every=, or cost=, latency= and first=."
        ).at("tokens", here())
    if isinstance(every, int):
        if every < 1:
            raise PlanError(
                f"a token every {every} events is none.", remedy="Give a number of events above 0."
            ).at("tokens", here())
        return Tokens(release, every=every, sync_group=groups, saves=saves)
    return Tokens(release, period=_span(every, "tokens"), sync_group=groups, saves=saves)


def _check_goal(cost: float | None, latency: int | None, first: int | None) -> None:
    """Refuses goals that nothing can be tuned to."""
    if cost is not None and latency is not None:
        raise PlanError(
            "tokens are tuned to a cost or to a latency.", remedy="Give one of cost= and latency=."
        ).at("tokens", here())
    if cost is not None and not 0.0 < cost < 1.0:
        raise PlanError(
            f"tokens cannot take {cost} of the work.", remedy="Give a share between 0 and 1, such as 0.03."
        ).at("tokens", here())
    if first is not None and first < 1:
        raise PlanError(
            f"tuning cannot begin with a token every {first} events.", remedy="Give a number above 0."
        ).at("tokens", here())


def _groups(given: str | Mapping[str, Sequence[str]]) -> Group | Groups:
    if isinstance(given, Mapping):
        groups = tuple((name, tuple(sources)) for name, sources in given.items())
        named = [source for _, sources in groups for source in sources]
        twice = next((source for source in named if named.count(source) > 1), None)
        if twice is not None:
            raise PlanError(f"'{twice}' is in two groups of sources.", remedy="Name each source once.").at(
                "tokens", here()
            )
        return groups
    if given not in ("query", "none"):
        raise PlanError(
            f"sync_group={given!r} names no group of sources.",
            remedy="Write 'query' or 'none', or name groups: {'orders': ['east', 'west']}.",
        ).at("tokens", here())
    return "query" if given == "query" else "none"


@strict
def synchronised(every: Duration, *, release: Release = "at once", saves: bool = False) -> Synchronised:
    """Claims at times that are multiples of a period: all sources have promised all before them.

    Parameters
    ----------
    every
        The period, of stream time.
    release
        Whether output leaves ``"at once"``, with claims in between, or in ``"consistent"`` states only.
    saves
        Whether each token is also the barrier of a snapshot.

    Returns
    -------
    Synchronised
        For ``claims=``.

    See Also
    --------
    tokens : claims where sources put marks.
    heeding : claims where labels meet.
    draining : claims when nothing is on its way.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = [{"t": 1, "n": 2}, {"t": 12, "n": 3}]
    >>> moves = cz.from_rows(rows, time="t", punctuate=cz.delay(0))
    >>> for claim in moves.run(claims=cz.synchronised(10)).claims:
    ...     print(claim)
    claim 1: synchronised input-prefix consistent at time 10 for read 2 rows + 1 punctuation (time < 12)
    claim 2: synchronised input-prefix consistent at the end of time for read 2 rows + 2 punctuations (*)
    """
    _check_release(release, "synchronised")
    return Synchronised(release, every, saves)


@strict
def heeding(
    *,
    release: Release = "at once",
    scan: Literal["multiset", "naive"] = "multiset",
    level: Level | str = Level.PREFIX_CONSISTENT,
) -> Heeding:
    """Claims where labels of events tell that the output is consistent, without touching the schedule.

    Parameters
    ----------
    release
        Whether output leaves ``"at once"``, with claims in between, or in ``"consistent"`` states only.
    scan
        How labels are looked at; ``"naive"`` is there to be measured.
    level
        A weaker level, ``"update-complete"`` or ``"input-prefix update-complete"``: its states are more,
        and say only that the rows that an input event sets off are all there, or none.

    Returns
    -------
    Heeding
        For ``claims=``.

    See Also
    --------
    tokens : claims where sources put marks.
    synchronised : claims at times that all sources reach.
    draining : claims when nothing is on its way.

    Examples
    --------
    >>> import caesura as cz
    >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
    >>> print(moves.run(claims=cz.heeding()).claims[-1])
    claim 2: input-prefix consistent for read 2 rows + 1 punctuation (*)
    """
    _check_release(release, "heeding")
    check_word(scan, ("multiset", "naive"), "way to look at labels", "heeding")
    return Heeding(release, scan, _heeded(level))


def _heeded(level: Level | str) -> Level:
    words = {str(each): each for each in Level if each is not Level.SYNCHRONISED}
    if str(level) not in words:
        raise PlanError(
            f"heeding finds no states of level {level!r}.", remedy=f"Take one of {', '.join(words)}."
        ).at("heeding", here())
    return words[str(level)]


@strict
def draining(*, release: Release = "at once") -> Draining:
    """Claims after every item: one at a time goes through the whole plan. For tests and small streams.

    Parameters
    ----------
    release
        Whether output leaves ``"at once"``, with claims in between, or in ``"consistent"`` states only.

    Returns
    -------
    Draining
        For ``claims=``.

    See Also
    --------
    tokens : claims where sources put marks.
    heeding : claims where labels meet.
    synchronised : claims at times that all sources reach.

    Examples
    --------
    >>> import caesura as cz
    >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
    >>> print(moves.run(claims=cz.draining()).claims[0])
    claim 1: input-prefix consistent for read 1 row + 0 punctuations
    """
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
    except ExprError as error:
        raise PlanError(error.problem, remedy=error.remedy).at(step, here()) from None
    if span <= 0:
        raise PlanError(
            f"{every!r} is no period for tokens.", remedy="Write a number of events, or a time such as '1s'."
        ).at(step, here())
    return span
