"""How far a step's input had come at a claim: the definite punctuation of the prefix, taken through the plan.

Windows over events that never end, quantitative expressions, automata and final output show only what
progress lets them. What a step in front has promised is known where it follows from the punctuation
alone; elsewhere the audit says that it does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from caesura.audit.values import NotAuditedError
from caesura.plan import Node
from caesura.punctuation import INFINITY, MIN_TIME, Pattern, Promises
from caesura.testing.oracles.rows import Payload, Rows
from caesura.testing.oracles.tumbling import Horizon, horizon


@dataclass(frozen=True)
class Progress:
    """Definite patterns in the order in which they were given."""

    patterns: tuple[Pattern, ...] = ()
    whole: bool = True
    """Whether all are known; of a stream that is at its end perhaps only that it is."""

    @property
    def cti(self) -> int:
        """The time before which nothing changes any more."""
        return Promises(self.patterns).cti

    @property
    def closed(self) -> bool:
        return self.cti == INFINITY


class Known(NamedTuple):
    """What a step has given for a prefix; no progress where it does not follow from the punctuation."""

    rows: Rows
    progress: Progress | None = None


ENDED = Progress((Pattern(),), whole=False)


def carried(node: Node, inputs: Sequence[Known]) -> Progress | None:
    """What a step has promised, given what its inputs have."""
    found = [known.progress for known in inputs]
    some = [one for one in found if one is not None]
    if some and len(some) == len(found):
        if node.punctuated_by == "rule" and some[0].whole:
            passed = (node.carry(0, pattern) for pattern in some[0].patterns)
            reached = node.together(0, Promises(some[0].patterns))
            joint = (Pattern.before(reached),) if reached > MIN_TIME else ()
            return Progress((*(pattern for pattern in passed if pattern is not None), *joint))
        slowest = min(one.cti for one in some)
        if node.punctuated_by == "slowest" and slowest < INFINITY:
            return Progress(() if slowest == MIN_TIME else (Pattern.before(slowest),))
        if slowest == INFINITY:
            return ENDED
    return None


def needed(node: Node, known: Known, *, why: str, whole: bool = False) -> Progress:
    """The progress at a step's input, or a word on why it is not known."""
    progress = known.progress
    if progress is None or (whole and not progress.whole):
        raise NotAuditedError(
            f"the audit cannot recompute '{node.kind}'{why}: how far its input had come at the claim "
            "does not follow from the sources' punctuation.",
            remedy="Audit the views in front of it, or compare this one by hand.",
        )
    return progress


def reached(node: Node, known: Known) -> Horizon:
    """Where windows of events that never end stop to start, by group; asked for only if there are any."""
    if all(re != INFINITY for _, re, _ in known.rows):
        return _nowhere
    return horizon(needed(node, known, why=" over events that never end", whole=True).patterns)


def _nowhere(_: Payload) -> int:
    return 0


def bound_of(progress: Progress, payload: Payload) -> int:
    """The time before which nothing with these values changes any more."""
    bounds = [p.time_bound for p in progress.patterns if _concerns(p.without_time(), payload)]
    return max((t for t in bounds if t is not None), default=MIN_TIME)


def _concerns(pattern: Pattern, payload: Payload) -> bool:
    row: dict[str, Any] = dict(payload)
    return set(pattern.attributes) <= set(row) and bool(pattern.matches_row(row))
