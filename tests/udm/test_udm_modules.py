"""Modules are written as plain Python, typed by annotation, used by name, and refused with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import caesura as cz
from caesura import Event, Window, uda, udm, udo
from caesura.errors import PlanError, StreamError
from caesura.ops.input import Input
from caesura.runtime import Query
from caesura.testing import draw, parse
from caesura.udm import check_module, forget, names, register


@dataclass
class Peak:
    at: int
    price: float


def prices() -> cz.Stream:
    rows = [{"t": t, "sym": "a", "price": p} for t, p in ((1, 3.0), (4, 5.0), (8, 4.0), (12, 9.0))]
    return cz.from_rows(rows, time="t")


def drawn(stream: cz.Stream) -> list[tuple[Any, ...]]:
    return [(le, re, *row) for le, re, row in stream.run().history.rows()]


def test_a_function_over_a_list_of_values_works_unchanged() -> None:
    from statistics import median

    middle = uda(returns="double", name="middle")(median)
    got = prices().group_by("sym").tumbling(10).agg(m=middle("price"), n=cz.count())
    assert drawn(got) == [(0, 10, "a", 4.0, 3), (10, 20, "a", 9.0, 1)]


def test_a_function_over_a_frame_of_the_window_works_unchanged() -> None:
    @uda
    def rises(frame: pd.DataFrame) -> int:
        return int((frame["price"].diff() > 0).sum())

    assert drawn(prices().tumbling(10).agg(r=rises())) == [(0, 10, 1), (10, 20, 0)]


def test_arrays_and_segments_are_handed_over_whole() -> None:
    @uda
    def top(values: np.ndarray) -> float:
        return float(values.max())

    @uda(returns="double", vectorised=True)
    def tops(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(values, starts)

    got = prices().tumbling(10).agg(a=top("price"), b=tops("price"))
    assert drawn(got) == [(0, 10, 5.0, 5.0), (10, 20, 9.0, 9.0)]


def test_initialisation_parameters_and_mapping_expressions() -> None:
    @uda
    def above(values: list[float], limit: float = 0.0) -> int:
        return sum(v > limit for v in values)

    got = prices().tumbling(10).agg(n=above(cz.col("price") * 10, limit=45.0))
    assert drawn(got) == [(0, 10, 1), (10, 20, 1)]
    with pytest.raises(PlanError, match="no parameter 'limt'"):
        above("price", limt=3)


def test_an_operator_gives_rows_with_its_own_stamps() -> None:
    @udo
    def peaks(events: list[Event[float]], window: Window) -> list[Event[Peak]]:
        best = max(events, key=lambda e: e.payload)
        return [Event(best.start, window.end, Peak(best.start, best.payload))]

    got = prices().tumbling(10).apply(peaks("price"), clip="full", stamp="unchanged")
    assert got.schema.names == ["at", "price"]
    assert drawn(got) == [(4, 10, 4, 5.0), (12, 20, 12, 9.0)]


def test_the_query_may_override_the_stamps_of_a_module() -> None:
    @udo
    def echo(events: list[Event[float]]) -> list[Event[float]]:
        return list(events)

    got = prices().where(cz.col("price") > 8).tumbling(10).apply(echo("price"), stamp="aligned")
    assert drawn(got) == [(10, 20, 9.0)]


def test_a_registered_module_is_used_by_name() -> None:
    @uda(name="registry-test")
    def lowest(values: list[float]) -> float:
        return min(values)

    register(lowest)
    try:
        assert "registry-test" in names()
        assert drawn(prices().tumbling(20).agg(x=udm("registry-test")("price"))) == [(0, 20, 3.0)]
        with pytest.raises(PlanError, match="called 'registry-test' already"):
            register(uda(name="registry-test")(lambda values: 1.0) if False else _other())
    finally:
        forget("registry-test")
    with pytest.raises(PlanError, match="there is no module 'registry-test'"):
        udm("registry-test")


def test_a_package_offers_modules_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("offered", f"{__name__}:_text", "caesura.udm"),
        EntryPoint("lost", "no_such_package:thing", "caesura.udm"),
        EntryPoint("wrong", f"{__name__}:prices", "caesura.udm"),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    try:
        assert {"offered", "lost"} <= set(names())
        assert udm("offered") is _text
    finally:
        forget("offered")
    with pytest.raises(PlanError, match="cannot be loaded from no_such_package:thing"):
        udm("lost")
    with pytest.raises(PlanError, match="is no module but function"):
        udm("wrong")


def _other() -> Any:
    return uda(name="registry-test", returns="double")(lambda values: 1.0)


def test_a_module_that_raises_names_the_window_and_the_rows() -> None:
    @uda
    def fragile(values: list[float]) -> float:
        return 1 / (len(values) - 1)

    with pytest.raises(StreamError) as caught:
        prices().tumbling(10).agg(x=fragile("price")).run()
    assert "raised ZeroDivisionError" in str(caught.value)
    assert "Window [10, 20), with the rows [9.0]" in str(caught.value)


def test_a_result_of_the_wrong_type_is_named() -> None:
    @uda
    def lies(values: list[float]) -> int:
        return "many"  # type: ignore[return-value]

    with pytest.raises(StreamError, match="returned 'many', which is no int64"):
        prices().tumbling(10).agg(x=lies("price")).run()


def test_a_module_that_is_not_deterministic_is_survived_and_counted() -> None:
    answers = iter(range(1000))

    @uda
    def moody(values: list[float]) -> int:
        return next(answers)

    result = prices().tumbling(10).agg(x=moody("price")).run()
    assert len(result.history) == 2
    assert result.counters["tumbling"].extra["nondeterministic"] >= 1


@uda(mergeable=True)
class _Total:
    """A sum that is kept, and merges."""

    def init(self) -> list[float]:
        return [0.0]

    def add(self, state: list[float], value: float) -> None:
        state[0] += value

    def remove(self, state: list[float], value: float) -> None:
        state[0] -= value

    def merge(self, state: list[float], other: list[float]) -> None:
        state[0] += other[0]

    def compute(self, state: list[float]) -> float:
        return state[0]


_Kept = uda(_Total.target)
ASKED = ("adds", "removes", "calls", "handed_over")


def calls(stream: cz.Stream) -> tuple[int, ...]:
    """How often a module was asked to add, to remove and to compute; and was given whole windows."""
    (extra,) = (c.extra for c in stream.run(output="final").counters.values() if "adds" in c.extra)
    return tuple(extra[name] for name in ASKED)


def test_incremental_means_adds_and_removes_only() -> None:
    rows = [{"t": t, "price": 1.0} for t in range(100)]
    ticks = cz.from_rows(rows, time="t", batch_size=1, punctuate=cz.delay(0))
    assert calls(ticks.tumbling(50).agg(x=_Kept("price"))) == (100, 0, 2, 0)


def test_a_sliding_state_adds_and_removes_each_event_once() -> None:
    rows = [{"t": t, "price": 1.0} for t in range(100)]
    ticks = cz.from_rows(rows, time="t", batch_size=7, punctuate=cz.delay(0))
    sliding = ticks.hopping(10, every=1).agg(x=_Kept("price"))
    adds, removes, computed, whole = calls(sliding)
    assert (adds, removes, computed, whole) == (100, 99, 109, 0)  # the last one goes with its state


def test_mergeable_states_add_each_event_once_and_never_remove() -> None:
    rows = [{"t": t, "price": 1.0} for t in range(100)]
    ticks = cz.from_rows(rows, time="t", batch_size=7, punctuate=cz.delay(0))
    for size in (10, 40):
        stream = ticks.hopping(size, every=2).agg(x=_Total("price"))
        (extra,) = (c.extra for c in stream.run(output="final").counters.values() if "adds" in c.extra)
        assert (extra["adds"], extra["removes"], extra["handed_over"]) == (100, 0, 0)
        assert extra["merges"] <= 3 * 50 + extra["calls"]  # whatever the size


def test_a_correction_is_told_to_the_windows_that_it_is_about() -> None:
    schema = pa.schema([("price", pa.float64())])
    stream = cz.Stream(Input(label="a", payload=schema)).tumbling(10).agg(x=_Kept("price"))
    query = Query({"out": stream.node})
    drawn = " LE RE | price |\n 1 25 | 2.0 | +\n 3 4 | 1.0 | +\n 12 13 | 1.0 | +"
    for text in (drawn, " LE RE | price |\n 1 25->15 | 2.0 | -"):
        for item in parse(text, schema):
            query.feed("a", item)
        query.run()
    (extra,) = (c.extra for c in query.counters().values() if "adds" in c.extra)
    assert [extra[name] for name in ASKED] == [
        5,
        1,
        3,
        0,
    ]  # it left one window; two did not change


def test_whole_windows_are_handed_over_at_a_restore_alone() -> None:
    schema = pa.schema([("price", pa.float64())])
    stream = cz.Stream(Input(label="a", payload=schema)).tumbling(10).agg(x=_Kept("price"))
    first, second = Query({"out": stream.node}), Query({"out": stream.node})
    for item in parse(" LE RE | price |\n 1 2 | 2.0 | +\n 3 4 | 1.0 | +\n 12 13 | 1.0 | +", schema):
        first.feed("a", item)
    first.run()
    second.restore({n: d for n, d in first.snapshot().items() if d is not None})
    for item in parse(" LE RE | price |\n 5 6 | 4.0 | +", schema):
        second.feed("a", item)
    second.run()
    (extra,) = (c.extra for c in second.counters().values() if "adds" in c.extra)
    assert [extra[name] for name in ASKED] == [4, 0, 1, 2]
    assert "7.0" in draw(second.take("out"), schema=stream.schema)


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: uda(lambda values: 1.0), "its result has no type"),
        (lambda: uda(returns="double")(lambda: 1.0), "too few to be given data"),
        (lambda: uda(returns="double", mergable=True)(lambda values: 1.0), "no property of a module"),
        (lambda: uda(returns="double", mergeable=True)(lambda values: 1.0), "no way to merge"),
        (lambda: prices().tumbling(5).agg(x=_text("price")), "takes 'value' as string, but price is double"),
        (lambda: prices().tumbling(5).agg(x=_rows("price")), "is a udo, used as a uda"),
        (lambda: prices().tumbling(5).agg(x=_text()), "wants a column 'value'"),
        (lambda: prices().tumbling(5).agg(x=_text("sym", "price")), "takes 1 columns"),
        (lambda: prices().tumbling(5).agg(x=3), "which is no aggregate"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(build: Any, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        build()


@uda
def _text(values: list[str]) -> int:
    return len(values)


@udo
def _rows(values: list[float]) -> list[float]:
    return values


def test_the_checker_finds_the_smallest_window_on_which_the_modes_disagree() -> None:
    @uda
    class Longest:
        def init(self) -> list[float]:
            return [0.0]

        def add(self, state: list[float], value: float) -> None:
            state[0] = max(state[0], value)

        def remove(self, state: list[float], value: float) -> None:
            pass

        def compute(self, state: list[float]) -> float:
            return state[0]

    (finding,) = check_module(Longest).findings
    assert finding.problem == "adding and removing disagrees with recomputing"
    assert finding.trial.rows == []


def test_the_checker_finds_false_declarations() -> None:
    @uda(monotone=True)
    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    @udo(time_bound=True)
    def last_first(events: list[Event[float]], window: Window) -> list[Event[float]]:
        return [Event(window.start, window.end, max(events, key=lambda e: e.start).payload)]

    assert [f.problem for f in check_module(mean).findings] == [
        "it is declared monotone, but more rows lower it"
    ]
    assert "time-bound" in str(check_module(last_first))


def test_the_checker_passes_what_is_right() -> None:
    from udm_modules import MODULES

    for module in MODULES.values():
        assert check_module(module, rounds=40), str(check_module(module, rounds=40))


def test_an_entry_point_offers_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    from caesura.udm import registry

    point = EntryPoint("offered", "udm_modules:spread", registry.GROUP)
    gone = EntryPoint("gone", "no_such_package:thing", registry.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point, gone])
    assert udm("offered").name == "spread"
    with pytest.raises(PlanError, match="cannot be loaded from no_such_package:thing"):
        udm("gone")
    forget("offered")


def test_batches_are_arrow_batches() -> None:
    @udo(returns={"n": "bigint"})
    def sizes(batch: pa.RecordBatch) -> Any:
        return pa.record_batch({"n": [batch.num_rows]})

    assert drawn(prices().tumbling(10).apply(sizes("price"))) == [(0, 10, 3), (10, 20, 1)]
