"""Queries that are pushed to obey the laws of every source."""

from __future__ import annotations

import pyarrow as pa
import pytest

import caesura as cz
from caesura.events import History, draw, parse

IDS = pa.schema([("id", pa.int64())])


def pushed(drawn, stream=None):
    query = (stream or cz.input_stream("a", IDS)).query(output="final")
    for item in parse(drawn, IDS):
        query.feed("a", item)
    query.run()
    late = query.late().get("a")
    return draw(query.take("out")).splitlines()[1:], [] if late is None else late.column("reason").to_pylist()


def test_an_event_behind_a_cti_makes_no_second_final_row_of_a_closed_window():
    counts = cz.input_stream("a", IDS).tumbling(10).agg(n=cz.count())
    items, late = pushed(" LE RE | id |\n 3 4 | 7 | +\n-- 20 --\n 5 6 | 8 | +\n-- 30 --", counts)
    assert [line.split() for line in items if "+" in line] == [["0", "10", "|", "1", "|", "+"]]
    assert late == ["came after definite: time < 20"]


def test_an_event_behind_punctuation_on_a_column_is_late():
    items, late = pushed(" LE RE | id |\n-- definite: id = 7 --\n 3 4 | 7 | +\n 3 4 | 8 | +\n-- 9 --")
    assert [line for line in items if "+" in line] == ["  3  4  | 8  | +"]
    assert late == ["came after definite: id = 7"]


def test_a_retract_waits_for_its_event_and_is_late_without_one():
    items, late = pushed(" LE RE | id |\n 3 9->5 | 7 | -\n 3 9 | 7 | +\n 3 9->5 | 8 | -\n-- 9 --")
    assert [line for line in items if "+" in line] == ["  3  5  | 7  | +"]
    assert late == ["retract matches no event"]


@pytest.mark.parametrize(
    ("known", "drawn", "reason"),
    [
        ({"insert_only": True}, " 3 9->5 | 7 | -", "a retract, but the stream is declared to have inserts"),
        ({"points": True}, " 3 9 | 7 | +", "lives longer than a tick, but"),
        ({"aligned": True}, " 3 9->5 | 7 | -", "a retract that changes an end, but"),
        ({"max_duration": 5}, " 3 9 | 7 | +", "lives longer than the stream is declared to"),
        ({}, " 3 3 | 7 | +", "ends at or before its start"),
    ],
)
def test_an_event_that_is_not_as_declared_is_refused(known, drawn, reason):
    items, [late] = pushed(f" LE RE | id |\n{drawn}\n-- 20 --", cz.input_stream("a", IDS, **known))
    assert late.startswith(reason) and not any("+" in line for line in items)


def test_what_a_pushed_query_holds_and_refused_survives_a_restart():
    some = parse(" LE RE | id |\n 3 9->5 | 7 | -\n-- 2 --\n 1 2 | 8 | +", IDS)
    first, second = (cz.input_stream("a", IDS).query() for _ in range(2))
    for item in some:
        first.feed("a", item)
    first.run()
    second.restore({k: v for k, v in first.snapshot().items() if v is not None})
    second.feed("a", parse(" LE RE | id |\n 3 9 | 7 | +", IDS)[0])
    second.run()
    assert dict(History.of(second.take("out"), IDS).bag) == {(3, 5, (7,)): 1}
    assert second.late()["a"].column("id").to_pylist() == [8]


def test_a_trusted_input_keeps_no_events_and_refuses_what_is_late():
    drawn = " LE RE | id |\n 3 9 | 7 | +\n 3 9->5 | 7 | -\n-- 9 --"
    trusted = cz.input_stream("a", IDS, trusted=True)
    assert pushed(drawn, trusted) == pushed(drawn)
    query = trusted.query()
    for item in parse(" LE RE | id |\n 3 9 | 7 | +", IDS):
        query.feed("a", item)
    query.run()
    assert query.state_rows == 0
    assert trusted.node.fingerprint != cz.input_stream("a", IDS).node.fingerprint
    with pytest.raises(cz.CaesuraError, match="came after definite: time < 9"):
        pushed(" LE RE | id |\n-- 9 --\n 3 4 | 7 | +", cz.input_stream("a", IDS, trusted=True))
