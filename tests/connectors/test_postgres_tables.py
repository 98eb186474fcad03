"""Tables of a real Postgres: what epochs put and delete, types, faults, and two starts of one query."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import caesura as cz
from caesura import StreamError
from caesura.events import parse
from caesura.events.page import Page
from caesura.io.sinks.current import layout_of
from caesura.ops.input import Input
from caesura.ops.upserts import Upserts
from caesura.punctuation import INFINITY
from caesura.runtime.buckets.aligner import Epoch

NAMES = (f'now "{n}"' for n in count())
ROWS = parse("""
 LE  RE  | id v |
 1   inf | 7  5 | +
""")


def keyed(schema: pa.Schema, key: tuple[str, ...] = ("id",)) -> Upserts:
    return Upserts(inputs=(Input(label="a", payload=schema),), key=key)


def opened(postgres: Any, table: str, node: Upserts, query: str = "q") -> Any:
    sink = cz.postgres(postgres.dsn, table)
    sink.open({"out": node})
    sink.attach(query)
    return sink


def epoch(number: int, node: Upserts, *items: Any) -> Epoch:
    return Epoch(number, {"out": list(items)}, {}, outputs={"out": node})


def page(schema: pa.Schema, rows: list[dict[str, Any]], *, le: int, gone: bool = False) -> Page:
    batch = pa.RecordBatch.from_pylist(rows, schema)
    ends = [INFINITY] * len(rows)
    return Page.of(batch, le=[le] * len(rows), re=ends, re_new=[le] * len(rows) if gone else None)


@pytest.mark.parametrize("key", [("id",), ("id", "LE")], ids=["now", "history"])
def test_a_table_follows_random_changes_of_keys(postgres, key):
    random, schema = Random(5), pa.schema([("id", pa.int64()), ("s", pa.string())])
    node, table = keyed(schema, key), next(NAMES)
    held: dict[Any, dict[str, Any]] = {}
    for number in range(12):
        sink = opened(postgres, table, node)  # every epoch by a start of its own
        items = []
        for _ in range(random.randrange(6)):
            one = random.choice((0, 1, 2, None))
            if one in held:
                items.append(page(schema, [held.pop(one)], le=1, gone=True))
            if random.random() < 0.7:
                held[one] = {"id": one, "s": random.choice(("", "a\n\\", 'b"', None))}
                items.append(page(schema, [held[one]], le=1))
        sink.take(epoch(number, node, *items))
        assert not opened(postgres, table, node).pending(number, ["out"])
    found = sorted(map(str, (row[-2:] for row in sink.read_back())))
    assert found == sorted(str(tuple(row.values())) for row in held.values())


SCHEMA = pa.schema(
    [
        ("id", pa.uint64()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.decimal128(20, 4)),
        ("x", pa.binary()),
        ("l", pa.list_(pa.int64())),
        ("p", pa.duration("us")),
    ]
)
VALUES = {
    "id": 2**64 - 1,
    "f": float("-inf"),
    "b": True,
    "d": date(2024, 2, 29),
    "t": datetime(2024, 2, 29, 1, 2, 3, 4, UTC),
    "n": Decimal("-1.5000"),
    "x": b"\0\xff",
    "l": [1, None],
    "p": timedelta(days=1, microseconds=1),
}


def test_values_of_all_types_come_back(postgres):
    node, table = keyed(SCHEMA), next(NAMES)
    sink = opened(postgres, table, node)
    nothing = dict.fromkeys(VALUES) | {"id": 1}
    sink.take(epoch(0, node, page(SCHEMA, [VALUES, nothing], le=1)))
    rows = sorted(sink.read_back(), key=lambda row: row[0])
    assert rows[1] == tuple(VALUES.values()) and set(rows[0][1:]) == {None}


def test_a_second_row_of_a_key_stops_before_the_commit(postgres):
    node, table = keyed(ROWS[0].schema), next(NAMES)
    sink = opened(postgres, table, node)
    sink.take(epoch(0, node, *ROWS))
    with pytest.raises(StreamError, match=r"two rows have one key \(id\).*v 5"):
        sink.take(epoch(1, node, page(ROWS[0].schema, [{"id": 7, "v": 6}], le=2)))
    assert sink.last_epoch() == 0 and list(sink.read_back()) == [(7, 5)]
    assert sink.held().to_pylist() == [{"id": 7, "v": 5}]


def test_an_epoch_that_fails_half_way_leaves_nothing(postgres):
    node, table = keyed(ROWS[0].schema), next(NAMES)
    sink = opened(postgres, table, node)
    with psycopg.connect(postgres.dsn) as other:
        other.execute(f"ALTER TABLE {_quoted(table)} ADD CHECK (v < 6)")
    with pytest.raises(StreamError, match="could not be written"):
        sink.take(epoch(0, node, *ROWS, page(ROWS[0].schema, [{"id": 8, "v": 6}], le=2)))
    assert sink.last_epoch() is None and list(sink.read_back()) == []


def test_a_server_that_is_down_is_named_without_its_secret_and_the_epoch_goes_in_later(postgres):
    node, table = keyed(ROWS[0].schema), next(NAMES)
    sink = opened(postgres, table, node)
    sink.dsn += " password=hidden"
    postgres.stop()
    try:
        with pytest.raises(StreamError, match=r"'postgres' at 127\.0\.0\.1 could not be written") as raised:
            sink.take(epoch(0, node, *ROWS))
    finally:
        postgres.start()
    assert "hidden" not in str(raised.value)
    sink.take(epoch(0, node, *ROWS))
    assert list(sink.read_back()) == [(7, 5)]


def test_a_start_that_was_taken_over_from_and_another_query_are_refused(postgres):
    node, table = keyed(ROWS[0].schema), next(NAMES)
    first = opened(postgres, table, node)
    opened(postgres, table, node)
    with pytest.raises(StreamError, match="another start of this query"):
        first.take(epoch(0, node, *ROWS))
    with pytest.raises(StreamError, match="another checkpoint"):
        opened(postgres, table, node, query="other")
    assert layout_of(node).key == ("id",) and list(first.read_back()) == []


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
