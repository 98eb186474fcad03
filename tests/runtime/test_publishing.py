"""A running query can be published, and read by a later one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col
from caesura.errors import StreamError
from caesura.events import History, draw, parse, violations
from caesura.plan import Node
from caesura.runtime import Publication, Query
from caesura.testing import assert_history
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

READINGS = pa.schema([("id", pa.int64()), ("v", pa.float64())])
SPEC = InputSpec({"id": "key", "v": "float"}, key="id")


def feed(query: Query, text: str) -> None:
    for item in parse(text, READINGS):
        query.feed("readings", item)
    query.run()


def windows() -> tuple[Query, Publication]:
    """Counts per id and ten ticks, published."""
    counted = cz.input_stream("readings", READINGS).group_by("id").tumbling(10).agg(n=cz.count())
    query = counted.query()
    return query, query.publish("out")


def test_a_later_query_gets_what_is_not_final_and_then_every_correction() -> None:
    first, published = windows()
    feed(first, " LE RE | id v |\n 1 2 | 1 0.5 | +\n 11 12 | 1 0.5 | +\n 12 13 | 2 0.5 | +\n-- 10 --")
    later = cz.subscribe(published).where(col("n") > 0).query()
    later.run()
    assert draw(later.take("out")) == draw(
        parse(" LE RE | id n |\n 10 20 | 1 1 | +\n 10 20 | 2 1 | +\n-- 10 --", published.node.schema)
    )
    feed(first, " LE RE | id v |\n 15 16 | 1 0.5 | +\n 12 13 | 2 0.5 | -\n-- 20 --")
    later.run()
    corrections = later.take("out")
    wanted = " LE RE | id n |\n 10 20 | 1 1 | +\n 10 20 | 2 1 | +\n"
    both = [*parse(wanted, published.node.schema), *corrections]
    assert_history(both, " LE RE | id n |\n 10 20 | 1 2 | +")
    assert str(corrections[-1]) == "definite: time < 20"


def test_what_is_final_is_not_kept_for_those_who_come_later() -> None:
    first, published = windows()
    feed(first, " LE RE | id v |\n 1 2 | 1 0.5 | +\n 11 12 | 1 0.5 | +")
    assert published.rows == 2
    feed(first, " LE RE | id v |\n-- 10 --")
    assert published.rows == 1
    feed(first, " LE RE | id v |\n-- definite: * --")
    assert published.rows == 0


def test_running_the_later_query_lets_the_first_one_read() -> None:
    rows = [{"ts": t, "id": t % 2, "v": 1.0} for t in range(20)]
    counted = cz.from_rows(rows, time="ts").group_by("id").tumbling(10).agg(n=cz.count())
    published = counted.query().publish("out")
    total = cz.subscribe(published).tumbling(20).agg(n=cz.sum("n"))
    again = cz.subscribe(published).where(col("id") == 1)
    assert_history(total.run().history, " LE RE | n |\n 0 20 | 20 | +")
    assert len(again.run().history) == 0  # by now all of it is history


def test_two_subscribers_read_the_same() -> None:
    first, published = windows()
    one, two = (cz.subscribe(published).query() for _ in range(2))
    feed(first, " LE RE | id v |\n 1 2 | 1 0.5 | +\n-- 10 --")
    for query in (one, two):
        query.run()
    assert draw(one.take("out")) == draw(two.take("out")) == draw(first.take("out"))


def test_an_output_that_rows_have_left_cannot_be_published_any_more() -> None:
    query = Query({"out": cz.input_stream("readings", READINGS).node})
    feed(query, " LE RE | id v |\n 1 2 | 1 0.5 | +")
    with pytest.raises(StreamError, match="Publish the output before the query runs"):
        query.publish("out")


def test_a_publication_is_saved_with_its_query() -> None:
    first, published = windows()
    feed(first, " LE RE | id v |\n 1 2 | 1 0.5 | +\n 11 12 | 1 0.5 | +\n-- 10 --")
    saved = {name: data for name, data in first.snapshot().items() if data is not None}
    again, fresh = windows()
    again.restore(saved)
    assert draw(list(fresh.so_far())) == draw(list(published.so_far()))


def split(node: Node, items: list, at: int) -> tuple[Query, Query]:
    """A query, and one that subscribes to it after some items."""
    first = Query({"out": node})
    published = first.publish("out")
    for item in items[:at]:
        first.feed("a", item)
        first.run()
    later = cz.subscribe(published).query()
    for item in items[at:]:
        first.feed("a", item)
        first.run()
    later.run()
    return first, later


@settings(max_examples=60, deadline=None)
@given(streams(SPEC), st.integers(0, 12))
def test_whenever_one_subscribes_the_stream_is_legal_and_only_final_rows_are_missing(
    stream: tuple, at: int
) -> None:
    _, items = stream
    node = Stream(cz.input_stream("a", SPEC.schema).node).node
    first, later = split(node, items, at)
    got = later.take("out")
    assert violations(got) == []
    all_of_it = History.of(first.take("out"), SPEC.schema)
    missing, extra = all_of_it.difference(History.of(got, SPEC.schema))
    assert extra == []
    before, _ = all_of_it.difference(History.of(items[:at], SPEC.schema))
    assert not [row for row in missing if row in before]
