"""What the state of a bucket belongs to: a query, a place in it, and a plan. It lies among its chunks.

Whoever restores a bucket compares, whatever else looks after the checkpoint. So state is never taken up by
another query, by another number of buckets, or by a plan that keeps what this state does not hold.

>>> made = StateOwner("a", 1, 0, 2, KeptPlan(2, {"s": "clicks"}, {"1:t": "tumbling 10"}))
>>> StateOwner.of_json(made.to_json(), made.plan.to_json()) == made
True
>>> made.refuse_unless_own(made)
>>> print(made.difference(dataclasses.replace(made, buckets=3)))
the state in this checkpoint was kept in 2 buckets, and this query has 3
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from caesura.errors import StreamError
from caesura.events.chunks import Chunks, SavedJson
from caesura.io.sources.source import Source
from caesura.plan.cut import Exchange, Stages
from caesura.runtime.buckets.stage0 import root_of
from caesura.runtime.query.stored_plan import described

OWNER, OWNER_PLAN = "owner", "owner/plan"
"""The chunks; where state is carried over to another plan, the second is written anew."""
Texts = Mapping[str, str]
"""By fingerprint, a step as users know it."""


@dataclass(frozen=True)
class KeptPlan:
    """What of a plan its state depends on."""

    stages: int
    sources: Texts
    """In the order in which they are read."""
    keeps: Texts
    """The steps that keep state and the inputs of stages, by stage and fingerprint."""

    @staticmethod
    def of(stages: Stages) -> KeptPlan:
        """That of a plan which is cut."""
        keeps: dict[str, str] = {}
        for stage in stages.stages[1:]:
            for node in stage.nodes:
                if not node.row_wise:
                    keeps[f"{stage.number}:{node.fingerprint}"] = described(node)
            for arrival in stage.arrivals:
                text = f"the input of stage {stage.number} from {described(arrival.producer)}"
                keeps[f"{stage.number}:{_way(arrival, stages)}"] = text
        sources = {source.fingerprint: described(source) for source in stages.sources}
        return KeptPlan(len(stages.stages), sources, keeps)

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def fits(self, now: KeptPlan) -> bool:
        """Whether a plan can go on with the state of this one as it lies there."""
        alike = set(self.sources) == set(now.sources) and self.stages == now.stages
        return alike and not set(now.keeps) - set(self.keeps)

    def difference(self, now: KeptPlan) -> str:
        """Why it cannot; "" if it can, with its sources in the same order."""
        if not self.fits(now):
            lacks = _listed(_other(now, self)) or f"that of a plan of {now.stages - 1} stages"
            holds = _listed(_other(self, now)) or f"that of a plan of {self.stages - 1} stages"
            if holds == lacks:  # what differs is no part of what users read
                return f"holds {holds}, of other rows or behind other steps than in this plan"
            return f"holds {holds}, and this plan wants {lacks}"
        if list(self.sources) != list(now.sources):
            return f"was made with the sources in this order: {_listed(list(self.sources.values()))}"
        return ""


def _other(plan: KeptPlan, than: KeptPlan) -> list[str]:
    """The sources and steps of a plan that another has not."""
    sources = [text for key, text in plan.sources.items() if key not in than.sources]
    return [*sources, *(text for key, text in plan.keeps.items() if key not in than.keeps)]


def _listed(texts: list[str]) -> str:
    return "; ".join(f"'{text}'" for text in texts)


@dataclass(frozen=True)
class StateOwner:
    """What the state of one bucket belongs to."""

    query: str
    """The id of the streaming query; "" where there is none."""
    stage: int
    bucket: int
    buckets: int
    plan: KeptPlan | None
    """None where it is not known: state of an earlier plan, which the driver has carried over."""

    def to_json(self) -> dict[str, Any]:
        return {"query": self.query, "stage": self.stage, "bucket": self.bucket, "buckets": self.buckets}

    @staticmethod
    def of_json(own: Mapping[str, Any], plan: Mapping[str, Any] | None) -> StateOwner:
        place = (own["query"], own["stage"], own["bucket"], own["buckets"])
        return StateOwner(*place, None if plan is None else KeptPlan(**plan))

    def difference(self, now: StateOwner) -> str:
        """Why a bucket cannot go on with this state; "" if it can."""
        state = "the state in this checkpoint"
        if self.buckets != now.buckets:
            return f"{state} was kept in {self.buckets} buckets, and this query has {now.buckets}"
        if self.query and now.query and self.query != now.query:
            return f"{state} is that of another query ({self.query}; this one is {now.query})"
        if (self.stage, self.bucket) != (now.stage, now.bucket):
            places = [f"bucket {at.bucket} of stage {at.stage}" for at in (self, now)]
            return f"{state} is that of {places[0]}, and this is {places[1]}"
        if self.plan is None or now.plan is None:
            return ""
        why = self.plan.difference(now.plan)
        return f"{state} belongs to another plan: it {why}" if why else ""

    def refuse_unless_own(self, now: StateOwner) -> None:
        """Refuses to go on with this state where it is not that of this bucket, query and plan."""
        why = self.difference(now)
        if not why:
            return
        remedy = "Put the plan back as it was, or start with a new checkpoint."
        if self.buckets != now.buckets:
            remedy = buckets_remedy(self.buckets)
        elif self.plan == now.plan:
            remedy = "Give the checkpoint that this query was started with, whole, or a new one."
        raise StreamError(f"{why}.", remedy=remedy)


class SavedOwner:
    """The chunks that say what the state of one bucket belongs to."""

    def __init__(self, stages: Stages, number: int, bucket: int, buckets: int, query: str) -> None:
        self._stages, self._place = stages, (query, number, bucket, buckets)
        self._own, self._plan = SavedJson(OWNER), SavedJson(OWNER_PLAN)
        self._said = False

    @cached_property
    def owner(self) -> StateOwner:
        return StateOwner(*self._place, KeptPlan.of(self._stages))

    def snapshot(self) -> Chunks:
        """What it belongs to, where that was not said yet."""
        if self._said:
            return {}
        self._said, plan = True, self.owner.plan
        assert plan is not None
        return self._own.changed(self.owner.to_json()) | self._plan.changed(plan.to_json())

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Refuses state of another query, place or plan; that of an earlier version does not say."""
        own, plan = self._own.read(chunks), self._plan.read(chunks)
        if own is not None:
            StateOwner.of_json(own, plan).refuse_unless_own(self.owner)


def buckets_remedy(then: int) -> str:
    """How to have as many buckets as a checkpoint again."""
    return (
        f"Make the session with cz.session(buckets={then}), or "
        f"spark.conf.set('spark.sql.shuffle.partitions', {then}) before the plan is made; or start with a "
        "new checkpoint."
    )


def _way(arrival: Exchange, stages: Stages) -> str:
    """What an input's state lies under; a gate without rows can go on from another of its source."""
    root = root_of(arrival.producer, stages) if arrival.source_stage == 0 else None
    if isinstance(root, Source) and root.shape.insert_only:
        return root.fingerprint
    return arrival.label
