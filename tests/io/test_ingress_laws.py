"""What must hold of every raw stream: cuts and interleavings never show, promises are kept, replays agree."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from io_streams import (
    SCHEMA,
    Change,
    Placed,
    delay,
    feed,
    garbled,
    late_rows,
    lawful,
    obvious,
    pushed,
    raws,
    schema_of,
    source,
    with_lanes,
)

import caesura as cz
import caesura.io.ingress.match_kernels as match_kernels
import caesura.io.ingress.matching as matching
import caesura.io.ingress.open_kernels as open_kernels
import caesura.io.ingress.row_kernels as row_kernels
import caesura.io.ingress.run_kernels as run_kernels
import caesura.io.ingress.runs as runs
import caesura.kernels.hashing as hashing
from caesura.events import History, violations
from caesura.kernels import Kernel

cuts = st.sets(st.integers(1, 24))
lags = st.sampled_from([0, 2, 6])
modes = st.sampled_from(["reject", "adjust"])
IDS = pa.schema([("id", pa.int64())])
NONE = pa.table({})


@pytest.fixture(params=["plenty of room", "cramped", "row by row"], autouse=True)
def room(request, monkeypatch):
    """The matcher with its own limits; so cramped that it purges and indexes all the time; never in bulk."""
    if request.param == "cramped":
        monkeypatch.setattr(matching, "SLACK", 2)
        monkeypatch.setattr(matching, "TAIL", 3)
    if request.param == "row by row":
        monkeypatch.setattr(runs, "DENSE", 0)


def outcome(node, rows, at, lanes=1, schema=SCHEMA):
    ingress = with_lanes(node, lanes)
    items = feed(ingress, raws(rows, at, schema)) + ingress.close()
    assert violations(items) == []
    return History.of(items, node.schema).bag, late_rows(ingress), ingress


@given(garbled(), cuts, lags, modes)
@settings(max_examples=examples(40, short=20), deadline=None)
def test_any_rows_in_any_cut_give_what_the_obvious_ingress_gives(rows, at, lag, late):
    history, refused, _ = outcome(source(delay(lag), late), rows, at)
    assert (history, refused) == obvious(rows, 1, lag, late)


@given(garbled(lanes=2), cuts, lags, modes)
@settings(max_examples=examples(40, short=20), deadline=None)
def test_any_rows_of_two_lanes_in_any_cut_give_what_the_obvious_ingress_gives(rows, at, lag, late):
    history, refused, _ = outcome(source(delay(lag), late), rows, at, lanes=2)
    assert (history, refused) == obvious(rows, 2, lag, late)


@given(garbled(lanes=2), cuts, lags, modes, st.sampled_from([0, 2, 5]))
@settings(max_examples=examples(40, short=20), deadline=None)
def test_any_rows_under_a_bound_on_the_future_give_what_the_obvious_ingress_gives(
    rows, at, lag, late, future
):
    history, refused, _ = outcome(source(delay(lag, future=future), late), rows, at, lanes=2)
    assert (history, refused) == obvious(rows, 2, lag, late, future=future)


@given(garbled(), st.dictionaries(st.integers(0, 24), st.integers(0, 12)), cuts, modes)
@settings(max_examples=examples(40, short=20), deadline=None)
def test_any_rows_that_are_pushed_in_any_cut_give_what_the_obvious_ingress_gives(rows, said, at, late):
    rows = [placed for placed in rows if placed.row.kind != "?"]
    query = cz.input_stream("a", IDS, late=late).query()
    for item in pushed(rows, said, at):
        query.feed("a", item)
    query.run()
    items, refused = query.take("out"), query.late().get("a", NONE).to_pylist()
    assert violations(items) == []
    got = sorted((r["lane"], r["offset"], r["reason"]) for r in refused if r["kind"] != "punctuation")
    renumbered = [Placed(0, n, placed.row) for n, placed in enumerate(rows)]
    assert (History.of(items, IDS).bag, got) == obvious(renumbered, 1, None, late, said)


def long_course(seed, names):
    """Rows mostly in order: some late, some taken back, shortened, doubled, or without an insert."""
    random = np.random.default_rng(seed)
    coarse, jitter = random.choice([1, 1, 7]), random.choice([0.02, 0.1, 0.7])
    rows, live = [], []
    for number in range(int(random.integers(150, 400))):
        if live and random.random() < 0.25:
            old = live.pop(int(random.integers(len(live))) if random.random() < 0.3 else 0)
            new = old.le if random.random() < 0.8 else int(random.integers(old.le, old.re + 3))
            rows += [old._replace(kind="-", new=new)] * (1 + (random.random() < 0.05))
            if random.random() < 0.1 and new > old.le:
                live.append(old._replace(re=new))
            continue
        back = int(random.integers(0, 40)) if random.random() < jitter else 0
        start = max(0, number - back) // coarse * coarse + 50
        row = Change("+", start, start + int(random.choice([1, 1, 9])), None, random.choice(names).item())
        rows.append(row)
        live += [row] * (random.random() < 0.5)
        if random.random() < 0.05:
            rows.insert(len(rows) - int(random.integers(2)), row._replace(kind="-", new=row.le))
    return [Placed(0, n, row) for n, row in enumerate(rows)]


NAMES = (np.arange(3), np.array(["", "a", "b", "c", "a longer name"]), np.array([0.5, 1.5, -3.0]))
TYPES = (pa.int64(), pa.string(), pa.float64())


@pytest.mark.parametrize("kind", range(3))
@pytest.mark.parametrize("seed", range(examples(12, short=3)))
def test_long_pages_mostly_in_order_give_what_the_obvious_ingress_gives(seed, kind):
    rows, schema = long_course(seed, NAMES[kind]), schema_of(TYPES[kind])
    lag, at = [0, 20, 60][seed % 3], range(90, 400, 90)
    history, refused, _ = outcome(source(delay(lag), schema=schema), rows, at, schema=schema)
    assert (history, refused) == obvious(rows, 1, lag, "reject")


@given(lawful(), st.data(), cuts, lags)
@settings(max_examples=examples(40, short=20), deadline=None)
def test_any_interleaving_of_lanes_gives_the_same_history_and_late_rows(lanes, data, at, lag):
    placed = [[Placed(n, i, row) for i, row in enumerate(rows)] for n, rows in enumerate(lanes)]
    turns = data.draw(st.permutations([0] * len(lanes[0]) + [1] * len(lanes[1])))
    left, right = iter(placed[0]), iter(placed[1])
    mixed = [next(right if turn else left) for turn in turns]
    first = outcome(source(delay(lag)), placed[0] + placed[1], (), lanes=2)
    second = outcome(source(delay(lag)), mixed, at, lanes=2)
    assert first[:2] == second[:2]


@given(garbled(lanes=2), st.integers(0, 24), lags, modes)
@settings(max_examples=examples(20, short=10), deadline=None)
def test_an_ingress_restored_at_any_point_continues_exactly(rows, stop, lag, late):
    node = source(delay(lag, every=3), late)
    whole, some = with_lanes(node, 2), with_lanes(node, 2)
    before, after = raws(rows[:stop], range(24)), raws(rows[stop:], range(24))
    chunks: dict[str, bytes | None] = {}
    for raw in before:
        feed(whole, [raw])
        feed(some, [raw])
        chunks |= some.snapshot()
    again = with_lanes(node, 2)
    again.restore({k: v for k, v in (chunks | some.snapshot()).items() if v is not None})
    expected, got = feed(whole, after) + whole.close(), feed(again, after) + again.close()
    assert [str(i) if not hasattr(i, "rows") else i.rows() for i in got] == [
        str(i) if not hasattr(i, "rows") else i.rows() for i in expected
    ]
    assert late_rows(again) == late_rows(whole)
    assert again.counters.extra == whole.counters.extra


@given(garbled(lanes=2), cuts, lags, modes)
@settings(max_examples=examples(20, short=10), deadline=None)
def test_the_compiled_kernels_do_what_their_twins_do(rows, at, lag, late):
    compiled = outcome(source(delay(lag), late), rows, at, lanes=2)
    kernels = [
        k
        for m in (match_kernels, open_kernels, run_kernels, row_kernels, hashing)
        for k in vars(m).values()
        if isinstance(k, Kernel)
    ]
    saved = [k._run for k in kernels]
    try:
        for k in kernels:
            k._run = k.twin
        with np.errstate(over="ignore"):
            twins = outcome(source(delay(lag), late), rows, at, lanes=2)
    finally:
        for k, run in zip(kernels, saved, strict=True):
            k._run = run
    assert compiled[:2] == twins[:2]


@given(garbled(), cuts)
@settings(max_examples=examples(20, short=10), deadline=None)
def test_after_the_last_punctuation_no_state_is_left(rows, at):
    *_, ingress = outcome(source(delay(2)), rows, at)
    assert ingress.measure().state_rows == 0
