"""Any number of threads: the same history, the same late rows and the same counts as one thread."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from bucket_plans import PLANS, Build, has_rows, inserts, scripted
from depth import examples, seed_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from test_buckets import LEFT, RIGHT, lanes, sizes

import caesura as cz
from caesura import Stream, col
from caesura.errors import CaesuraError, StreamError
from caesura.events import History, draw, violations
from caesura.io import Source
from caesura.kernels.dividing import RowsByBucket
from caesura.plan.prune import prune
from caesura.runtime import Query
from caesura.runtime.graph import row_ranges
from caesura.runtime.threads.query import ThreadedQuery
from caesura.runtime.threads.spreading import spread
from caesura.testing.strategies import streams

EACH = examples(3, short=1)
SHOPS = pa.table({"since": [-50] * 4, "until": [500] * 4, "shop": range(4), "city": list("aabc")})


@st.composite
def sources(draw: st.DrawFn, name: str, spec: Any) -> Source:
    """A source of random rows in random lanes and batches, some late."""
    _, items = draw(streams(spec, kinds=("time",), closed=False))
    lag = draw(st.sampled_from((2, 6, 40)))
    if draw(st.booleans()):
        return inserts(name, spec.schema, items, draw(sizes), lag, None)
    return scripted(name, spec.schema, items, draw(lanes), draw(sizes), lag, None)


def late_rows(query: Query | ThreadedQuery) -> Counter[str]:
    return Counter(f"{name} {row}" for name, table in query.late().items() for row in table.to_pylist())


@pytest.mark.thin(11)
@pytest.mark.parametrize("name", PLANS)
def test_threads_do_not_show(name: str) -> None:
    build: Build = PLANS[name]

    @hypothesis.seed(seed_of(name))
    @settings(max_examples=EACH, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        sources("a", LEFT),
        sources("b", RIGHT),
        st.sampled_from(("arrival", "watermark")),
        st.integers(2, 3),
        st.booleans(),
    )
    def agrees(a: Source, b: Source, pace: Any, threads: int, steps: bool) -> None:
        assume(has_rows(a))
        node = build(Stream(a), Stream(b)).node
        plan = spread(prune({"out": node}), threads)
        assert plan is not None
        alone = Query(prune({"out": node}), speculate=pace)
        alone.run()
        query = ThreadedQuery(plan, threads, speculate=pace)
        while steps and query.step():
            pass
        query.run()
        got = query.take("out")
        assert violations(got) == []
        assert History.of(got, node.schema) == History.of(alone.take("out"), node.schema)
        assert late_rows(query) == late_rows(alone)

    agrees()


def test_plans_with_a_key_run_in_buckets_and_others_in_one() -> None:
    a, b = (scripted(n, s.schema, [], [0], [1], 5, None) for n, s in (("a", LEFT), ("b", RIGHT)))
    made = {
        name: spread(prune({"out": build(Stream(a), Stream(b)).node}), 2) for name, build in PLANS.items()
    }
    buckets = {name: None if plan is None else plan.buckets for name, plan in made.items()}
    for name in ("join left", "tumbling by key", "totals by key", "a diamond", "window behind a window"):
        assert buckets[name] == 2
    for name in ("totals of all", "join with a table"):
        assert buckets[name] == 1


def clicks(count: int = 3000, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(random.integers(0, 100, count)) + random.integers(-9, 1, count),
            "shop": random.integers(0, 4, count),
            "kind": random.integers(0, 3, count, np.int8),
            "price": random.normal(0, 1e9, count),
            "user": random.integers(0, 10**9, count),
        }
    )


def looked_up(rows: Stream) -> Stream:
    named = rows.where(col("kind") == 0).join(cz.from_arrow(SHOPS, time="since", end="until"), on="shop")
    return named.group_by("city").tumbling(10).agg(n=cz.count(), s=cz.sum("price"), m=cz.min("price"))


def counted(rows: Stream) -> Stream:
    return rows.where(col("kind") != 1).group_by("shop").tumbling(10).agg(n=cz.count())


@pytest.mark.parametrize("output", ["changes", "final"])
@pytest.mark.parametrize("build", [looked_up, counted])
def test_ranges_of_a_page_on_threads_give_the_items_of_the_page(
    build: Any, output: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_ranges, "MIN_ROWS", 16)
    for seed in range(3):
        stream = build(cz.from_arrow(clicks(seed=seed), time="ts", punctuate=cz.delay(5), batch_size=512))
        query = stream.query(output=output)
        with ThreadPoolExecutor(3) as threads:
            for cell in query.graph.cells:
                if cell.fused is not None:
                    cell.fused.divide(threads, 3)
            query.run()
        one = stream.query(output=output)
        one.run()
        schema = stream.node.schema
        assert draw(query.take("out"), schema=schema) == draw(one.take("out"), schema=schema)


@pytest.mark.parametrize("output", ["changes", "final"])
def test_a_run_on_threads_counts_what_a_run_on_one_does(output: Any) -> None:
    rows = cz.from_arrow(clicks(), time="ts", punctuate=cz.delay(5), batch_size=256)
    stream = rows.where(col("kind") == 0).group_by("user").hopping(10, every=5).agg(a=cz.avg("price"))
    one, more = stream.run(output=output), stream.run(output=output, threads=2)
    assert one.history == more.history
    assert list(one.counters) == list(more.counters)
    for name, counters in one.counters.items():
        other = more.counters[name]
        assert (counters.rows_in, counters.state_rows) == (other.rows_in, other.state_rows)
        assert counters.punctuation_out == other.punctuation_out


def test_an_error_in_a_bucket_names_the_step() -> None:
    rows = cz.from_rows([{"ts": t, "k": t % 3, "v": "a"} for t in range(9)], time="ts")
    stream = rows.group_by("k").tumbling(3).agg(s=cz.sum(col("v").cast("bigint")))
    with pytest.raises(CaesuraError, match="tumbling"):
        stream.run(threads=2)


def test_what_a_query_on_threads_cannot_do_is_refused_by_name() -> None:
    rows = cz.from_rows([{"ts": 1, "k": 1}], time="ts")
    query = rows.group_by("k").tumbling(3).agg(n=cz.count()).query(threads=2)
    with pytest.raises(StreamError, match="'assume' is for one"):
        query.assume(col("k") == 1)


def test_claims_on_threads_are_those_of_one_thread() -> None:
    rows = cz.from_rows([{"ts": t, "k": t % 2} for t in range(9)], time="ts", batch_size=2)
    stream = rows.group_by("k").totals(n=cz.count())
    one, more = (stream.run(claims=cz.tokens(every=3), threads=n) for n in (1, 2))
    assert [str(c.prefix) for c in one.claims] == [str(c.prefix) for c in more.claims]
    assert one.draw() == more.draw()


@pytest.mark.parametrize("column", ["k", "name"])
def test_many_buckets_have_a_page_divided_once_and_give_what_one_gives(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, begin = [], RowsByBucket.__init__

    def noted(self: RowsByBucket, numbers: Any, buckets: int) -> None:
        made.append(buckets)
        begin(self, numbers, buckets)

    monkeypatch.setattr(RowsByBucket, "__init__", noted)
    keys = [None if n % 11 == 0 else n * 7 % 40 for n in range(500)]
    table = pa.table({"ts": range(500), "k": keys, "name": [None if k is None else f"n{k}" for k in keys]})
    stream = cz.from_arrow(table, time="ts").group_by(column).tumbling(100).agg(n=cz.count())
    rows = [sorted(map(str, stream.run(threads=n).table().to_pylist())) for n in (1, 9)]
    assert rows[0] == rows[1]
    assert made == [9]
