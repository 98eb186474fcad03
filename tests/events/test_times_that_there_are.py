"""A step on lifetimes moves a row as whole numbers without end would, or it stops and says which row."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

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
