"""What a user's function raises is told as its failure, with the user's line, whatever it raises and where.

Some exceptions steer Python itself: raised in an iterator or a generator, they would be the end of rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster
from depth import DEPTH

import caesura as cz
from caesura import Stream, col
from caesura.errors import CaesuraError
from caesura.runtime.sinks.memory import CallbackSink

ROWS = [{"ts": n, "k": n % 3, "v": n} for n in range(30)]
KINDS: dict[str, Callable[[], BaseException]] = {
    "StopIteration": lambda: StopIteration(7),
    "StopAsyncIteration": lambda: StopAsyncIteration("no more"),
    "GeneratorExit": lambda: GeneratorExit("closed"),
    "KeyError": lambda: KeyError("k"),
    "RecursionError": lambda: RecursionError("maximum recursion depth exceeded"),
}
RAISED: list[Callable[[], BaseException]] = []
"""What functions raise, and the last of it."""


def fails() -> None:
    raise RAISED[-1]()


@cz.udf
def by_row(v: int) -> int:
    fails()
    return v


@cz.udf(vectorised=True)
def by_column(v: int) -> int:
    fails()
    return v


@cz.udf
def decides(v: int) -> bool:
    fails()
    return v > 0


@cz.uda
def whole(values: list[int]) -> int:
    fails()
    return len(values)


@cz.uda
class Stepwise:
    def init(self) -> list[int]:
        return [0]

    def add(self, state: list[int], value: int) -> None:
        fails()

    def remove(self, state: list[int], value: int) -> None:
        fails()

    def compute(self, state: list[int]) -> int:
        return state[0]


@cz.udo
def made(values: list[int]) -> list[int]:
    fails()
    return values


@cz.udo
def made_one_by_one(values: list[int]) -> Iterator[int]:
    yield 1
    fails()


def stream() -> Stream:
    return cz.from_rows(ROWS, time="ts", punctuate=cz.delay(3), batch_size=5)


def windows() -> Stream:
    return stream().group_by("k").tumbling(5)


PLACES: dict[str, Callable[[], Stream]] = {
    "udf": lambda: stream().select(w=by_row("v")),
    "udf of columns": lambda: stream().select(w=by_column("v")),
    "where": lambda: stream().where(decides("v")),
    "where behind windows": lambda: windows().agg(n=cz.sum("v")).where(decides("n")),
    "join": lambda: stream().join(stream().select("k", w=by_row("v")), on="k"),
    "key": lambda: stream().with_columns(k=by_row("v")).group_by("k").tumbling(5).agg(n=cz.count()),
    "argument": lambda: windows().agg(n=cz.sum(by_row("v"))),
    "uda": lambda: windows().agg(n=whole("v")),
    "uda in steps": lambda: windows().agg(n=Stepwise("v")),
    "uda in hops": lambda: stream().hopping(6, every=2).agg(n=Stepwise("v")),
    "udo": lambda: stream().tumbling(5).apply(made("v")),
    "udo, a generator": lambda: stream().tumbling(5).apply(made_one_by_one("v")),
    "pattern": lambda: stream().match_rows("A", define={"A": decides("v")}, measures={"n": cz.count()}),
}


def generated() -> Iterator[dict[str, int]]:
    yield from ROWS[:7]
    fails()


class Rows:
    """An iterator of a user's own; StopIteration is its end."""

    def __init__(self) -> None:
        self.rows = iter(ROWS[:7])

    def __iter__(self) -> Iterator[dict[str, int]]:
        return self

    def __next__(self) -> dict[str, int]:
        for row in self.rows:
            return row
        fails()
        raise AssertionError


SOURCES: dict[str, Callable[[], Any]] = {"generator": generated, "iterator": Rows}
SCHEMA = pa.schema([(name, pa.int64()) for name in ROWS[0]])


def saved(plan: Stream, folder: Path) -> None:
    plan.query(checkpoint=folder / "cp", sink=folder / "out").run()


WAYS: dict[str, Callable[[Stream, Path], object]] = {
    "run": lambda plan, _: plan.run(),
    "threads": lambda plan, _: plan.run(threads=2),
    "buckets": lambda plan, _: Cluster({"out": plan.node}, 2).run(),
    "final": lambda plan, _: plan.run(output="final"),
    "durable": saved,
}


@pytest.mark.parametrize("way", WAYS if DEPTH > 1 else ["run", "threads"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_users_function_raises_is_told_with_its_line(
    kind: str, place: str, way: str, tmp_path: Path
) -> None:
    RAISED.append(KINDS[kind])
    with pytest.raises(CaesuraError) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        WAYS[way](PLACES[place](), tmp_path)
    told = str(caught.value)
    assert kind in told, told
    assert "fault of ours" not in told and "does not understand" not in told, told
    assert Path(__file__).name in told, told


@pytest.mark.parametrize("way", [way for way in WAYS if way != "buckets"] if DEPTH > 1 else ["threads"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_source_of_the_users_raises_is_told_with_its_line(
    kind: str, source: str, way: str, tmp_path: Path
) -> None:
    RAISED.append(KINDS[kind])
    plan = cz.from_rows(SOURCES[source](), time="ts", schema=SCHEMA, punctuate=cz.delay(3), name="rows")
    if (kind, source) == ("StopIteration", "iterator"):
        assert plan.run().table().num_rows == 7
        return
    with pytest.raises(CaesuraError) as caught:
        WAYS[way](plan.where(col("v") >= 0), tmp_path)
    told = str(caught.value)
    assert kind in told or kind in repr(caught.value.__cause__), told
    assert "fault of ours" not in told and "does not understand" not in told, told
    assert f"raised at {Path(__file__).name}" in told, told


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_sink_of_the_users_raises_is_told_with_its_line(kind: str, tmp_path: Path) -> None:
    RAISED.append(KINDS[kind])
    with pytest.raises(CaesuraError) as caught:
        stream().query(checkpoint=tmp_path / "cp", sink=CallbackSink(lambda epoch: fails())).run()
    told = str(caught.value)
    assert kind in told and "fault of ours" not in told and Path(__file__).name in told, told
