"""A query at a moment, as monitors see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from caesura.runtime.metrics.status import BucketLoad, Status


@dataclass(frozen=True)
class Figures:
    """A query at a moment, as monitors see it."""

    name: str
    status: Status
    active: bool = True
    timed: bool = True
    """Whether times are moments; plain integers have no seconds."""
    began: float = 0.0
    """When it was started, in seconds since 1970."""
    starts: int = 1
    """How often a query was started on its checkpoint."""
    claims: int | None = None
    """How many claims it has made, where it makes any."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """What the last epoch spent its seconds on."""
    buckets: Mapping[tuple[int, int], BucketLoad] = field(default_factory=dict)
    """What each bucket of each stage has taken and holds."""
