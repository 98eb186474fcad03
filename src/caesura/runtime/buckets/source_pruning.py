"""What a source need not read, because every bucket stops it at its gate.

Buckets say what they stop in the columns that stage 0 sends; the steps of stage 0 say what that means for
the source's own rows. A row need not be read if no path from the source to any bucket needs it.

Law: what is not read would have been stopped by every gate that it could reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from caesura.io.sources.source import Source
from caesura.plan import Node
from caesura.plan.cut import Exchange, Stages
from caesura.punctuation import Pattern
from caesura.runtime.buckets.stage0 import exchanges_from, path

Ignored = Mapping[str, Sequence[Pattern]]
"""By exchange from a source, what one bucket stops."""
Fit = Literal["exact", "wide"]
"""Whether a pattern names exactly the rows whose every output matches, or only lets none of them escape."""


def unneeded_rows(
    stages: Stages, source: Source, buckets: Mapping[tuple[int, int], Ignored], count: int
) -> list[Pattern]:
    """The rows of a source that nobody wants, given what each (stage, bucket) stops at its gates."""
    found: list[Pattern] | None = None
    for exchange in exchanges_from(stages, source):
        shared = _shared(exchange, buckets, count)
        patterns = [p for p in (over_source(exchange, source, q) for q in shared) if p is not None]
        found = patterns if found is None else _both(found, patterns)
        if not found:
            return []
    return found or []


def _shared(exchange: Exchange, buckets: Mapping[tuple[int, int], Ignored], count: int) -> list[Pattern]:
    """What all buckets of a stage stop of an exchange."""
    found: list[Pattern] | None = None
    for bucket in range(count):
        stopped = list(buckets.get((exchange.target_stage, bucket), {}).get(exchange.label, ()))
        found = stopped if found is None else _both(found, stopped)
    return found or []


def _both(some: Sequence[Pattern], others: Sequence[Pattern]) -> list[Pattern]:
    """The rows that are in one pattern of each."""
    met = (a.intersect(b) for a in some for b in others)
    return list(dict.fromkeys(p for p in met if p is not None and not p.is_empty))


def over_source(exchange: Exchange, source: Source, pattern: Pattern, fit: Fit = "exact") -> Pattern | None:
    """A pattern behind the steps of stage 0 over the source's own rows; None where there is no saying."""
    found: Pattern | None = pattern
    for node, port in reversed(path(exchange.producer, source)):
        if found is not None:
            found = _over_input(node, port, found, fit)
    return found


def _over_input(node: Node, port: int, pattern: Pattern, fit: Fit) -> Pattern | None:
    for rule in node.feedback() or ():
        translation = rule.ports[port] if port < len(rule.ports) else None
        if translation is not None:
            above = translation.up(pattern) if fit == "exact" else translation.wide(pattern)
            if above is not None:
                return above
    return None
