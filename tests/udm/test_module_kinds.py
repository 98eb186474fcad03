"""Every kind of module is given what it asks for: all columns, its own window, members in one order."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cluster import Cluster
from depth import DEPTH, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from module_kinds import KINDS, ModuleCase
from udm_law_cases import FRAMES

import caesura as cz
from caesura.errors import CaesuraError, PlanError, StreamError
from caesura.events import History
from caesura.ops.windows import Windows
from caesura.plan import Node
from caesura.testing import oracles
from caesura.testing.case import EACH_KIND, LawCase
from caesura.testing.laws import check_laws
from caesura.testing.oracles.windows import windowed
from caesura.testing.spec import InputSpec

ROWS = InputSpec({"id": "key", "v": "int", "w": "int"}, key="id", max_rows=5)
COMES = InputSpec({"id": "key", "v": "int", "w": "int"}, key="id", max_rows=6, insert_only=True)
POINTS = InputSpec(
    {"id": "key", "v": "int", "w": "int"}, key="id", max_rows=6, insert_only=True, lifetimes="points"
)
STAMPS = {"stamped": "clipped", "inside": "unchanged"}


def law_case(module: ModuleCase, frame: str, clip: str, spec: InputSpec) -> LawCase:
    """A module over one kind of window."""
    made, oracle = FRAMES[frame]
    what: dict[str, Any] = {"outputs": (("x", module.use),)} if not module.rows else {"apply": module.use}
    stamp = STAMPS.get(module.rows, "aligned")

    def build(a: Node) -> Windows:
        return Windows(inputs=(a,), group=("id",), frame=made, clip=clip, stamp=stamp, **what)  # type: ignore[arg-type]

    def expected(a: Any, patterns: Any) -> Any:
        return windowed(
            a, ("id",), oracle, module.plain, clip=clip, stamp=stamp, timed=module.timed,
            horizon=oracles.horizon(patterns[0]), order=module.order,
        )  # fmt: skip

    return LawCase(f"{module.name} {frame} {clip}", build=build, oracle=expected, inputs=(spec,))


def clips(module: ModuleCase, frame: str) -> list[str]:
    """The ways to cut members that there are for it."""
    found: list[str] = []
    if module.rows == "inside" and frame == "end2":  # a member may end where such a window begins
        return found
    for clip in ("none", "left", "right", "full"):
        try:
            law_case(module, frame, clip, ROWS).plan()
        except CaesuraError:
            continue
        found.append(clip)
    return found


@cache
def all_cases() -> list[tuple[ModuleCase, str, str]]:
    return [(module, frame, clip) for module in KINDS for frame in FRAMES for clip in clips(module, frame)]


CASES = st.deferred(lambda: st.sampled_from(all_cases()))


@pytest.mark.slow
@settings(max_examples=examples(1000, short=25), deadline=None, print_blob=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.data(), CASES, st.sampled_from((ROWS, COMES, POINTS)), st.sampled_from(EACH_KIND))
def test_every_kind_of_module_gives_what_its_window_holds_in_every_mode(
    data: st.DataObject, case: tuple[ModuleCase, str, str], spec: InputSpec, kinds: Any
) -> None:
    check_laws(law_case(*case, spec), data, kinds=kinds)


def readings() -> cz.Stream:
    """Interval events of some keys, some of which start together, in small batches."""
    rows = [
        {"ts": t - t % 3, "until": t - t % 3 + 1 + t * 7 % 9, "id": t % 3, "v": t * 5 % 4, "w": t * 3 % 5}
        for t in range(60)
    ]
    return cz.from_rows(rows, time="ts", end="until", punctuate=cz.delay(8), batch_size=13)


@pytest.mark.parametrize("speculate", ["arrival", "watermark"])
def test_every_kind_of_module_gives_the_same_in_any_number_of_buckets(speculate: Any) -> None:
    source = readings()
    rows = list(source.run().history.rows())
    given = [(le, re, dict(zip(("id", "v", "w"), row, strict=True))) for le, re, row in rows]
    for place in range(0, len(KINDS), 31 if DEPTH == 1 else 1):
        module = KINDS[place + (speculate == "arrival")] if place + 1 < len(KINDS) else KINDS[place]
        node = law_case(module, "hopping", "none", ROWS).build(source.node)
        cluster = Cluster({"out": node}, 1 + place % 4, speculate=speculate)
        cluster.run(every=2)
        got = History.of(cluster.items["out"], node.schema)
        plain = windowed(
            given, ("id",), FRAMES["hopping"][1], module.plain, order=module.order, timed=module.timed,
            stamp=STAMPS.get(module.rows, "aligned"),
        )  # fmt: skip
        wanted = sorted((le, re, *row.values()) for le, re, row in plain)
        assert sorted((le, re, *row) for le, re, row in got.rows()) == wanted, module.name


def test_a_module_of_many_windows_is_given_all_of_them() -> None:
    @cz.uda(returns="bigint", vectorised=True)
    def begins(values: np.ndarray, starts: np.ndarray, window: cz.Window) -> Any:
        return window.start

    rows = cz.from_rows([{"t": t, "v": float(t)} for t in (1, 12, 23)], time="t")
    assert rows.tumbling(10).agg(x=begins("v")).run().table().column("x").to_pylist() == [0, 10, 20]


def test_a_function_with_a_parameter_that_is_set_is_given_its_window() -> None:
    @cz.uda
    def shifted(values: list[float], window: cz.Window, by: int = 0) -> int:
        return window.start + by

    rows = cz.from_rows([{"t": 11, "v": 1.0}], time="t")
    assert rows.tumbling(10).agg(x=shifted("v", by=3)).run().table().column("x").to_pylist() == [13]


def test_members_that_start_together_are_ordered_by_what_is_read_of_them() -> None:
    @cz.uda
    def listed(values: list[float]) -> str:
        return ";".join(map(str, values))

    rows = [{"t": 1, "e": 40, "v": 1.0}, {"t": 1, "e": 5, "v": 2.0}]
    read = cz.from_rows(rows, time="t", end="e", punctuate=cz.delay(2), batch_size=1)
    for output in ("changes", "final"):
        told = read.tumbling(10).agg(x=listed("v")).run(output=output)
        assert [row for le, _, row in told.history.rows() if le == 0] == [("1.0;2.0",)]


def test_what_a_module_cannot_be_given_is_refused_where_it_is_written() -> None:
    with pytest.raises(PlanError, match="takes= has 2 columns"):

        @cz.uda(takes={"v": "double", "w": "double"})
        def one(values: list[float]) -> float:
            return 0.0

    with pytest.raises(PlanError, match="where each window begins"):

        @cz.uda(returns="double", vectorised=True)
        def alone(values: np.ndarray) -> Any:
            return values

    with pytest.raises(PlanError, match="one value for each of many windows"):

        @cz.udo(vectorised=True)  # type: ignore[call-overload]
        def several(values: np.ndarray, starts: np.ndarray) -> list[float]:
            return []

    @cz.uda
    def above(values: list[float], limit: float) -> int:
        return sum(v > limit for v in values)

    with pytest.raises(PlanError, match="parameters without a value: limit"):
        readings().tumbling(10).agg(x=above(cz.col("v").cast("double")))


def stamped_by(*, zone: str | None, end: Any) -> list[Any]:
    """What comes out of windows whose module stamps rows with these ends."""

    @cz.udo(stamp="unchanged")
    def echo(values: list[float], window: cz.Window) -> list[cz.Event[float]]:
        return [cz.Event(window.start, end, v) for v in values]

    table = pa.table({"ts": pa.array([datetime(2024, 1, 1, 0, 0, 5)], pa.timestamp("us", zone)), "v": [1.5]})
    found = cz.from_arrow(table, time="ts").tumbling("1m").apply(echo("v")).run()
    return found.table().to_pylist()


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_module_stamps_rows_with_the_times_of_its_stream(zone: str | None) -> None:
    end = datetime(2024, 1, 1, 0, 0, 30, tzinfo=UTC if zone else None)
    (row,) = stamped_by(zone=zone, end=end)
    assert row["RE"] == end
    assert row["value"] == 1.5


@pytest.mark.parametrize(
    ("end", "problem"),
    [
        (datetime(2024, 1, 1, tzinfo=UTC), "has a time zone, the stream's times have none"),
        ("soon", "is no time of this stream: wanted timestamp"),
        (1.5, "is no time of this stream"),
        (2**70, "is no time that there is"),
        (True, "is no time that there is"),
        (-5, "which is empty"),
    ],
)
def test_a_stamp_that_is_no_time_of_the_stream_is_refused(end: Any, problem: str) -> None:
    with pytest.raises(StreamError, match=problem):
        stamped_by(zone=None, end=end)


def test_a_row_before_its_window_is_refused_when_it_comes() -> None:
    @cz.udo(stamp="unchanged")
    def echo(events: list[cz.Event[float]]) -> list[cz.Event[float]]:
        return list(events)

    rows = [{"t": 12, "e": 15, "v": 1.0}, {"t": 18, "e": 23, "v": 2.0}]
    windows = cz.from_rows(rows, time="t", end="e").tumbling(10)
    with pytest.raises(StreamError, match="stamped a row at 18, before its window from 20 on"):
        windows.apply(echo("v")).run()
