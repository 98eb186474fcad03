"""Sums of whole numbers and decimals: kept wider than what leaves, so that only what leaves is checked."""

from __future__ import annotations

from decimal import Context, Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.errors import StreamError

MOST = 10**38 - 1
TYPES = {"decimal": pa.decimal128(38, 0), "integer": pa.int64()}
LARGE = {
    "decimal": st.sampled_from([MOST, MOST, MOST, -MOST, 2**126, -1, 2**64, 0]),
    "integer": st.sampled_from([2**63 - 1, -(2**63), 2**62, -1, 1, 0]),
}
LEAVES = {"decimal": MOST, "integer": 2**63 - 1}
WINDOWS = {
    "totals": lambda s: s.group_by("k").totals(x=cz.sum("v"), m=cz.avg("v")),
    "tumbling": lambda s: s.tumbling(8).agg(x=cz.sum("v"), m=cz.avg("v")),
    "hopping": lambda s: s.hopping(4, every=2).agg(x=cz.sum("v"), m=cz.avg("v")),
    "snapshot": lambda s: s.snapshot().agg(x=cz.sum("v"), m=cz.avg("v")),
}


def source(table: pa.Table, how: str) -> cz.Stream:
    """Two rows at a time; for snapshots, which leave as rows come, all at once."""
    size = table.num_rows if how == "snapshot" else 2
    return cz.from_arrow(table, time="ts", end="end", punctuate=cz.delay(20), batch_size=size)


def expected(how: str, numbers: list[int]) -> list[list[int]]:
    """The values that each window holds, in time; each value lives three ticks."""
    last = len(numbers) + 3
    spans = {
        "totals": [(0, last)],
        "tumbling": [(t, t + 8) for t in range(0, last, 8)],
        "hopping": [(t, t + 4) for t in range(-2, last, 2)],
        "snapshot": list(pairwise(sorted({end for t in range(len(numbers)) for end in (t, t + 3)}))),
    }
    held = [[v for t, v in enumerate(numbers) if t < b and a < t + 3] for a, b in spans[how]]
    return [some for some in held if some]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("how", WINDOWS)
def test_a_sum_is_refused_exactly_where_what_leaves_is_too_large(how: str, kind: str) -> None:
    @settings(max_examples=examples(8), deadline=None)
    @given(st.lists(LARGE[kind], min_size=1, max_size=9))
    def holds(numbers: list[int]) -> None:
        values: list[Any] = [Decimal(n) for n in numbers] if kind == "decimal" else numbers
        times = list(range(len(numbers)))
        columns = {"ts": times, "end": [t + 3 for t in times], "k": [1] * len(times)}
        table = pa.table({**columns, "v": pa.array(values, TYPES[kind])})
        stream = WINDOWS[how](source(table, how))
        held = expected(how, numbers)
        sums = [sum(some) for some in held]
        if any(abs(n) > LEAVES[kind] for n in sums if n != -(2**63) or kind == "decimal"):
            with pytest.raises(StreamError, match=r"38 digits|64 bits"):
                stream.run(output="final")
            return
        rows = stream.run(output="final").history.page
        found = rows.le.tolist(), *(rows.payload[name].to_pylist() for name in "xm")
        got = sorted(zip(*found, strict=True))
        assert [int(x) for _, x, _ in got] == sums
        assert [m for _, _, m in got] == [float(n) / len(some) for n, some in zip(sums, held, strict=True)]

    holds()


@pytest.mark.parametrize("how", WINDOWS)
def test_a_sum_of_decimals_that_comes_round_to_a_small_number_is_refused(how: str) -> None:
    values = pa.array([Decimal(MOST)] * 4, pa.decimal128(38, 0))
    table = pa.table({"ts": [0] * 4, "end": [3] * 4, "k": [1] * 4, "v": values})
    stream = WINDOWS[how](source(table, how))
    with pytest.raises(StreamError, match="38 digits"):
        stream.run(output="final")


def test_a_sum_of_decimals_may_go_far_beyond_what_leaves_on_its_way() -> None:
    values = [Decimal(MOST)] * 40 + [Decimal(-MOST)] * 39
    table = pa.table({"ts": [0] * len(values), "v": pa.array(values, pa.decimal128(38, 0))})
    out = cz.from_arrow(table, time="ts", batch_size=7).tumbling(1).agg(x=cz.sum("v")).run(output="final")
    assert out.table()["x"].to_pylist() == [Context(prec=38).create_decimal(MOST)]
