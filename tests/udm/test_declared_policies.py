"""Modules that say how they are cut and stamped, or take sets of changes; functions that go by a name."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator

import pytest

import caesura as cz
from caesura import Event, Stream, col
from caesura.audit import audit_states
from caesura.errors import CaesuraError, ExprError, PlanError
from caesura.expr.calls import forget_udf
from caesura.udm.check import check_module


def read(n: int = 60) -> Stream:
    rng = random.Random(3)
    rows = [
        {"t": i, "e": i + rng.randint(1, 14), "k": i % 2, "v": float(rng.randint(0, 9))} for i in range(n)
    ]
    return cz.from_rows(rows, time="t", end="e", punctuate=cz.delay(2), batch_size=7)


@cz.udo(clip="full", stamp="clipped")
def echoed(members: list[Event[float]]) -> list[Event[float]]:
    return [Event(m.start, m.end, m.payload) for m in members]


@cz.udo
def stamped(members: list[Event[float]]) -> list[Event[float]]:
    return [Event(m.start, m.end, m.payload) for m in members]


def test_a_module_declares_its_own_clipping_and_stamping() -> None:
    windows = read().tumbling(10)
    given = windows.apply(stamped("v"), clip="full", stamp="clipped").run().history
    assert windows.apply(echoed("v")).run().history == given
    assert windows.apply(echoed("v"), stamp="aligned").run().history != given


def test_a_stamped_row_is_not_stamped_anew_without_a_word() -> None:
    windows = read().tumbling(10)
    with pytest.warns(UserWarning, match="'stamped' stamps its rows, which live as long as their window"):
        windows.apply(stamped("v"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        windows.apply(stamped("v"), stamp="aligned")
        windows.apply(echoed("v"))


def test_a_policy_that_is_none_is_refused_where_it_is_used() -> None:
    @cz.udo(clip="half")
    def halved(members: list[Event[float]]) -> list[float]:
        return []

    with pytest.raises(PlanError, match="clip='half' is no policy"):
        read().tumbling(10).apply(halved("v"))


def test_aggregates_that_want_their_members_cut_differently_say_so() -> None:
    @cz.uda(clip="full")
    def lived(members: list[Event[float]]) -> float:
        return float(sum(m.duration for m in members))

    @cz.uda(clip="left")
    def reached(members: list[Event[float]]) -> float:
        return float(max(m.end for m in members))

    windows = read().tumbling(10)
    assert windows.agg(x=lived("v")).run().history == windows.agg(x=lived("v"), clip="full").run().history
    with pytest.raises(PlanError, match="want their members cut differently: full, left"):
        windows.agg(x=lived("v"), y=reached("v"))


@cz.uda
class Total:
    def init(self) -> list[float]:
        return [0.0, 0.0]

    def add_all(self, state: list[float], values: list[float]) -> None:
        state[0] += sum(values)
        state[1] += 1

    def remove_all(self, state: list[float], values: list[float]) -> None:
        state[0] -= sum(values)
        state[1] += 1

    def compute(self, state: list[float]) -> float:
        return state[0]


@pytest.mark.parametrize("speculate", ["arrival", "passed", "watermark"])
@pytest.mark.parametrize("frame", ["tumbling", "hopping", "snapshot", "session"])
def test_a_module_that_takes_sets_of_changes_gives_the_sums(frame: str, speculate: str) -> None:
    frames = {
        "tumbling": lambda s: s.group_by("k").tumbling(10),
        "hopping": lambda s: s.group_by("k").hopping(20, every=5),
        "snapshot": lambda s: s.group_by("k").snapshot(),
        "session": lambda s: s.group_by("k").session(3, longest=40),
    }
    windows = frames[frame](read())
    got = windows.agg(x=Total("v")).run(speculate=speculate)  # type: ignore[arg-type]
    assert got.history == windows.agg(x=cz.sum("v")).run().history


def test_sets_are_taken_in_one_call_for_each_window() -> None:
    calls: list[int] = []

    @cz.uda
    class Counted:
        def init(self) -> list[int]:
            return [0]

        def add_all(self, state: list[int], values: list[float]) -> None:
            calls.append(len(values))
            state[0] += len(values)

        def remove_all(self, state: list[int], values: list[float]) -> None:
            state[0] -= len(values)

        def compute(self, state: list[int]) -> int:
            return state[0]

    rows = [{"t": t, "v": 1.0} for t in range(20)]
    done = cz.from_rows(rows, time="t", batch_size=20).tumbling(10).agg(n=Counted("v")).run()
    assert [r["n"] for r in done.table().to_pylist()] == [10, 10] == calls
    assert check_module(Counted)


def test_the_audit_recomputes_modules_that_take_sets() -> None:
    stream = read().tumbling(10).agg(x=Total("v"))
    done = stream.run(claims=cz.tokens(every=20))
    findings = audit_states({"out": stream.node}, [(c, {"out": done.at(c)}) for c in done.claims])
    assert len(findings) > 2 and all(f.right for f in findings)


@pytest.fixture
def kmh() -> Iterator[str]:
    @cz.udf(registered=True)
    def as_kmh(mph: float) -> float:
        return mph * 2

    yield "as_kmh"
    forget_udf("as_kmh")


def test_a_function_goes_by_its_name_in_python_and_in_texts(kmh: str) -> None:
    wanted = read(5).select(x=col("v") * 2).run().history
    assert read(5).select(x=cz.udf(kmh)("v")).run().history == wanted
    assert read(5).select(x=cz.expr("AS_KMH(v)")).run().history == wanted
    rows = cz.from_rows([{"t": 1, "v": 2.0}], time="t")
    assert cz.sql("SELECT as_kmh(v) AS x FROM s", s=rows).run().table()["x"].to_pylist() == [4.0]


def test_a_name_is_taken_once_and_unknown_ones_are_refused(kmh: str) -> None:
    with pytest.raises(ExprError, match="a function is called 'as_kmh' already"):
        cz.udf(lambda v: v, returns="double", name=kmh, registered=True)
    with pytest.raises(CaesuraError, match="no function is registered as 'as_kmhh'"):
        cz.udf("as_kmhh")
