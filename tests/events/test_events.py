"""Pages, histories and drawings: what a physical stream says, whatever way it says it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caesura.errors import PlanError, StreamError
from caesura.events import History, Page, concat, draw, empty_page, parse, violations
from caesura.events.rows import RowState
from caesura.events.types import check_schema, plain_schema
from caesura.punctuation import INFINITY, cti
from caesura.punctuation.parsing import parse_punctuation
from caesura.testing.spec import InputSpec, plain_rows
from caesura.testing.strategies import streams

SPEC = InputSpec({"id": "key", "v": "float", "s": "str"}, key="id")
IDS = pa.schema([("id", pa.int64())])


@settings(max_examples=60, deadline=None)
@given(streams(SPEC))
def test_a_history_is_the_fold_of_its_stream(stream: tuple) -> None:
    rows, items = stream
    history = History.of(items, SPEC.schema)
    assert (
        history.bag
        == History.from_rows(
            [(le, re, tuple(p[n] for n in SPEC.schema.names)) for le, re, p in rows], SPEC.schema
        ).bag
    )
    assert len(plain_rows(items, SPEC.schema.names)) == len(history)
    assert violations(items) == []


@settings(max_examples=60, deadline=None)
@given(streams(InputSpec({"id": "key", "s": "name"}, key="id")))
def test_what_is_drawn_reads_back_as_the_same_stream(stream: tuple) -> None:
    _, items = stream
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    again = parse(draw(items, schema=schema), schema)
    assert draw(again, schema=schema) == draw(items, schema=schema)
    assert History.of(again, schema) == History.of(items, schema)


def test_sync_time_is_the_start_of_an_insert_and_the_earlier_end_of_a_retract() -> None:
    [page] = parse(" LE RE | id |\n 3 9 | 1 | +\n 3 9->5 | 1 | -\n 3 5->inf | 1 | -\n 3 inf | 1 | -", IDS)
    assert page.sync.tolist() == [3, 5, 5, 3]


def test_a_retract_that_matches_nothing_cannot_be_folded() -> None:
    with pytest.raises(StreamError, match="matches no event"):
        History.of(parse(" LE RE | id |\n 3 9->5 | 1 | -", IDS), IDS)


def test_an_illegal_stream_is_told_row_by_row() -> None:
    items = parse(" LE RE | id |\n-- 10 --\n 3 9 | 1 | +\n 12 20->15 | 2 | -\n-- definite: id = 4 --", IDS)
    more = parse(" LE RE | id |\n 30 31 | 4 | +\n 30 30 | 5 | +", IDS)
    assert [str(v) for v in violations([*items, *more])] == [
        "+ [3, 9) (1,) came after definite: time < 10",
        "- [12, 20 -> 15) (2,) retracts an event that is not there",
        "+ [30, 31) (4,) came after definite: id = 4",
        "+ [30, 30) (5,) ends before it starts",
    ]


def test_a_cti_allows_changes_of_ends_at_or_after_it() -> None:
    items = parse(" LE RE | id |\n 3 20 | 1 | +\n-- 10 --\n 3 20->10 | 1 | -\n 3 10->12 | 1 | -", IDS)
    assert violations(items) == []


def test_a_snapshot_and_a_prefix_of_a_history() -> None:
    history = History.of(parse(" LE RE | id |\n 1 5 | 7 | +\n 3 inf | 8 | +\n 3 inf | 8 | +", IDS), IDS)
    assert history.at(4) == Counter({(8,): 2, (7,): 1})
    assert history.at(5) == Counter({(8,): 2})
    assert history.before(4) == Counter({(3, 4, (8,)): 2, (1, 4, (7,)): 1})


def test_pages_are_cut_and_joined_without_losing_anything() -> None:
    [page] = parse(" LE RE | id |\n 1 5 | 7 | +\n 1 5->3 | 7 | -\n 2 inf | 8 | +", IDS)
    parts = [page.slice(i, 1) for i in range(3)]
    assert concat(parts, IDS).rows() == page.rows()
    assert len(concat([], IDS)) == len(empty_page(IDS)) == 0
    bare = Page.of(pa.record_batch({"id": [1, 2]}), le=[1, 2], re=[3, INFINITY])
    assert bare.re_new is None
    assert bare.retracts is None


@pytest.mark.parametrize("kind", ["settled", "partial"])
def test_parts_of_a_page_are_of_its_kind(kind: str) -> None:
    (page,) = parse(" LE RE | id |\n 1 9 | 7 | +\n 2 9 | 8 | +")
    whole = replace(page, **{kind: True})
    parts = [whole.slice(1, 1), whole.take(np.array([1])), whole.filter(np.array([False, True]))]
    parts += [whole.with_payload(whole.payload), concat([whole.slice(0, 1), whole.slice(1, 1)], IDS)]
    assert all(getattr(part, kind) for part in parts)


@pytest.mark.parametrize("name", ["time", "LE", "RE", "RE_new"])
def test_the_names_of_the_engine_are_refused(name: str) -> None:
    with pytest.raises(PlanError, match="rename="):
        check_schema(pa.schema([(name, pa.int64())]))


def test_types_are_kept_plain() -> None:
    found = pa.schema([("a", pa.dictionary(pa.int8(), pa.large_string())), ("b", pa.timestamp("ns", "UTC"))])
    assert plain_schema(found) == pa.schema([("a", pa.string()), ("b", pa.timestamp("us", "UTC"))])


ops = st.lists(
    st.tuples(st.sampled_from(["add", "add", "kill", "save", "touch", "compact"]), st.integers(0, 99))
)


@settings(max_examples=80, deadline=None)
@given(ops)
def test_rows_restored_from_the_chunks_of_all_snapshots_are_the_rows(script: list[tuple[str, int]]) -> None:
    import numpy as np

    def fresh() -> RowState:
        return RowState({"n": np.int64}, pa.schema([("s", pa.string())]))

    rows, kept = fresh(), dict[str, bytes]()
    for verb, number in [*script, ("save", 0)]:
        live = np.flatnonzero(rows.alive)
        if verb == "add":
            rows.append({"n": np.array([number, -number])}, pa.record_batch({"s": [str(number), None]}))
        elif verb == "kill" and len(live):
            rows.kill(live[[number % len(live)]])
        elif verb == "touch" and len(live):
            rows.get("n")[live[[0]]] += 1000
            rows.touch(live[[0]])
        elif verb == "compact":
            rows.compact()
        elif verb == "save":
            for name, data in rows.snapshot().items():
                if data is None:
                    del kept[name]
                else:
                    kept[name] = data
    again = fresh()
    again.restore(kept)
    assert again.live == rows.live
    for field in ("n",):
        assert again.get(field)[again.alive].tolist() == rows.get(field)[rows.alive].tolist()
    texts = [state.payload.take(np.flatnonzero(state.alive)).column(0).to_pylist() for state in (again, rows)]
    assert texts[0] == texts[1]


def test_punctuation_is_drawn_and_read() -> None:
    assert draw([cti(20)], schema=IDS) == " LE  RE | id |\n-- definite: time < 20 --"
    for text in (
        "definite: time < 20, id = 4",
        "assumed: id in {1, 3} or null, speed >= 50.0",
        "definite: id in [1..5] or 9 or null",
        "definite: id < 3 or >= 7",
        "definite: id != 4",
        "definite: id is not null",
        "definite: *",
    ):
        assert str(parse_punctuation(text)) == text
