"""A claim: the output up to here is consistent, at this level, for this prefix of every source.

>>> some = Prefix(rows=3, punctuations=1, offsets={0: 3}, definite=(Pattern.before(20),))
>>> claim = Claim(7, Level.PREFIX_CONSISTENT, {"clicks": some})
>>> print(claim)
claim 7: input-prefix consistent for clicks 3 rows + 1 punctuation (time < 20)
>>> Claim.from_json(claim.to_json()) == claim
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from caesura.consistency.levels import Level
from caesura.misuse import checked_methods
from caesura.punctuation import INFINITY, Pattern, Punctuation

Covers = Literal["all", "before"]


@checked_methods
@dataclass(frozen=True)
class Prefix:
    """How much of one source: events and punctuations that entered, and where to read on."""

    rows: int | None = 0
    """None where they are not counted: on Spark, where `log` says what was read."""
    punctuations: int | None = 0
    """None as with rows."""
    offsets: Mapping[int, int] = field(default_factory=dict)
    """The next offset of each lane; empty for a stream that is fed by hand."""
    definite: tuple[Pattern, ...] = ()
    """What the source had promised."""
    closed: bool = False
    """Whether this is all that the source has."""
    log: str = ""
    """On Spark, the source's entry in the offset log."""

    @property
    def items(self) -> int | None:
        """Events and punctuations together; None where they are not counted."""
        return None if self.rows is None or self.punctuations is None else self.rows + self.punctuations

    def covers(self, other: Prefix) -> bool:
        """Whether another is a prefix of this one.

        Parameters
        ----------
        other
            The other prefix of the same source.

        Returns
        -------
        bool
            Whether it is.

        Examples
        --------
        >>> import caesura as cz
        >>> cz.Prefix(rows=5).covers(cz.Prefix(rows=3))
        True
        """
        lanes = all(self.offsets.get(lane, 0) >= at for lane, at in other.offsets.items())
        return _reaches(self.rows, other.rows) and _reaches(self.punctuations, other.punctuations) and lanes

    def to_json(self) -> dict[str, Any]:
        """The prefix as plain values, to be written down.

        Returns
        -------
        dict
            For ``from_json``.

        Examples
        --------
        >>> import caesura as cz
        >>> cz.Prefix(rows=5).to_json()["rows"]
        5
        """
        return {
            "rows": self.rows,
            "punctuations": self.punctuations,
            "offsets": {str(lane): at for lane, at in self.offsets.items()},
            "definite": [pattern.to_json() for pattern in self.definite],
            "closed": self.closed,
            "log": self.log,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Prefix:
        """The prefix that ``to_json`` wrote.

        Parameters
        ----------
        data
            Plain values.

        Returns
        -------
        Prefix
            The prefix.

        Examples
        --------
        >>> import caesura as cz
        >>> cz.Prefix.from_json(cz.Prefix(rows=5).to_json()) == cz.Prefix(rows=5)
        True
        """
        counted = not data["log"] or data["rows"]  # an earlier version wrote 0 on Spark
        return Prefix(
            data["rows"] if counted else None,
            data["punctuations"] if counted else None,
            {int(lane): at for lane, at in data["offsets"].items()},
            tuple(Pattern.from_json(pattern) for pattern in data["definite"]),
            data["closed"],
            data["log"],
        )

    def __str__(self) -> str:
        text = ", ".join(map(str, self.definite))
        if self.rows is None or self.punctuations is None:
            return f"up to {self.log}"
        return f"{_plural(self.rows, 'row')} + {_plural(self.punctuations, 'punctuation')}" + (
            f" ({text})" if text else ""
        )


def _reaches(mine: int | None, other: int | None) -> bool:
    """Whether a count is no less than another, as far as both are known."""
    return mine is None or other is None or mine >= other


@checked_methods
@dataclass(frozen=True)
class Claim:
    """What an output state answers for."""

    number: int
    level: Level
    prefix: Mapping[str, Prefix]
    time: int | None = None
    """The time t of a synchronised claim."""
    under: tuple[Punctuation, ...] = ()
    """The feedback in force: the state may lack what it lets go."""
    output: Mapping[str, int] = field(default_factory=dict)
    """How many rows, inserts and retracts alike, each view has given up to here."""
    covers: Covers = "all"
    """Whether it answers for the whole state, or for what lies before its time."""
    plans: tuple[int, ...] = (1,)
    """The plans that have made the state, one from where the other stopped; one alone has made all of it."""
    generation: int = 1
    """Which generation of the output it is about."""

    @property
    def plan(self) -> int:
        """The number of the plan that has made it."""
        return self.plans[-1]

    def at(self, output: Mapping[str, int]) -> Claim:
        """The same claim, knowing how far each view is.

        Parameters
        ----------
        output
            How many rows each view has given, by view.

        Returns
        -------
        Claim
            The claim.

        Examples
        --------
        >>> import caesura as cz
        >>> claim = cz.Claim(7, cz.Level.PREFIX_CONSISTENT, {"clicks": cz.Prefix(rows=3)})
        >>> claim.at({"out": 3}).output
        {'out': 3}
        """
        return replace(self, output=dict(output))

    def follows(self, earlier: Claim) -> bool:
        """Whether its prefixes take in an earlier claim's.

        Parameters
        ----------
        earlier
            The other claim.

        Returns
        -------
        bool
            Whether they do, for every source of the earlier one. Of two plans the sources that both have
            count, by their offsets: another plan may take other rows for late.

        Examples
        --------
        >>> import caesura as cz
        >>> one = cz.Claim(1, cz.Level.PREFIX_CONSISTENT, {"clicks": cz.Prefix(rows=3)})
        >>> two = cz.Claim(2, cz.Level.PREFIX_CONSISTENT, {"clicks": cz.Prefix(rows=5)})
        >>> two.follows(one), one.follows(two)
        (True, False)
        """
        if self.plan != earlier.plan:
            both = [(self.prefix[s], p) for s, p in earlier.prefix.items() if s in self.prefix]
            return all(Prefix(offsets=now.offsets).covers(Prefix(offsets=p.offsets)) for now, p in both)
        return all(
            source in self.prefix and self.prefix[source].covers(prefix)
            for source, prefix in earlier.prefix.items()
        )

    def to_json(self) -> dict[str, Any]:
        """The claim as plain values, to be written down.

        Returns
        -------
        dict
            For ``from_json``.

        Examples
        --------
        >>> import caesura as cz
        >>> claim = cz.Claim(7, cz.Level.PREFIX_CONSISTENT, {"clicks": cz.Prefix(rows=3)})
        >>> claim.to_json()["level"]
        'PREFIX_CONSISTENT'
        """
        return {
            "claim": self.number,
            "level": self.level.name,
            "prefix": {source: prefix.to_json() for source, prefix in self.prefix.items()},
            "time": self.time,
            "under": [message.to_json() for message in self.under],
            "output": dict(self.output),
            "covers": self.covers,
            **self._made_by(),
        }

    def _made_by(self) -> dict[str, Any]:
        """Which plans and which generation, where there has been another: earlier versions wrote neither."""
        first = self.plans == (1,) and self.generation == 1
        return {} if first else {"plans": list(self.plans), "generation": self.generation}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Claim:
        """The claim that ``to_json`` wrote.

        Parameters
        ----------
        data
            Plain values.

        Returns
        -------
        Claim
            The claim.

        Examples
        --------
        >>> import caesura as cz
        >>> claim = cz.Claim(7, cz.Level.PREFIX_CONSISTENT, {"clicks": cz.Prefix(rows=3)})
        >>> cz.Claim.from_json(claim.to_json()) == claim
        True
        """
        return Claim(
            data["claim"],
            Level[data["level"]],
            {source: Prefix.from_json(prefix) for source, prefix in data["prefix"].items()},
            data["time"],
            tuple(Punctuation.from_json(message) for message in data["under"]),
            data["output"],
            data["covers"],
            tuple(data.get("plans", (1,))),
            data.get("generation", 1),
        )

    def __str__(self) -> str:
        when = "the end of time" if self.time == INFINITY else f"time {self.time}"
        at = "" if self.time is None else f" {'at' if self.covers == 'all' else 'before'} {when}"
        under = f", under {'; '.join(map(str, self.under))}" if self.under else ""
        sources = "; ".join(f"{source} {prefix}" for source, prefix in self.prefix.items())
        return f"claim {self.number}: {self.level}{at} for {sources}{under}{self._by()}"

    def _by(self) -> str:
        if len(self.plans) == 1:
            return "" if self.plan == 1 else f", by plan {self.plan}"
        return f", by plans {', then '.join(map(str, self.plans))}, each on what it has read"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def broken_order(claims: Iterable[Claim]) -> Claim | None:
    """The first claim that takes back part of the prefix of the one before it; None where none does."""
    before: Claim | None = None
    for claim in claims:
        if before is not None and not claim.follows(before):
            return claim
        before = claim
    return None
