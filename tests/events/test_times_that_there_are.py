"""A step on lifetimes moves a row as whole numbers without end would, or it stops and says which row."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest

import caesura as cz
from caesura.expr import RowError
from caesura.kernels.ticks import FIRST, LAST

END = cz.INFINITY
STARTS = (FIRST, FIRST + 9, 0, 7, LAST - 9, LAST - 1)
LENGTHS = (1, 4, END)
AMOUNTS = (1, 4, 9, 2**62, END)
SIGNED = (*AMOUNTS, -1, -9, -(2**62), -END)


def moved(rule: str, by: int, start: int, end: int) -> tuple[int, int]:
    """Where a row comes to lie, in whole numbers that have no end; a start that is not there is END."""
    endless = end == END
    match rule:
        case "shift":
            return start + by, end if endless else end + by
        case "set_duration":
            return start, END if by == END else start + by
        case "extend":
            return start, END if endless or by == END else end + by
        case "scale":
            return start, end if endless else start + -(-(end - start) * by // 1)
        case "start_at":
            return -(-start // by) * by, end
        case _:
            return end, end + 1


def cases() -> list[tuple[str, int]]:
    told = [(rule, by) for rule in ("set_duration", "scale", "start_at") for by in AMOUNTS]
    told += [(rule, by) for rule in ("shift", "extend") for by in SIGNED]
    return [*told, ("points_at_end", 0)]


@pytest.mark.parametrize(("rule", "by"), cases())
def test_a_row_is_moved_exactly_or_the_query_stops(rule: str, by: int) -> None:
    for start, length in product(STARTS, LENGTHS):
        end = min(END, start + length)
        rows = cz.from_rows([{"ts": start, "until": end, "a": 7}], time="ts", end="until")
        step = getattr(rows, rule)
        stream = step(Fraction(by)) if rule == "scale" else step(by) if by else step()
        wanted = moved(rule, by, start, end)
        empty = end == END if rule == "points_at_end" else wanted[1] != END and wanted[0] >= wanted[1]
        there = FIRST <= wanted[0] <= LAST and (wanted[1] < END or told_endless(rule, by, end))
        if there or empty:
            found = [(le, re) for le, re, *_ in stream.run().history.rows()]
            assert found == ([] if empty else [wanted]), (start, end)
        else:
            with pytest.raises(
                RowError, match=rf"step '{rule}'.*beyond the times that there are; the row is"
            ):
                stream.run()


def told_endless(rule: str, by: int, end: int) -> bool:
    """Whether a row is to have no end."""
    return (rule in ("set_duration", "extend") and by == END) or (end == END and rule != "set_duration")


Spans = list[tuple[int, int]]


def windows(start: int, end: int, size: int, hop: int) -> Spans:
    """The windows that a row is in, cut where time ends; none lies before that of the first time."""
    first = max((start - size) // hop + 1, FIRST // hop)
    every = [(hop * n, hop * n + size) for n in range(first, (end - 1) // hop + 1)]
    return [(max(FIRST, a), min(END, b)) for a, b in every if b > FIRST]


def pieces(start: int, end: int, period: int) -> Spans:
    cuts = [start, *(t for t in range(start - start % period, end, period) if t > start), end]
    return list(pairwise(cuts))


@cz.uda(mergeable=True)
class count:  # noqa: N801
    def init(self) -> list[int]:
        return [0]

    def add(self, state: list[int], value: int) -> None:
        state[0] += 1

    def remove(self, state: list[int], value: int) -> None:
        state[0] -= 1

    def merge(self, state: list[int], other: list[int]) -> None:
        state[0] += other[0]

    def compute(self, state: list[int]) -> int:
        return state[0]


STEPS: dict[str, tuple[Callable[[cz.Stream], cz.Stream], Callable[[int, int], Spans]]] = {
    "tumbling": (lambda s: s.tumbling(10).agg(n=cz.count()), lambda a, b: windows(a, b, 10, 10)),
    "uda": (lambda s: s.tumbling(10).agg(n=count("a")), lambda a, b: windows(a, b, 10, 10)),
    "hopping": (lambda s: s.hopping(10, every=5).agg(n=cz.count()), lambda a, b: windows(a, b, 10, 5)),
    "chop": (lambda s: s.chop(10), lambda a, b: pieces(a, b, 10)),
    "clip": (lambda s: s.clip(s, "a"), lambda a, b: [(a, b)]),
    "session": (lambda s: s.session(50).agg(n=cz.count()), lambda a, b: [(a, b)]),
    "snapshot": (lambda s: s.snapshot().agg(n=cz.count()), lambda a, b: [(a, b)]),
    "alive": (lambda s: s.alive().agg(n=cz.count()), lambda a, b: [(a, b)]),
    "over": (lambda s: s.over(range=50).agg(n=cz.count()), lambda a, b: [(a, b)]),
    "within": (
        lambda s: s.join(s.select("a", b=cz.col("a")), on="a", within=(-50, 90)),
        lambda a, b: [(a, a + 1)],
    ),
    "join_asof": (
        lambda s: s.join_asof(s.select("a", b=cz.col("a")), on="a", tolerance=50),
        lambda a, b: [(a, b)],
    ),
    "hopping_lifetimes": (
        lambda s: s.hopping_lifetimes(10, every=5),
        lambda a, b: [(t := a - a % 5 + 5, t + 10)],
    ),
    "tumbling_lifetimes": (lambda s: s.tumbling_lifetimes(10), lambda a, b: [(t := a - a % 10 + 10, t + 10)]),
}


@pytest.mark.parametrize("options", [{}, {"output": "final"}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_a_row_at_an_end_of_time_gives_what_whole_numbers_would_or_stops_the_query(
    step: str, options: dict[str, Any]
) -> None:
    make, reference = STEPS[step]
    for start, length in product((FIRST, FIRST + 9, LAST - 30, LAST - 13, LAST - 9, LAST - 1, LAST), (1, 3)):
        end = min(END - 1, start + length)
        stream = make(cz.from_rows([{"ts": start, "until": end, "a": 7}], time="ts", end="until"))
        wanted = reference(start, end)
        if step == "hopping" and "threads" in options and start < 0:
            continue  # shares are put together by starts: the window that time cuts is as long as the others
        if step.endswith("lifetimes") and wanted[0][1] >= END:
            with pytest.raises(
                RowError, match=rf"step '{step}'.*beyond the times that there are; the row is"
            ):
                stream.run(**options)
            continue
        assert sorted((le, re) for le, re, *_ in stream.run(**options).history.rows()) == wanted, start
