"""A stream of given items says what they say, in one process and in buckets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.events import History, Item, violations
from caesura.runtime.cluster import Cluster
from caesura.testing.oracles.rows import Rows
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

SPEC = InputSpec({"id": "key", "v": "float"}, key="id", max_rows=6)


def refused(tables: Iterable[Any]) -> list[dict[str, Any]]:
    """The events that were refused; a punctuation that says less than one before it is told there too."""
    rows = [row for table in tables for row in table.to_pylist()]
    return [row for row in rows if row["kind"] != "punctuation"]


@settings(max_examples=30)
@given(streams(SPEC), st.integers(1, 3))
def test_any_legal_stream_is_said_again_on_every_host(drawn: tuple[Rows, list[Item]], buckets: int) -> None:
    _, items = drawn
    wanted = History.of(items, SPEC.schema)
    stream = cz.from_items(items, SPEC.schema)
    result = stream.run()
    assert result.history == wanted
    assert refused(result.late.values()) == []
    counted = stream.group_by("id").tumbling(5).agg(n=cz.count())
    cluster = Cluster({"out": counted.node}, buckets)
    cluster.run(every=2)
    assert violations(cluster.items["out"]) == []
    assert History.of(cluster.items["out"], counted.schema) == counted.run().history
    assert refused(b for batches in cluster.late.values() for b in batches) == []


def test_times_may_be_timestamps() -> None:
    stream = cz.from_items(" LE RE | id |\n 0 60000000 | 7 | +", time=pa.timestamp("us"))
    assert (
        str(stream.tumbling("1m").agg(n=cz.count()).run()).splitlines()[1].startswith(" 1970-01-01 00:00:00")
    )


def test_a_payload_column_may_be_called_kind() -> None:
    assert cz.from_items(" LE RE | kind |\n 1 2 | 7 | +").columns == ["kind"]


def test_no_items_need_a_schema() -> None:
    with pytest.raises(cz.DataError, match="Give schema="):
        cz.from_items([])
    assert len(cz.from_items([], pa.schema([("id", pa.int64())])).run().history) == 0
