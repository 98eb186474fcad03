"""What a source need not read, because every bucket stops it at its gate.

Buckets say what they stop in the columns that stage 0 sends; the steps of stage 0 say what that means for
the source's own rows. A row need not be read if no way from the source to any bucket wants it.

Law: what is not read would have been stopped by every gate that it could reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caesura.io.sources.source import Source
from caesura.plan import Node
from caesura.plan.cut import Exchange, Stages
from caesura.punctuation import Pattern
from caesura.runtime.buckets.stage0 import path, root_of

Ignored = Mapping[str, Sequence[Pattern]]
"""By way from a source, what one bucket stops."""


def unread(
    stages: Stages, source: Source, buckets: Mapping[tuple[int, int], Ignored], count: int
) -> list[Pattern]:
    """The rows of a source that nobody wants, given what each (stage, bucket) stops at its gates."""
    ways = [e for stage in stages.stages for e in stage.arrivals if e.source_stage == 0]
    mine = [e for e in ways if root_of(e.producer, stages) is source]
    found: list[Pattern] | None = None
    for way in mine:
        patterns = [
            p for p in (_above(way, source, q) for q in _shared(way, buckets, count)) if p is not None
        ]
        found = patterns if found is None else _both(found, patterns)
        if not found:
            return []
    return found or []


def _shared(way: Exchange, buckets: Mapping[tuple[int, int], Ignored], count: int) -> list[Pattern]:
    """What all buckets of a stage stop of a way."""
    found: list[Pattern] | None = None
    for bucket in range(count):
        said = list(buckets.get((way.target_stage, bucket), {}).get(way.label, ()))
        found = said if found is None else _both(found, said)
    return found or []


def _both(some: Sequence[Pattern], others: Sequence[Pattern]) -> list[Pattern]:
    """The rows that are in one pattern of each."""
    met = (a.intersect(b) for a in some for b in others)
    return list(dict.fromkeys(p for p in met if p is not None and not p.is_empty))


def _above(way: Exchange, source: Source, pattern: Pattern) -> Pattern | None:
    """A pattern behind the steps of stage 0 as it reads over the source's own rows."""
    found: Pattern | None = pattern
    for node, port in reversed(path(way.producer, source)):
        if found is None:
            return None
        found = _up(node, port, found)
    return found


def _up(node: Node, port: int, pattern: Pattern) -> Pattern | None:
    for rule in node.feedback() or ():
        told = rule.ports[port] if port < len(rule.ports) else None
        above = None if told is None else told.up(pattern)
        if above is not None:
            return above
    return None
