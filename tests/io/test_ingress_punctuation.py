"""What each policy promises, and what becomes of rows that break a promise."""

from __future__ import annotations

import pyarrow as pa
import pytest
from cluster import Cluster
from io_streams import with_lanes

from caesura.errors import PlanError, StreamError
from caesura.events import Page, draw
from caesura.io import at_end, delay, every, from_arrow, from_rows, heartbeat, imported, in_data
from caesura.plan import Raw
from caesura.punctuation import Pattern, cti, definite
from caesura.runtime import Query

TIMES = pa.schema([("t", pa.int64()), ("id", pa.int64())])


def points(policy, lanes=1, late="reject"):
    node = from_arrow(pa.Table.from_batches([], TIMES), time="t", punctuate=policy, late=late)
    return with_lanes(node, lanes)


def give(ingress, *times, lane=0, offset=0, marks=()):
    batch = pa.record_batch({"t": pa.array(times, pa.int64()), "id": pa.array(times, pa.int64())})
    return ingress.raw(Raw(lane, offset, batch, tuple(marks)))


def said(items):
    return [str(item) for item in items if not isinstance(item, Page)]


def entered(items):
    return [t for item in items if isinstance(item, Page) for t in item.le.tolist()]


def reasons(ingress):
    table = ingress.drain_late()
    return [] if table is None else table.column("reason").to_pylist()


def test_a_delay_follows_the_latest_event():
    assert said(give(points(delay(5)), 10, 30, 28)) == ["definite: time < 25"]


def test_a_cti_that_does_not_advance_is_not_said_again():
    ingress = points(delay(5))
    give(ingress, 30)
    assert said(give(ingress, 27)) == []


def test_the_slowest_lane_holds_the_cti_even_before_it_is_read():
    ingress = points(delay(5), lanes=2)
    assert said(give(ingress, 30)) == []
    assert said(give(ingress, 12, lane=1)) == ["definite: time < 7"]


def test_a_row_is_late_by_its_own_lane_not_by_the_stream():
    ingress = points(delay(5), lanes=2)
    give(ingress, 30)
    assert entered(give(ingress, 3, 2, lane=1)) == [3, 2]
    assert entered(give(ingress, 24, offset=1)) == []
    assert reasons(ingress) == ["time 24 came after its lane had passed 25"]


def test_every_n_events_announces_less_often_and_judges_the_same():
    ingress = points(every(3))
    assert said(give(ingress, 10, 20)) == []
    assert entered(give(ingress, 15)) == []
    assert said(give(ingress, 30)) == ["definite: time < 30"]
    assert reasons(ingress) == ["time 15 came after its lane had passed 20"]


def test_a_page_with_nothing_late_passes_without_a_copy():
    batch = pa.record_batch({"t": [1, 2], "id": [7, 8]})
    [page, _] = points(delay(0)).raw(Raw(0, 0, batch))
    assert page.payload.column(0).buffers()[1].address == batch.column(1).buffers()[1].address
    assert page.le.ctypes.data == batch.column(0).buffers()[1].address


def test_an_insert_only_source_keeps_no_rows():
    ingress = points(delay(5))
    give(ingress, *range(100))
    assert ingress.measure().state_rows == 0


def test_a_heartbeat_follows_the_clock():
    ingress = points(heartbeat("10s", delay=5))
    assert give(ingress, 3) and said(ingress.on_clock(20)) == ["definite: time < 15"]
    assert entered(give(ingress, 14, 16)) == [16]
    assert reasons(ingress) == ["came after definite: time < 15"]


def test_a_silent_lane_lets_go_and_its_later_rows_obey_the_stream():
    ingress = points(delay(5, idle="100us"), lanes=2)
    ingress.on_clock(0)
    give(ingress, 10, lane=1)
    ingress.on_clock(99)
    assert said(give(ingress, 50)) == ["definite: time < 5"]
    assert said(ingress.on_clock(150)) == ["definite: time < 45"]
    assert entered(give(ingress, 44, 46, lane=1, offset=1)) == [46]
    assert reasons(ingress) == ["came after definite: time < 45"]


def test_at_end_says_all_at_the_end():
    ingress = points(at_end())
    assert said(give(ingress, 10, 30)) == []
    assert said(ingress.close()) == ["definite: *"]


def test_a_source_that_does_not_close_says_nothing_at_the_end():
    assert points(at_end(closes=False)).close() == []


def test_rows_after_the_end_are_late():
    ingress = points(at_end())
    ingress.close()
    assert give(ingress, 5) == []
    assert reasons(ingress) == ["came after definite: *"]


def test_punctuation_between_rows_cuts_the_page_and_is_obeyed():
    ingress = points(at_end())
    items = give(ingress, 1, 9, 3, marks=[(1, Pattern.before(5)), (2, Pattern(id=9))])
    assert draw(items).splitlines()[1:] == [
        "  1  2  | 1  | +",
        "-- definite: time < 5 --",
        "  9  10 | 9  | +",
        "-- definite: id = 9 --",
    ]
    assert entered(give(ingress, 9, 8, offset=3)) == [8]
    assert reasons(ingress) == ["came after definite: time < 5", "came after definite: id = 9"]


def test_punctuation_that_goes_backwards_is_counted_and_ignored():
    ingress = points(at_end())
    items = give(
        ingress, 9, marks=[(0, Pattern.before(8)), (1, Pattern.before(7)), (1, Pattern(id=3, time=2))]
    )
    assert said(items) == ["definite: time < 8"]
    assert ingress.counters.extra["covered"] == 2


def test_a_promise_on_a_column_speaks_for_its_lane_until_all_lanes_give_it():
    ingress = points(at_end(), lanes=2)
    assert said(give(ingress, 1, marks=[(1, Pattern(id=4))])) == []
    assert entered(give(ingress, 4, lane=1)) == [4]
    assert entered(give(ingress, 4, offset=1)) == []
    assert said(give(ingress, 5, lane=1, offset=1, marks=[(1, Pattern(id=4))])) == ["definite: id = 4"]
    assert entered(give(ingress, 4, lane=1, offset=2)) == []


def test_punctuation_that_names_no_column_is_noted_not_raised():
    ingress = points(at_end())
    assert said(give(ingress, 1, marks=[(1, Pattern(speed=4))])) == []
    [row] = ingress.drain_late().to_pylist()
    assert "speed" in row["reason"] and row["LE"] is None and row["offset"] == 1


def test_punctuation_rows_in_the_data_are_no_events():
    rows = [
        {"t": 1, "punct": None, "id": 4},
        {"t": None, "punct": "time < 20, id = 4", "id": None},
        {"t": 9, "punct": None, "id": 4},
        {"t": None, "punct": "time < 8", "id": None},
        {"t": 9, "punct": None, "id": 5},
        {"t": None, "punct": "gibberish", "id": None},
        {"t": None, "punct": "assumed: id = 4", "id": None},
    ]
    node = from_rows(rows, time="t", punctuate=in_data("punct"))
    ingress = node.operator()
    items = [item for raw in node.read({}) for item in ingress.raw(raw)]
    assert said(items) == ["definite: time < 20, id = 4", "definite: time < 8"]
    assert entered(items) == [1, 9] and node.schema.names == ["id"] and node.declares == ("*",)
    late = [(row["offset"], row["reason"].split(":")[0]) for row in ingress.drain_late().to_pylist()]
    assert late == [(5, "punctuation 'gibberish'"), (6, "punctuation 'assumed"), (2, "came after definite")]


def test_punctuation_in_the_data_may_name_moments():
    rows = [{"t": None, "punct": "time < 1970-01-01 00:00:02"}]
    schema = pa.schema([("t", pa.timestamp("ms")), ("punct", pa.string())])
    node = from_rows(rows, schema, time="t", punctuate=in_data("punct"))
    [raw] = node.read({})
    assert said(node.operator().raw(raw)) == ["definite: time < 2000000"]


def test_imported_ctis_become_our_own():
    clock = from_rows([{"t": 1}], time="t", name="clock")
    ingress = points(imported(clock))
    assert said(ingress.punctuation(0, cti(20))) == ["definite: time < 20"]
    assert said(ingress.punctuation(0, definite(id=4))) == []
    assert said(ingress.punctuation(0, definite())) == []
    assert entered(give(ingress, 19, 21)) == [21]
    assert reasons(ingress) == ["came after definite: time < 20"]


def test_an_importing_source_has_the_other_step_as_its_input():
    clock = from_rows([{"t": 1}], time="t", name="clock")
    node = from_rows([{"t": 1, "id": 2}], time="t", punctuate=imported(clock))
    assert node.inputs == (clock,)
    assert node.carry(0, Pattern.before(5)) == Pattern.before(5)
    assert node.carry(0, Pattern(id=4)) is None


def test_a_late_event_that_lives_on_is_adjusted():
    rows = [{"t": 20, "end": 30}, {"t": 2, "end": 40}, {"t": 3, "end": 15}]
    node = from_rows(rows, time="t", end="end", punctuate=delay(5), late="adjust")
    ingress = node.operator()
    [page] = [i for raw in node.read({}) for i in ingress.raw(raw) if isinstance(i, Page)]
    assert [(le, re) for le, re, *_ in page.rows()] == [(20, 30), (15, 40)]
    assert reasons(ingress) == ["time 3 came after its lane had passed 15"]


def test_late_rows_are_all_counted_and_the_latest_kept_where_a_limit_is_set():
    node = from_rows([{"t": 50}] + [{"t": n} for n in range(10)], time="t", punctuate=delay(0), late_limit=4)
    ingress = node.operator()
    for raw in node.read({}):
        ingress.raw(raw)
    assert ingress.counters.extra == {"late": 10, "late_dropped": 6}
    assert ingress.drain_late().column("offset").to_pylist() == [7, 8, 9, 10]
    assert ingress.drain_late() is None


def test_late_rows_keep_columns_that_are_called_like_ours():
    rows = [{"t": 9, "kind": "a", "reason": "b"}, {"t": 1, "kind": "c", "reason": "d"}]
    node = from_rows(rows, time="t", punctuate=delay(0))
    ingress = node.operator()
    for raw in node.read({}):
        ingress.raw(raw)
    [row] = ingress.drain_late().to_pylist()
    assert (row["kind"], row["kind_"], row["reason_"], row["lane"]) == ("+", "c", "d", 0)


def test_late_rows_show_timestamps_when_time_is_one():
    table = pa.table({"t": pa.array([90, 3], pa.timestamp("s", "UTC")), "id": [1, 2]})
    ingress = from_arrow(table, time="t", punctuate=delay("10s")).operator()
    ingress.raw(Raw(0, 0, table.to_batches()[0]))
    [row] = ingress.drain_late().to_pylist()
    assert (
        row["reason"]
        == "time 1970-01-01 00:00:03.000000 came after its lane had passed 1970-01-01 00:01:20.000000"
    )
    assert row["LE"].second == 3 and row["id"] == 2


@pytest.mark.parametrize("policy", [delay(-1), heartbeat("10s", delay=-5), delay("5s")])
def test_a_delay_that_cannot_be_is_refused_when_the_plan_is_built(policy):
    with pytest.raises(PlanError):
        points(policy)


def test_policies_join_and_tell_what_they_give():
    both = delay(5) & in_data("punct", closes=False)
    assert (both.gives, both.lag, both.column, both.closes) == ("any", 5, "punct", False)
    assert at_end().gives == "nothing" and heartbeat("1s").gives == "time"
    assert (
        str(heartbeat("10s", delay="30s"))
        == "time: 30s behind the clock, read every 10s; all at the end of input"
    )
    with pytest.raises(PlanError, match="disagree"):
        delay(5) & delay(6)


def test_a_policy_with_a_clock_asks_for_a_heartbeat():
    assert heartbeat("10s").period == 10_000_000
    assert delay(5, idle="1m").period == 15_000_000
    assert delay(5).period is None


@pytest.mark.parametrize(
    "text", ["", "  ", ",", "definite:", "id =", "id = 4, id = 5", "time < soon", "id in {4"]
)
def test_a_text_that_is_no_pattern_ends_nothing_and_is_in_the_late_table(text):
    rows = [{"t": None, "punct": text, "id": None}, {"t": 9, "punct": None, "id": 4}]
    node = from_rows(rows, time="t", punctuate=in_data("punct"))
    ingress = node.operator()
    items = [item for raw in node.read({}) for item in ingress.raw(raw)]
    assert said(items) == [] and entered(items) == [9]
    [told] = ingress.drain_late().to_pylist()
    assert told["offset"] == 0 and told["reason"].startswith(f"punctuation '{text}': ")


def test_a_cti_is_announced_when_time_has_moved_by_so_much():
    ingress = points(delay(0, moved=10))
    given = [said(give(ingress, time, offset=n)) for n, time in enumerate((1, 5, 10, 11, 12, 30))]
    assert given == [["definite: time < 1"], [], [], ["definite: time < 11"], [], ["definite: time < 30"]]
    assert entered(give(ingress, 12, offset=6)) == []
    assert reasons(ingress) == ["time 12 came after its lane had passed 30"]


@pytest.mark.parametrize("rows", [[{"t": 9}, {"t": 1}], [{"t": 9}, {"t": None}]])
@pytest.mark.parametrize("buckets", [None, 2])
def test_a_source_that_wants_no_late_row_stops_at_the_first(rows, buckets):
    node = from_rows(rows, pa.schema([("t", pa.int64())]), time="t", punctuate=delay(0), late="error")
    with pytest.raises(StreamError, match=r"came after its lane had passed 9|has no time"):
        (Query({"out": node}) if buckets is None else Cluster({"out": node}, buckets)).run()
