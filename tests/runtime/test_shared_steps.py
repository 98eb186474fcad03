"""Steps that several others read, in any plan: in buckets and on threads, what one query gives.

a -- where --+-- tumbling --+
             |              +-- join -- out
             +--------------+
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import hypothesis
import pyarrow as pa
import pytest
from bucket_plans import has_rows
from cluster import Cluster
from depth import examples, seed_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from test_threads import late_rows, sources

import caesura as cz
from caesura import Stream, col
from caesura.events import History, violations
from caesura.io import Source
from caesura.plan import walk
from caesura.plan.prune import prune
from caesura.runtime import Query
from caesura.runtime.threads.query import ThreadedQuery
from caesura.runtime.threads.spreading import spread
from caesura.testing.spec import InputSpec

SPEC = InputSpec({"id": "key", "v": "int"}, key="id", max_rows=6)
WORDS = pa.table({"from": [-50, -50], "id": [1, 2], "w": [3, 4]})
BOTH = col("v").coalesce(0) + col("w").coalesce(0)


def table() -> Stream:
    return cz.from_arrow(WORDS, time="from").set_duration(500)


ROW_WISE: dict[str, Callable[[Stream], Stream]] = {
    "where": lambda s: s.where(col("v") > 0),
    "swap": lambda s: s.select(id=col("v"), v=col("id")),
    "add": lambda s: s.select("id", v=col("v") + 1),
    "late": lambda s: s.select("id", v=col("v") * 2**62 % 7).on_bad("late"),
    "move": lambda s: s.select("v", id=col("id") + 1).select("id", "v"),
    "shift": lambda s: s.shift(2),
}
ONE: dict[str, Callable[[Stream], Stream]] = {
    **ROW_WISE,
    "distinct": lambda s: s.distinct(),
    "sums": lambda s: s.group_by("id").tumbling(5).agg(v=cz.sum("v")),
    "best": lambda s: s.tumbling(5).agg(id=cz.max("id"), v=cz.max("v")),
    "hops": lambda s: s.group_by("v").hopping(6, every=3).agg(id=cz.max("id")).select("id", "v"),
    "totals": lambda s: s.group_by("id").totals(v=cz.count()),
    "top": lambda s: s.group_by("id").top(1, by="v"),
    "over": lambda s: s.group_by("id").over(rows=2).agg(w=cz.sum("v")).select("id", v=col("w")),
    "table": lambda s: s.join(table(), on="id").select("id", v=BOTH),
}
"""Steps over one stream of ``id`` and ``v`` that give such a stream."""
TWO: dict[str, Callable[[Stream, Stream], Stream]] = {
    "union": lambda s, t: s.union(t),
    "difference": lambda s, t: s.difference(t),
    "join": lambda s, t: s.join(t.rename(w="v"), on="id").select("id", v=BOTH),
    "join by value": lambda s, t: s.join(t.select(k=col("id"), w=col("v")), on={"v": "w"}).select(
        id=col("k"), v=col("v")
    ),
    "join of others": lambda s, t: s.join(t.select(k=col("v"), w=col("id")), on={"id": "k"}).select(
        "id", v=BOTH
    ),
    "left": lambda s, t: s.join(t.rename(w="v"), on="id", how="left").select("id", v=BOTH),
    "anti": lambda s, t: s.join(t.select("v"), on="v", how="anti"),
    "semi": lambda s, t: s.join(t.select(k=col("id")), on={"id": "k"}, how="semi"),
}
Steps = list[tuple[str, int, int]]
STEPS = st.tuples(st.sampled_from([*ONE, *TWO, *TWO]), st.integers(0, 2), st.integers(0, 9))


def built(a: Stream, b: Stream, front: str, steps: Steps) -> Stream:
    """A plan whose steps read one of the last and any before; what nobody reads is united at the end."""
    made = [b, ONE[front](a)]
    read = {0}
    for name, left, right in steps:
        at = max(len(made) - 1 - left, 0), right % len(made)
        read |= set(at[: 1 if name in ONE else 2])
        made.append(ONE[name](made[at[0]]) if name in ONE else TWO[name](*(made[n] for n in at)))
    out = made[-1]
    for number, other in enumerate(made[:-1]):
        out = out if number in read else out.union(other)
    return out


def unnumbered(query: Query | ThreadedQuery) -> Counter[str]:
    """Late rows by the kind of their step: a stage numbers its own steps."""
    told: Counter[str] = Counter()
    for row, count in late_rows(query).items():
        told[re.sub(r"^(\w+)-\d+ ", r"\1 ", row)] += count
    return told


def refuses_results(node: Any) -> bool:
    """Whether a step refuses rows that others compute: which of those come and go depends on the pages."""
    refusing = [step for step in walk(node) if getattr(step, "on_error", None) == "late"]
    behind = [step for one in refusing for step in walk(*one.inputs)]
    return any(not step.row_wise and not isinstance(step, Source) for step in behind)


def agree(node: Any, pace: Any, threads: int, buckets: int) -> None:
    alone = Query(prune({"out": node}), speculate=pace)
    alone.run()
    wanted, late = History.of(alone.take("out"), node.schema), unnumbered(alone)
    plan = spread(prune({"out": node}), threads)
    assert plan is not None
    query = ThreadedQuery(plan, threads, speculate=pace)
    query.run()
    got = query.take("out")
    assert violations(got) == []
    assert History.of(got, node.schema) == wanted
    told = unnumbered(query)
    if refuses_results(node):
        late, told = (
            Counter({r: n for r, n in c.items() if not r.startswith("select ")}) for c in (late, told)
        )
    assert told == late
    cluster = Cluster({"out": node}, buckets, speculate=pace)
    cluster.run()
    assert History.of(cluster.items["out"], node.schema) == wanted


@pytest.mark.slow
@hypothesis.seed(seed_of("shared"))
@settings(max_examples=examples(150, short=15), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    sources("a", SPEC),
    sources("b", SPEC),
    st.sampled_from([*ROW_WISE]),
    st.lists(STEPS, min_size=3, max_size=6),
    st.sampled_from(("arrival", "watermark")),
    st.sampled_from((1, 2, 3, 8)),
    st.sampled_from((1, 3)),
)
def test_steps_that_several_others_read_give_on_threads_and_in_buckets_what_they_give_alone(
    a: Source, b: Source, front: str, steps: Steps, pace: Any, threads: int, buckets: int
) -> None:
    assume(has_rows(a))
    agree(built(Stream(a), Stream(b), front, steps).node, pace, threads, buckets)


FRONTS = {
    "rows": lambda s: s,
    "filtered": lambda s: s.where(col("k") > 0),
    "computed": lambda s: s.select("k", "v", w=col("v") + 1),
    "both": lambda s: s.where(col("k") > 0).select("v", k=col("k") + 1),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("output", ["changes", "final"])
def test_a_row_wise_step_that_a_join_and_its_own_aggregate_read_runs_on_threads(
    front: str, output: Any
) -> None:
    rows = [{"ts": n * 7, "v": n % 5, "k": n % 3} for n in range(100)]
    w = FRONTS[front](cz.from_rows(rows, time="ts", punctuate=cz.delay(5), batch_size=16))
    best = w.join(w.tumbling(100).agg(m=cz.max("v")), on={"v": "m"})
    one, *more = (best.run(threads=n, output=output) for n in (1, 2, 3, 8))
    assert one.table().num_rows > 0
    assert all(result.history == one.history for result in more)
