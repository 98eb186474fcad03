"""State says whose it is: restored by another plan, place or number of buckets it is refused, or right."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from bucket_plans import PLANS, sources
from cluster import Cluster
from depth import examples, seed_of

import caesura as cz
from caesura import Stream, col
from caesura.errors import StreamError
from caesura.events import draw
from caesura.events.identity import Secret
from caesura.plan import Node, Raw
from caesura.plan.cut import cut
from caesura.plan.prune import prune
from caesura.runtime.buckets.owner import OWNER, OWNER_PLAN, KeptPlan, StateOwner

NAMES = [name for name in PLANS if name != "join with a table"]
SECRET = Secret(bytes(Secret.SIZE))
Chunks = dict[str, bytes]


def counted(size: int = 10, least: int = 0, *, by: str = "id") -> Stream:
    a, _ = sources()
    return Stream(a).group_by(by).tumbling(size).agg(n=cz.count()).where(col("n") > least)


def plan(name: str) -> tuple[Node, list[tuple[Node, Raw]]]:
    """A plan over the rows of its sources, dealt in turn."""
    a, b = sources()
    node = PLANS[name](Stream(a), Stream(b)).node
    read = {source.fingerprint for source in cut(prune({"out": node}), 2).sources}
    both = [[(s, raw) for raw in s.read({})] for s in (a, b) if s.fingerprint in read]
    return node, [step for steps in zip(*both, strict=False) for step in steps]


@cache
def stopped(name: str, buckets: int) -> tuple[Chunks, str]:
    """What a plan holds in the middle of its input, and what it gives behind that."""
    node, steps = plan(name)
    cluster = Cluster({"out": node}, buckets, secret=SECRET)
    half = len(steps) // 2
    for step in steps[:half]:
        cluster.epoch([step])
    held = {chunk: data for chunk, data in cluster.snapshot().items() if data is not None}
    cluster.items["out"] = []
    return held, ended(cluster, steps[half:])


def ended(cluster: Cluster, steps: list[tuple[Node, Raw]]) -> str:
    for place, step in enumerate(steps):
        cluster.epoch([step], closes=place == len(steps) - 1)
    return draw(cluster.items["out"])


def gone_on(held: Chunks, name: str, buckets: int) -> str | None:
    """What a plan gives that goes on with some state; None where it is refused."""
    node, steps = plan(name)
    cluster = Cluster({"out": node}, buckets, secret=SECRET)
    try:
        cluster.restore(held)
    except StreamError:
        return None
    return ended(cluster, steps[len(steps) // 2 :])


def pairs() -> list[tuple[str, int, str, int]]:
    """Each plan as it was, in other buckets, and as others; the more, the deeper the search."""
    draws = Random(seed_of("state owners"))
    made = [(name, 2, name, 2) for name in draws.sample(NAMES, min(len(NAMES), examples(30, short=5)))]
    made += [(name, 2, name, 3) for name in draws.sample(NAMES, min(len(NAMES), examples(30, short=4)))]
    made += [(draws.choice(NAMES), 2, draws.choice(NAMES), 2) for _ in range(examples(200, short=12))]
    return made


@pytest.mark.thin(2)
@pytest.mark.parametrize(("then", "was", "now", "buckets"), pairs())
def test_state_is_taken_up_exactly_or_refused(then: str, was: int, now: str, buckets: int) -> None:
    got = gone_on(stopped(then, was)[0], now, buckets)
    assert got is None or got == stopped(now, buckets)[1]
    if (then, was) == (now, buckets):
        assert got is not None


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (
            counted(20),
            "belongs to another plan: it holds 'tumbling by id; 10.*and this plan wants 'tumbling by id; 20",
        ),
        (counted(by="v"), "belongs to another plan: it holds 'tumbling .*by id"),
        (counted().group_by("n").tumbling(10).agg(m=cz.count()), "this plan wants 'tumbling by n"),
        (counted().distinct(), "it holds that of a plan of 1 stages, and this plan wants 'distinct"),
    ],
    ids=["a window", "a key", "a stage more", "a step more"],
)
def test_a_bucket_names_what_it_holds_and_what_is_wanted(now: Stream, why: str) -> None:
    made = [KeptPlan.of(cut(prune({"out": stream.node}), 2)) for stream in (counted(), now)]
    then, wanted = (StateOwner("q", 1, 0, 2, one) for one in made)
    with pytest.raises(StreamError, match=why):
        then.refuse_unless_own(wanted)
    then.refuse_unless_own(then)


def test_steps_without_state_may_change() -> None:
    made = [KeptPlan.of(cut(prune({"out": counted(least=n).node}), 2)) for n in (0, 1)]
    assert made[0] == made[1]
    assert made[0].fits(made[1])


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (StateOwner("q", 1, 0, 3, None), "kept in 2 buckets, and this query has 3"),
        (StateOwner("p", 1, 0, 2, None), r"that of another query \(q; this one is p\)"),
        (StateOwner("q", 1, 1, 2, None), "bucket 0 of stage 1, and this is bucket 1 of stage 1"),
        (StateOwner("q", 2, 0, 2, None), "bucket 0 of stage 1, and this is bucket 0 of stage 2"),
    ],
)
def test_a_bucket_refuses_state_of_another_place(other: StateOwner, why: str) -> None:
    with pytest.raises(StreamError, match=why):
        StateOwner("q", 1, 0, 2, None).refuse_unless_own(other)


def test_sources_in_another_order_are_refused() -> None:
    one = KeptPlan(2, {"a": "clicks", "b": "views"}, {})
    other = KeptPlan(2, {"b": "views", "a": "clicks"}, {})
    assert one.fits(other)
    assert one.difference(other) == "was made with the sources in this order: 'clicks'; 'views'"


def test_state_of_an_earlier_version_goes_on_and_says_whose_it_is_from_then_on() -> None:
    held, rest = stopped("join full", 2)
    early = {name: data for name, data in held.items() if not name.endswith((OWNER, OWNER_PLAN))}
    assert len(early) == len(held) - 4
    assert gone_on(early, "join full", 2) == rest
    node, _ = plan("join full")
    cluster = Cluster({"out": node}, 2, secret=SECRET)
    cluster.restore(early)
    again = cluster.snapshot()
    assert {name for name in again if name.endswith((OWNER, OWNER_PLAN))} == held.keys() - early.keys()
    assert not [name for name in cluster.snapshot() if name.endswith((OWNER, OWNER_PLAN))]
