"""Every aggregate of numbers of any size is the exact value, rounded once, however its rows come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cluster import Cluster
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from window_law_cases import made, one

import caesura as cz
from caesura.events import History
from caesura.events.page import NO_NEW_END
from caesura.ops.aggregate import Alive, Totals, Tumbling
from caesura.ops.over import OverFrame
from caesura.ops.windows import Session, Snapshot, Windows
from caesura.testing import oracles
from caesura.testing.case import LawCase
from caesura.testing.laws import check_laws
from caesura.testing.oracles.windows import aggregates_over, windowed
from caesura.testing.spec import ColumnKind, InputSpec

SUMS = {"total": ("sum", "v"), "mean": ("avg", "v"), "n": ("count", "v")}
SPREAD = {"var": ("variance", "v", 1), "pop": ("variance", "v", 0), "dev": ("stddev", "v", 0)}
PAIRS = {
    "together": ("covar_pop", ("v", "w")),
    "sample": ("covar_samp", ("v", "w")),
    "r": ("corr", ("v", "w")),
}
PICKS = {
    **{"low": ("min", "v"), "high": ("max", "v"), "a": ("first", "v"), "z": ("last", "v")},
    **{"mid": ("median", "v"), "q": ("quantile", "v", 0.75), "often": ("mode", "v")},
    **{"different": ("count_distinct", "v"), "top": ("top_k", "v", 2), "by": ("max_by", ("v", "w"))},
    "mad": ("median_absolute_deviation", "v"),
}
GROUPS = {"sums": SUMS, "spread": SPREAD, "pairs": PAIRS, "picks": PICKS}
NUMBERS: tuple[ColumnKind, ...] = ("extreme", "short", "far", "byte", "unsigned", "long")
FRAMES = ("tumbling", "hopping", "totals", "over", "snapshot", "session", "alive")


def law_case(frame: str, aggs: Any, spec: InputSpec) -> LawCase:
    """Some aggregates over one kind of window."""
    own, group = made(aggs), ("id",)
    of_windows = {
        "snapshot": (Snapshot(), ("snapshot",)),
        "session": (Session(3), ("session", 3, None)),
    }

    def build(a: Any) -> Any:
        match frame:
            case "tumbling":
                return Tumbling(inputs=(a,), group=group, size=5, hop=5, aggregates=own)
            case "hopping":
                return Tumbling(inputs=(a,), group=group, size=6, hop=2, aggregates=own)
            case "totals":
                return Totals(inputs=(a,), group=group, aggregates=own)
            case "over":
                return OverFrame(inputs=(a,), group=group, rows=3, columns=own)
            case "alive":
                return Alive(inputs=(a,), group=group, aggregates=own)
        return Windows(inputs=(a,), group=group, frame=of_windows[frame][0], outputs=own)

    def oracle(a: Any, patterns: Any) -> Any:
        horizon = oracles.horizon(patterns[0])
        match frame:
            case "tumbling":
                return oracles.tumbling(a, group, 5, 0, aggs, horizon, 5)
            case "hopping":
                return oracles.tumbling(a, group, 6, 0, aggs, horizon, 2)
            case "totals":
                return oracles.totals(a, group, aggs)
            case "over":
                return oracles.over(a, group, aggs, {}, n=3)
            case "alive":
                return oracles.alive(a, group, aggs)
        return windowed(a, group, of_windows[frame][1], aggregates_over(aggs), horizon=horizon)

    bound = (lambda live: 240 * live[0] + 8) if frame in ("tumbling", "hopping") else None
    name = f"{frame} of {', '.join(aggs)}"
    return LawCase(name, build=build, oracle=oracle, inputs=(spec,), state_bound=bound, linger=8)


def specs(kind: ColumnKind) -> list[InputSpec]:
    """Rows of one kind of number that come and go, or only come."""
    spec = InputSpec({"id": "key", "v": kind, "w": kind}, key="id", max_rows=6)
    return [spec, replace(spec, insert_only=True)]


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", NUMBERS)
def test_aggregates_of_numbers_of_any_size_are_exact_wherever_rows_come_and_go(kind: ColumnKind) -> None:
    @settings(max_examples=examples(300, short=12), deadline=None, print_blob=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.data(), st.sampled_from(FRAMES), st.sampled_from([*GROUPS]), st.sampled_from(specs(kind)))
    def holds(data: st.DataObject, frame: str, group: str, spec: InputSpec) -> None:
        check_laws(law_case(frame, GROUPS[group], spec), data)

    holds()


TIMES = {name: PICKS[name] for name in ("low", "high", "a", "z", "often", "different", "top")}


@settings(max_examples=examples(100, short=6), deadline=None, print_blob=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.data(), st.sampled_from(FRAMES))
def test_aggregates_of_times_up_to_the_ends_of_their_type_are_exact(data: st.DataObject, frame: str) -> None:
    check_laws(law_case(frame, TIMES, InputSpec({"id": "key", "v": "moment"}, key="id")), data)


@settings(max_examples=examples(60, short=6), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 30), st.floats(), st.floats()), min_size=1, max_size=12),
       st.sampled_from((2, 3)))  # fmt: skip
def test_shares_of_buckets_make_the_exact_value(
    numbers: list[tuple[int, float, float]], buckets: int
) -> None:
    rows = [{"t": t, "id": 1, "v": v, "w": w} for t, v, w in numbers]
    read = cz.from_rows(rows, time="t", punctuate=cz.delay(40), batch_size=3)
    aggs = {**SPREAD, **PAIRS, "total": ("sum", "v")}
    named = {name: one(kind, c, *option) for name, (kind, c, *option) in aggs.items()}
    node = read.group_by("id").tumbling(10).agg(**named, skewed=True).node
    cluster = Cluster({"out": node}, buckets)
    cluster.run(every=2)
    plain = [(t, t + 1, {"id": 1, "v": v, "w": w}) for t, v, w in numbers]
    wanted = [
        (le, re, tuple(p.values()))
        for le, re, p in oracles.tumbling(plain, ("id",), 10, 0, aggs, lambda _: 0)
    ]
    got = History.of(cluster.items["out"], node.schema)
    assert sorted(map(repr, got.rows())) == sorted(map(repr, wanted))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1e160] * 3, (0.0, 0.0, None)),
        ([1e153, 1e153, 1.1e153], (2.2222222222222214e303, 2.2222222222222214e303, 1.0)),
        ([1e150] * 3, (0.0, 0.0, None)),
        ([0.1] * 3, (0.0, 0.0, None)),
        ([1e-200, 2e-200], (0.0, 0.0, 1.0)),
        ([1.7976931348623157e308, 0.0], (float("inf"), float("inf"), 1.0)),
    ],
)
def test_spreads_and_correlations_are_exact_at_the_ends_of_the_range(
    values: list[float], wanted: Any
) -> None:
    rows = cz.from_rows([{"t": 1, "v": v} for v in values], time="t").tumbling(10)
    named = {"a": cz.variance("v", ddof=0), "b": cz.covar_pop("v", "v"), "c": cz.corr("v", "v")}
    (row,) = rows.agg(**named).run().table().to_pylist()
    assert tuple(row[name] for name in "abc") == wanted


@pytest.mark.parametrize("group", ["sums", "spread", "pairs"])
def test_wide_sums_go_with_the_rows_that_they_are_of(group: str) -> None:
    spec = InputSpec({"id": "key", "v": "extreme", "w": "extreme"}, key="id")
    operator = law_case("tumbling", GROUPS[group], spec).plan().operator()
    rows = [(t, t + 1, {"id": 1, "v": v, "w": v}) for t in range(0, 50, 5) for v in (1e-200, 1e200)]
    list(operator.page(0, spec.page([(le, re, NO_NEW_END, p) for le, re, p in rows])))
    assert operator.measure().state_rows > len(rows)
    list(operator.page(0, spec.page([(le, re, le, p) for le, re, p in rows])))
    assert operator.measure().state_rows == 0
