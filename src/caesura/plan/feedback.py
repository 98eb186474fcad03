"""What a step does about feedback, as values that the engine, explain and contracts all read.

A rule says how a pattern over the output reads over each input, and what follows from it:

     rows     every input row makes output of its own: covered rows are stopped at the input or the output
     sides    rows meet in pairs: covered rows of a side are stopped there, and let go from its state
     groups   rows make results together: whole results are given up, with their state, and their input
              is stopped; the output is guarded too, so that no part of a result shows

A pattern that no rule can translate is guarded at the output. A step without a rule stops feedback.

Law: a translation takes input rows only if all output that they could change is covered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa

from caesura.errors import PatternError
from caesura.plan.lifetimes import Lifetimes, Unchanged
from caesura.plan.properties import Properties
from caesura.punctuation import ANY, INFINITY, TIME, Image, Pattern, SchemaMapping, Values, ge, gt, le, lt

LE, RE = "LE", "RE"
Means = Literal["rows", "sides", "groups"]
Kinds = frozenset[tuple[str, ...]]
"""Kinds of definite punctuation, each by the attributes it names."""


@dataclass(frozen=True)
class Translation:
    """How output attributes read over an input; what has no image cannot be sent up."""

    mapping: SchemaMapping
    lifetimes: Lifetimes
    known: Properties
    """What holds for the input: an end that may change cannot be spoken of."""

    @staticmethod
    def of(names: Iterable[str], known: Properties, lifetimes: Lifetimes | None = None) -> Translation:
        """Columns that keep their names."""
        mapping = SchemaMapping({name: Image(name) for name in names}, time=None)
        return Translation(mapping, lifetimes or Unchanged(), known)

    @cached_property
    def same(self) -> frozenset[str]:
        """The attributes that read the same over the input."""
        starts = {LE} if isinstance(self.lifetimes, Unchanged) else set()
        if self.lifetimes.back(ANY, ANY, points=self.known.points) != {}:
            return frozenset()
        return frozenset({name for name, image in self.mapping.images if image == Image(name)} | starts)

    def up(self, pattern: Pattern) -> Pattern | None:
        """The input rows whose every output matches; None where there is no saying."""
        if RE not in pattern and self.same.issuperset(pattern.attributes):
            return pattern
        payload = Pattern(**{n: v for n, v in pattern.items() if n not in (LE, RE)})
        mapped = self.mapping.up(payload)
        times = self.lifetimes.back(pattern[LE], pattern[RE], points=self.known.points)
        if mapped is None or times is None:
            return None
        ends = times.get(RE, ANY)
        if not ends.is_any and not self.known.fixed_ends:
            return None
        if not ends.is_any and self.known.points:
            starts = times.get(LE, ANY)
            times = {LE: ends.shift(-1) if starts.is_any else starts.intersect(ends.shift(-1))}
        return Pattern(**dict(mapped.items()), **times)

    def wide(self, pattern: Pattern) -> Pattern | None:
        """A pattern that no matching row escapes, for what only asks for order; None for everything."""
        kept = {}
        for name, values in pattern.items():
            alone = self.up(Pattern(**{name: values}))
            if alone is not None and name not in (LE, RE):
                kept.update(dict(alone.items()))
        return Pattern(**kept) if kept else None


@dataclass(frozen=True)
class FeedbackRule:
    """How a step answers that some of its output will be ignored."""

    ports: tuple[Translation | None, ...] = ()
    """Per input; None where nothing may be sent."""
    means: Means = "rows"
    guard: Literal["input", "output"] = "output"
    """Where covered rows are stopped, for `rows`."""
    purges: bool = False
    """Whether state is let go at once; else it stays until punctuation frees it."""
    bounds: tuple[tuple[str, Literal["up", "down"]], ...] = ()
    """Output columns that only grow (or only shrink) while a group is open, on insert-only input."""
    group: tuple[str, ...] = ()
    """The columns that a group is known by."""

    def for_good(self, pattern: Pattern) -> Pattern | None:
        """The part of a pattern that a result, once in it, never leaves; None where there is none.

        >>> rule = FeedbackRule(means="groups", group=("id",), bounds=(("n", "up"),))
        >>> print(rule.for_good(Pattern(id=4, n=ge(50))), rule.for_good(Pattern(n=lt(50))))
        id = 4, n >= 50 None
        """
        directions = dict(self.bounds)
        kept: dict[str, Values] = {}
        for name, values in pattern.items():
            if name in (*self.group, LE, RE):
                kept[name] = values
                continue
            direction, parts = directions.get(name), values.intervals
            if direction is None or not parts:
                return None
            last = parts[-1] if direction == "up" else parts[0]
            if (last.hi if direction == "up" else last.lo) is not None:
                return None
            edge = last.lo if direction == "up" else last.hi
            if edge is None:
                return None
            closed = last.lo_closed if direction == "up" else last.hi_closed
            if direction == "up":
                kept[name] = ge(edge) if closed else gt(edge)
            else:
                kept[name] = le(edge) if closed else lt(edge)
        return Pattern(**kept) if any(name in directions for name in kept) else None

    def up(self, pattern: Pattern) -> tuple[Pattern | None, ...] | None:
        """The pattern over each input; None if the rule does not fit it.

        A rule for groups fits only if every input has an image: results are given up whole.
        """
        found = tuple(None if port is None else port.up(pattern) for port in self.ports)
        images = [f for port, f in zip(self.ports, found, strict=True) if port is not None]
        fits = all(f is not None for f in images) if self.means == "groups" else any(f for f in images)
        empty = [f for f in images if f is not None and f.is_empty]
        return found if images and fits and len(empty) < len(images) else None


@dataclass(frozen=True)
class FeedbackAction:
    """What a step does about output that will be ignored: the run, contracts and explain all ask this."""

    pattern: Pattern
    rule: FeedbackRule | None = None
    """None where no rule fits: then the output is guarded, and no more."""
    upstream: tuple[tuple[int, Pattern], ...] = ()
    """Per input with an image, the rows of it that are not needed; at least one such row is possible."""

    @property
    def gives_up(self) -> bool:
        """Whether results are given up whole, with their state."""
        return self.rule is not None and self.rule.means == "groups"

    @property
    def at_output(self) -> bool:
        """Whether rows that match are kept back at the output."""
        if self.rule is None or self.rule.means == "groups":
            return True
        return self.rule.guard == "output" if self.rule.means == "rows" else not self.rule.purges

    @property
    def at_inputs(self) -> bool:
        """Whether the rows of `upstream` are stopped at their inputs."""
        return self.rule is not None and (self.rule.means != "rows" or self.rule.guard == "input")

    @property
    def joint(self) -> bool:
        """Whether rows make results together, so that what is stopped must be stopped throughout."""
        return self.rule is not None and self.rule.means != "rows"

    @property
    def purges(self) -> bool:
        """Whether such rows are let go of at once."""
        return self.at_inputs and not self.gives_up and self.rule is not None and self.rule.purges


def actions(rules: Iterable[FeedbackRule], pattern: Pattern) -> Iterator[FeedbackAction]:
    """What each rule that fits a pattern asks for, the best first, then what is done where none does."""
    for rule in rules:
        found = rule.up(pattern)
        if found is not None:
            upstream = [(port, p) for port, p in enumerate(found) if p is not None and not p.is_empty]
            yield FeedbackAction(pattern, rule, tuple(upstream))
    yield FeedbackAction(pattern)


@dataclass(frozen=True)
class OwnFeedback:
    """One form of assumed feedback that a step sends by itself, shown by a sample."""

    port: int
    pattern: Pattern
    standing: bool = False
    """Whether it counts until it is withdrawn."""
    moved_by: tuple[int, ...] | None = None
    """The inputs one of which must promise time for it to be said again and again; None where none must."""


@dataclass(frozen=True)
class Switches:
    """What a step may do about feedback: act on it, and tell the steps above."""

    exploit: bool = True
    propagate: bool = True


OUTPUT_ONLY: tuple[FeedbackRule, ...] = (FeedbackRule(),)
"""For steps where feedback stops: what it covers is kept back at their output."""


def row_rule(
    names: Iterable[str],
    known: Properties,
    lifetimes: Lifetimes | None = None,
    *,
    guard: Literal["input", "output"] = "output",
) -> tuple[FeedbackRule, ...]:
    """The rule of a step that keeps columns and looks at one row at a time."""
    return (FeedbackRule((Translation.of(names, known, lifetimes),), "rows", guard),)


def check_feedback(pattern: Pattern, schema: pa.Schema) -> Pattern:
    """The pattern in the columns' own types; refuses names that the stream does not have."""
    if TIME in pattern:
        raise PatternError(
            "feedback is about rows, and rows have no 'time'.",
            remedy="Write LE (where a row starts) or RE (where it ends) instead of time.",
        )
    return pattern.check(schema, ticks=(LE, RE))


def as_definite(pattern: Pattern) -> Pattern:
    """The inserts that a feedback pattern matches, as definite punctuation speaks of them, or more."""
    constraints = {n: v for n, v in pattern.items() if n not in (LE, RE)}
    times = pattern[LE]
    ends = pattern[RE]
    if not ends.is_any and ends.intervals and ends.intervals[-1].hi is not None:
        earlier = lt(int(ends.intervals[-1].hi))
        times = earlier if times.is_any else times.intersect(earlier)
    return Pattern(**constraints, **({} if times.is_any else {TIME: times}))


def could_go(pattern: Pattern, kinds: Kinds) -> bool:
    """Whether punctuation of these kinds can ever cover what a guard matches.

    >>> time = frozenset({("time",)})
    >>> could_go(Pattern(id=4), time), could_go(Pattern(id=4, LE=lt(9)), time)
    (False, True)
    """
    seen = as_definite(pattern)
    bounded = _bounded(seen[TIME]) if TIME in seen else False
    there = {a for a in seen.attributes if a != TIME} | ({TIME} if bounded else set())
    return any(kind and ("*" in kind or set(kind) <= there) for kind in kinds)


def _bounded(times: Values) -> bool:
    parts = times.intervals
    return not parts or (parts[-1].hi is not None and parts[-1].hi < INFINITY)
