"""What was once called safe and grew, and what was called unsafe and did not."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import caesura as cz
from caesura.contracts import Scheme, realizable, rule_of
from caesura.contracts.derive import derive
from caesura.errors import PlanError
from caesura.ops.join import Join

TICKS = 160


def points(count: int = TICKS) -> cz.Stream:
    rows = [{"ts": t, "id": t % 3, "v": (t * 7) % 1009, "s": f"s{t}"} for t in range(count)]
    return cz.from_rows(rows, time="ts", punctuate=cz.delay(3), batch_size=10)


def taken_back(count: int = TICKS) -> cz.Stream:
    """Rows that never end, of which some are corrected."""
    return points(count).group_by("s").totals(v=cz.sum("v")).forever()


def held(make: Callable[[int], cz.Stream], count: int) -> int:
    query, most = make(count).query(), 0
    while query.step():
        most = max(most, query.state_rows)
    return most


AGGREGATES = {
    "count": cz.count(),
    "sum": cz.sum("v"),
    "avg": cz.avg("v"),
    "variance": cz.variance("v"),
    "min": cz.min("v"),
    "max": cz.max("v"),
    "max of texts": cz.max("s"),
    "first": cz.first("v"),
    "last": cz.last("v"),
    "max_by": cz.max_by("s", "v"),
    "top_k": cz.top_k("v", 2),
    "count_distinct": cz.count_distinct("v"),
    "approx_count_distinct": cz.approx_count_distinct("v"),
    "mode": cz.mode("v"),
    "median": cz.median("v"),
    "collect_list": cz.collect_list("v"),
}
OVER_ALL: dict[str, Callable[[cz.Stream, object], cz.Stream]] = {
    "alive over what never ends": lambda s, a: s.forever().alive().agg(x=a),
    "all rows before": lambda s, a: s.over(rows=cz.INFINITY).agg(x=a),
    "all rows before, of what never ends": lambda s, a: s.forever().over(rows=cz.INFINITY).agg(x=a),
    "three rows before, of what never ends": lambda s, a: s.forever().over(rows=3).agg(x=a),
    "some time before, of what never ends": lambda s, a: s.forever().over(range=9).agg(x=a),
    "one row before, and what follows": lambda s, a: s.over(rows=2).agg(x=a, next=cz.lead("v")),
}


FULL = ("alive over what never ends", "all rows before")
SOME = ("count", "last", "median", "collect_list")
PAIRS = [(name, over) for name in AGGREGATES for over in OVER_ALL if name in SOME or over in FULL]


@pytest.mark.thin(11)
@pytest.mark.parametrize(("name", "over"), PAIRS)
def test_an_aggregate_over_everything_is_safe_exactly_where_its_state_stays_small(name, over) -> None:
    def make(count: int) -> cz.Stream:
        return OVER_ALL[over](points(count), AGGREGATES[name])

    few, many = (held(make, count) for count in (TICKS, 3 * TICKS))
    assert make(TICKS).check().safe == (many < few + TICKS), (few, many)


def test_count_windows_by_ends_keep_events_that_never_end() -> None:
    assert points().set_duration(5).count_by_end(2).agg(n=cz.count()).check().safe
    verdict = points().forever().count_by_end(2).agg(n=cz.count()).check()
    assert not verdict.safe and "events before their ends" in str(verdict)
    assert "progress of time only, which closes no windows." in str(
        points().group_by("id").count_by_end(2).agg(n=cz.count()).check()
    )


@pytest.mark.thin(2)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kept", ["count", "max", "count_distinct", "collect_list"])
def test_totals_over_distinct_rows_are_safe_exactly_where_their_state_stays_small(kept, grouped) -> None:
    def make(count: int) -> cz.Stream:
        groups = points(count).select("id", "v").distinct().group_by(*(["v"] if grouped else []))
        return groups.totals(x=cz.count() if kept == "count" else getattr(cz, kept)("v"))

    few, many = (held(make, count) for count in (TICKS, 3 * TICKS))
    assert make(TICKS).check().safe == (many < few + TICKS), (few, many)


def test_it_is_said_what_may_stay_of_a_safe_top_and_of_a_pace() -> None:
    schema = pa.schema([(name, pa.int64()) for name in ("ts", "te", "v")])
    spans = cz.from_arrow(
        pa.Table.from_pylist([], schema), time="ts", end="te", punctuate=cz.delay(5, future=100)
    )
    assert "that is every row" in str(spans.top(1, by="v").check())
    assert "that is every row" not in str(points().top(1, by="v").check())
    assert "10,000 at most" in str(points().pace(within=3).check())


SCHEMES = ["{[[time:+]]}", "{[[id:#]]}", "{[[time:+]], [[id:#]]}", "{[[time:+, id:#]]}", "{[[id:+]]}"]


@pytest.mark.parametrize("delays", [False, True])
@pytest.mark.parametrize("left", SCHEMES)
@pytest.mark.parametrize("right", SCHEMES)
def test_what_check_chooses_for_a_join_is_realizable(delays, left, right) -> None:
    a, b = (cz.input_stream(n, pa.schema([("id", pa.int64()), (n, pa.int64())])).node for n in "ab")
    rule = rule_of(Join(inputs=(a, b), on=(("id", "id"),), delays=delays))
    ins = [Scheme.parse(text, names) for text, names in zip((left, right), rule.inputs, strict=True)]
    found = derive(rule, ins)
    assert bool(realizable(rule, found.contract)) == bool(found.unmet)


def test_a_start_on_spark_asks_for_a_contract_by_every_way_in() -> None:
    from caesura.spark import start

    grows = points().totals(n=cz.count())
    with pytest.raises(PlanError, match="the plan is unsafe"):
        start({"safe": points().node, "grows": grows.node}, None)
    with pytest.raises(PlanError, match="the plan is unsafe"):
        cz.pipeline(grows=grows).start(None, path="out", checkpoint="cp")
    with pytest.raises(PlanError, match="the plan is unsafe"):
        grows.start(None)


def test_a_generator_promises_what_its_policy_does() -> None:
    def made():
        yield {"ts": 1, "id": 7}

    schema = pa.schema([("ts", pa.int64()), ("id", pa.int64())])
    verdict = (
        cz.from_rows(made(), schema, time="ts", punctuate=cz.delay(2)).tumbling(5).agg(n=cz.count()).check()
    )
    assert verdict.safe and "may have more punctuation between its rows than progress on 'time'" in str(
        verdict
    )
    assert not cz.from_rows(made(), schema, time="ts").tumbling(5).agg(n=cz.count()).check().safe


@pytest.mark.parametrize("leaving", [None, "assumed"])
def test_feedback_about_lives_that_end_goes_with_time(leaving) -> None:
    asked = points().feedback_from(points().set_duration(5), on="id", leaving=leaving)
    assert ("stays so until it is taken back" in str(asked.check())) == (leaving is not None)
