"""Retracts past the ingress always follow their insert; what never matches goes to the late table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from io_streams import Change, batch, source

from caesura.events import Page, draw
from caesura.io import at_end, delay, from_rows
from caesura.io.ingress.open_kernels import read_changes
from caesura.io.ingress.row_kernels import I8
from caesura.io.ingress.runs import OpenedRows
from caesura.kernels.hashing import I64
from caesura.plan import Raw
from caesura.punctuation import INFINITY, MIN_TIME, Pattern


def through(*rows, policy=None, late="reject", marks=()):
    ingress = source(policy or at_end(), late).operator()
    items = list(ingress.raw(Raw(0, 0, batch([Change(*row) for row in rows]), tuple(marks))))
    return ingress, items


def drawn(items):
    return [" ".join(line.split()) for line in draw(items).splitlines()[1:]]


def test_chained_retracts_match_the_current_version():
    _, items = through(("+", 1, None, None, 7), ("-", 1, None, 10, 7), ("-", 1, 10, 5, 7))
    assert drawn(items) == ["1 inf | 7 | +", "1 inf->10 | 7 | -", "1 10->5 | 7 | -"]


def test_a_retract_before_its_insert_is_released_right_behind_it():
    _, items = through(("-", 1, 9, 5, 7), ("+", 2, 9, None, 8), ("+", 1, 9, None, 7), ("+", 3, 9, None, 9))
    assert drawn(items) == ["2 9 | 8 | +", "1 9 | 7 | +", "1 9->5 | 7 | -", "3 9 | 9 | +"]


def test_a_chain_that_came_backwards_is_released_in_order():
    _, items = through(("-", 1, 10, 5, 7), ("-", 1, None, 10, 7), ("+", 1, None, None, 7))
    assert drawn(items) == ["1 inf | 7 | +", "1 inf->10 | 7 | -", "1 10->5 | 7 | -"]


def test_equal_events_are_retracted_one_by_one():
    ingress, items = through(*[("+", 1, 9, None, 7)] * 2, *[("-", 1, 9, 1, 7)] * 3)
    assert drawn(items) == ["1 9 | 7 | +"] * 2 + ["1 9 | 7 | -"] * 2
    ingress.close()
    assert ingress.drain_late().column("reason").to_pylist() == ["retract matches no event"]


def test_a_retract_that_waits_too_long_is_late():
    ingress, _ = through(("-", 1, 9, 5, 7), ("+", 6, 9, None, 8), policy=delay(0))
    [row] = ingress.drain_late().to_pylist()
    assert (row["reason"], row["offset"], row["kind"], row["LE"], row["RE"], row["RE_new"], row["id"]) == (
        "retract matches no event", 0, "-", 1, 9, 5, 7)  # fmt: skip


def test_a_promise_on_a_column_ends_the_wait_and_frees_the_state():
    ingress, _ = through(("+", 1, 9, None, 8), ("-", 1, 9, 5, 7), marks=[(2, Pattern(id=[7, 8]))])
    assert ingress.drain_late().column("reason").to_pylist() == ["retract matches no event"]
    # the source in memory says that it has no punctuation, so only time frees versions
    assert ingress.measure().state_rows == 1
    rows = [{"t": 1, "e": 9, "k": "+", "n": None, "id": 8}, Pattern(id=8)]
    node = from_rows(rows, time="t", end="e", kind="k", new_end="n")
    ingress = node.operator()
    for raw in node.read({}):
        ingress.raw(raw)
    assert ingress.measure().state_rows == 0


def test_versions_are_forgotten_once_the_cti_is_past_their_end():
    ingress, _ = through(("+", 1, 9, None, 7), ("+", 1, 30, None, 8), ("+", 20, 25, None, 9), policy=delay(5))
    assert ingress.measure().state_rows == 2


def test_a_retract_of_an_adjusted_event_finds_it():
    _, items = through(
        ("+", 20, 50, None, 1), ("+", 2, 40, None, 7), ("-", 2, 40, 30, 7), policy=delay(5), late="adjust"
    )
    assert drawn(items) == [
        "20 50 | 1 | +",
        "15 40 | 7 | +",
        "15 40->30 | 7 | -",
        "-- definite: time < 15 --",
    ]


def test_an_end_edge_ends_the_event_that_its_start_began():
    rows = [{"t": 1, "end": None, "edge": "start", "id": 7}, {"t": 1, "end": 5, "edge": "end", "id": 7}]
    node = from_rows(rows, time="t", end="end", kind="edge", punctuate=delay(2))
    ingress = node.operator()
    items = [item for raw in node.read({}) for item in ingress.raw(raw)]
    assert drawn(items) == ["1 inf | 7 | +", "1 inf->5 | 7 | -", "-- definite: time < 3 --"]


def test_rows_without_payload_columns_match_too():
    schema = pa.schema([("t", pa.int64()), ("end", pa.int64()), ("edge", pa.string())])
    rows = [(1, 5, "end"), (1, None, "start"), (2, 6, "end")]
    node = from_rows(rows, schema, time="t", end="end", kind="edge")
    ingress = node.operator()
    [page] = [i for raw in node.read({}) for i in ingress.raw(raw) if isinstance(i, Page)]
    assert len(page) == 2 and page.retracts.tolist() == [False, True]
    ingress.close()
    assert ingress.drain_late().num_rows == 1


def opened_rows(le: I64, re: I64, new: I64, kinds: I8, *, compiled: bool = True) -> tuple[bool, OpenedRows]:
    """Whether rows are sound, and what was found of them."""
    opened = OpenedRows.room(kinds)
    read = read_changes.compiled() if compiled else read_changes.twin
    sound = bool(read(le, re, new, le, *opened))
    if sound:
        opened.find(le, re)
    return sound, opened


@pytest.mark.thin(2)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rows", [3000, 31, 1])
def test_the_event_that_a_retract_names_is_found_across_blocks_of_a_page(rows: int, seed: int) -> None:
    random = np.random.default_rng(seed)  # blocks have 256 rows, and groups 32
    le = np.sort(random.integers(0, 900, rows)) - np.where(random.random(rows) < 0.1, 40, 0)
    re, gone = le + random.integers(1, 3, rows), random.random(rows) < 0.2
    back = np.maximum(np.arange(rows) - random.integers(1, 1500, rows), 0)
    le, re = np.where(gone, le[back], le), np.where(gone, re[back], re)
    sound, opened = opened_rows(le, re, le, gone.astype(np.int8))
    count, astray = opened.told[:2].tolist()
    assert sound and opened.named[0].tolist() == np.flatnonzero(gone).tolist() and count == gone.sum()
    assert opened.counts.tolist() == (~gone).astype(int).tolist()
    strays = opened.strays[0, :astray]
    for row, start, end, _, first in opened.named.T.tolist():
        same = np.flatnonzero((le == start) & (re == end) & ~gone & (np.arange(rows) < row))
        assert first in same if first >= 0 else set(same) <= set(strays.tolist())
    _, twin = opened_rows(le, re, le, gone.astype(np.int8), compiled=False)
    assert [part.tolist() for part in twin[1:2] + twin[3:]] == [
        part.tolist() for part in opened[1:2] + opened[3:]
    ]


@pytest.mark.parametrize(
    ("start", "end", "new", "kind"),
    [
        (MIN_TIME, 5, 5, 0),
        (INFINITY, INFINITY, 5, 0),
        (5, 5, 5, 0),
        (7, 5, 5, 0),
        (5, 6, 6, 1),
        (5, 6, 4, 1),
        (5, 6, 5, 2),
    ],
)
def test_one_flaw_among_many_rows_is_seen(start: int, end: int, new: int, kind: int) -> None:
    le, kinds = np.arange(1000), np.zeros(1000, np.int8)
    re, news = le + 1, le.copy()
    assert opened_rows(le, re, news, kinds)[0]
    le[700], re[700], news[700], kinds[700] = start, end, new, kind
    assert not opened_rows(le, re, news, kinds)[0]


def test_more_rows_out_of_order_than_there_is_room_for_are_counted() -> None:
    le = np.arange(1000)[::-1].copy()
    sound, opened = opened_rows(le, le + 1, le, np.zeros(1000, np.int8))
    assert sound and opened.told[1] == 1000 - 32 and opened.strays.shape == (3, 250)


def test_new_ends_of_a_page_are_made_when_they_are_asked_for() -> None:
    le, kinds = np.array([1, 3, 3, 1]), np.array([0, 0, 1, 1], np.int8)
    payload = pa.record_batch({"n": [1, 2, 2, 1]})
    _, opened = opened_rows(le, le + 1, le, kinds)
    page = opened.page(le, le + 1, payload)
    assert page.has_retracts and page.all_points and "re_new" not in page.__dict__
    assert page.nbytes == Page.of(payload, le=le, re=le + 1, re_new=page.re_new).nbytes
    assert page.rows()[1:] == [(3, 4, None, (2,)), (3, 4, 3, (2,)), (1, 2, 1, (1,))]
    assert replace(page, partial=True).rows() == page.rows()
    assert not opened_rows(le, le + 2, le, kinds)[1].page(le, le + 2, payload).all_points
