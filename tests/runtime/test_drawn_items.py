"""A stream of given items says what they say, in one process and in buckets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.events import History, Item, violations
from caesura.testing import oracles
from caesura.testing.laws import as_history
from caesura.testing.oracles.rows import Rows
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

SPEC = InputSpec({"id": "key", "v": "float"}, key="id", max_rows=6)


def refused(tables: Iterable[Any]) -> list[dict[str, Any]]:
    """The events that were refused; a punctuation that says less than one before it is told there too."""
    rows = [row for table in tables for row in table.to_pylist()]
    return [row for row in rows if row["kind"] != "punctuation"]


@pytest.mark.slow
@settings(max_examples=examples(30, short=12))
@given(streams(SPEC), st.integers(1, 3), st.integers(1, 4))
def test_any_legal_stream_is_said_again_on_every_host(
    drawn: tuple[Rows, list[Item]], buckets: int, size: int
) -> None:
    _, items = drawn
    wanted = History.of(items, SPEC.schema)
    stream = cz.from_items(items, SPEC.schema, batch_size=size)
    result = stream.run()
    assert result.history == wanted
    assert refused(result.late.values()) == []
    counted = stream.group_by("id").tumbling(5).agg(n=cz.count())
    cluster = Cluster({"out": counted.node}, buckets)
    cluster.run(every=2)
    assert violations(cluster.items["out"]) == []
    assert History.of(cluster.items["out"], counted.schema) == counted.run().history
    assert refused(b for batches in cluster.late.values() for b in batches) == []


@settings(max_examples=examples(6), deadline=None)
@given(
    streams(SPEC),
    streams(SPEC),
    st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3)),
    st.sampled_from(("inner", "left", "full", "anti")),
)
def test_the_pages_of_given_items_do_not_show_in_a_join(
    left: tuple[Rows, list[Item]],
    right: tuple[Rows, list[Item]],
    sizes: tuple[int, int, int, int],
    how: Any,
) -> None:
    buckets, first, second, every = sizes
    a = cz.from_items(left[1], SPEC.schema, name="a", batch_size=first)
    b = cz.from_items(right[1], SPEC.schema, name="b", batch_size=second).rename(w="v")
    met = a.join(b, on="id", how=how)
    named = [(le, re, {"id": p["id"], "w": p["v"]}) for le, re, p in right[0]]
    wanted = as_history(oracles.join(left[0], named, on=[("id", "id")], how=how), met.node)
    cluster = Cluster({"out": met.node}, buckets)
    cluster.run(every=every)
    assert violations(cluster.items["out"]) == []
    assert History.of(cluster.items["out"], met.schema) == wanted == met.run().history


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
