"""Every query of the benchmarks gives on two threads what it gives on one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "sql"))

from benchmarks import threads as cases
from benchmarks.nexmark import BY_CLOCK, Bench
from benchmarks.nexmark_data import house
from benchmarks.nexmark_queries import QUERIES
from nexmark_stream_sql import QUERIES as IN_SQL

import caesura as cz
from caesura import Stream

EVENTS = 1000
PYTHON = [name for name in QUERIES if name not in BY_CLOCK]  # the clock gives each run other times


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(house(EVENTS, per_second=100), tmp_path_factory.mktemp("nexmark"))


def in_sql(text: str, bench: Bench) -> Stream:
    streams = bench.streams("3 s late")
    return cz.sql(
        text,
        bid=streams.bid.forever(),
        auction=streams.auction.forever(),
        person=streams.person.forever(),
        side=cz.table(streams.side),
        closing=streams.open_auction.points_at_end().with_columns(closes=cz.start()),
    )


MADE: dict[str, Callable[[Bench], Stream]] = {
    **{name: lambda bench, name=name: QUERIES[name](bench.streams("3 s late")) for name in PYTHON},
    **{f"{name}, sql": lambda bench, text=text: in_sql(text, bench) for name, text in IN_SQL.items()},
    **{name: lambda bench, name=name: cases.stream_of(name, EVENTS) for name in cases.CASES},
}


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", MADE)
def test_a_query_of_the_benchmarks_gives_on_two_threads_what_it_gives_on_one(name: str, bench: Bench) -> None:
    stream = MADE[name](bench)
    for output in ("changes", "final"):
        one, two = (stream.run(output=output, threads=n) for n in (1, 2))
        assert one.history == two.history
        assert {k: v.num_rows for k, v in one.late.items()} == {k: v.num_rows for k, v in two.late.items()}
