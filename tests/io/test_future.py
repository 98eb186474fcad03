"""A bound on the future: one wrong time does not make all that follows late."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import caesura as cz
from caesura.errors import PlanError
from caesura.io import from_rows
from caesura.plan import Raw

NOON = datetime(2024, 5, 1, 12)
BAD = {"t": datetime(9999, 1, 1), "id": 99}


def rows(count=40):
    return [{"t": NOON + timedelta(seconds=n), "id": n} for n in range(count)]


def counts(some, **options):
    policy = cz.delay("5s", **options)
    result = cz.from_rows(some, time="t", punctuate=policy).tumbling("10s").agg(n=cz.count()).run()
    late = result.late.get("read", pa.table({"reason": []})).column("reason").to_pylist()
    return [n for (_, _, (n,)), _ in sorted(result.history.bag.items())], late


@pytest.mark.parametrize("place", [1, 7, 20, 40])
def test_a_row_of_the_year_9999_is_refused_wherever_it_stands_and_makes_nothing_late(place):
    some = rows()
    some.insert(place, BAD)
    got, [reason] = counts(some)
    assert got == [10] * 4
    assert reason.startswith(
        "time 9999-01-01 00:00:00.000000 is more than 366d ahead of its lane, which is at"
    )


def test_the_first_row_of_a_lane_enters_and_moves_no_bound_that_the_second_does_not_bear_out():
    assert counts([BAD, *rows()]) == ([10] * 4 + [1], [])


def test_milliseconds_in_a_stream_of_seconds_are_refused():
    seconds = [int(NOON.timestamp()) + n for n in range(40)]
    seconds.insert(20, seconds[20] * 1000)
    table = pa.table({"t": pa.array(seconds, pa.timestamp("s")), "id": list(range(41))})
    result = cz.from_arrow(table, time="t", punctuate=cz.delay("5s")).tumbling("10s").agg(n=cz.count()).run()
    assert result.late["read"].column("id").to_pylist() == [20]
    assert sum(n for _, _, (n,) in result.history.bag) == 40


def test_whoever_wants_whatever_comes_gets_it():
    got, late = counts([*rows(20), BAD, *rows(30)[20:]], future=None)
    assert got == [10, 10, 1] and len(late) == 10


def test_behind_a_pause_longer_than_the_bound_a_lane_goes_on_after_a_few_rows():
    later = [{**row, "t": row["t"] + timedelta(hours=2)} for row in rows()]
    got, late = counts([*rows(), *later], future="1h")
    assert sum(got) == 80 - 12 and len(late) == 12


def test_where_a_clock_is_read_rows_are_held_against_it():
    ingress = from_rows(rows(), time="t", punctuate=cz.delay("5s", idle="1m", future="1h")).operator()
    clock = int((NOON - datetime(1970, 1, 1)).total_seconds()) * 1_000_000
    ingress.on_clock(clock)
    times = [NOON + timedelta(minutes=m) for m in (-600, 59, 61)]
    ingress.raw(Raw(0, 0, pa.record_batch({"t": pa.array(times, pa.timestamp("us")), "id": [1, 2, 3]})))
    [late] = ingress.drain_late().to_pylist()
    assert (
        late["id"] == 3 and "more than 1h ahead of the clock, which reads 2024-05-01 12:00" in late["reason"]
    )


def test_check_names_sources_of_timestamps_that_have_no_bound():
    named = [
        "no bound on the future" in str(cz.from_rows(rows(), time="t", punctuate=policy, name="a").check())
        for policy in (cz.delay("5s", future=None), cz.delay("5s"), cz.every(3), cz.at_end())
    ]
    assert named == [True, False, False, False]
    ticks = cz.from_rows([{"t": 1}], time="t", punctuate=cz.delay(5))
    assert "no bound on the future" not in str(ticks.check())


def test_a_bound_below_zero_is_refused():
    with pytest.raises(PlanError, match="the bound on the future is '-1h', below zero"):
        cz.from_rows(rows(), time="t", punctuate=cz.delay("5s", future="-1h"))
