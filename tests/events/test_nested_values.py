"""Lists, maps and structs of drawn types: identity, order, storage and drawing agree with plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from depth import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.events import History, Page, parse
from caesura.events.columns import ColumnStore
from caesura.events.content import column_key
from caesura.events.identity import LOCAL, identity, plain_zero
from caesura.events.order import ranks
from caesura.events.types import plain_type, supported
from caesura.io.ingress.kept import DOUBLED_KEY, kept
from caesura.testing.oracles.rows import canonical, place

SCALARS: dict[pa.DataType, Any] = {
    pa.int64(): st.sampled_from([0, 1, -3]),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf]),
    pa.string(): st.sampled_from(["", "a", "ab", "x y", 'q"']),
    pa.bool_(): st.booleans(),
}
Drawn = tuple[pa.DataType, Any]
"""A type, and the strategy of its values."""


def _list(inner: Drawn) -> Drawn:
    return pa.list_(inner[0]), st.lists(st.none() | inner[1], max_size=3)


def _struct(parts: list[Drawn]) -> Drawn:
    fields = {f"f{i}": t for i, (t, _) in enumerate(parts)}
    values = st.tuples(*(st.none() | v for _, v in parts)).map(
        lambda some: dict(zip(fields, some, strict=True))
    )
    return pa.struct(list(fields.items())), values


def _map(parts: tuple[Drawn, Drawn]) -> Drawn:
    (key, keys), (item, items) = parts
    pairs = st.lists(
        st.tuples(keys, st.none() | items), max_size=3, unique_by=lambda pair: canonical(pair[0])
    )
    return pa.map_(key, item), pairs


def types() -> st.SearchStrategy[Drawn]:
    """Random nested types, each with its values."""
    scalar = st.sampled_from(list(SCALARS.items()))

    def deeper(inner: st.SearchStrategy[Drawn]) -> st.SearchStrategy[Drawn]:
        structs = st.lists(inner, min_size=1, max_size=2).map(_struct)
        return inner.map(_list) | structs | st.tuples(scalar, inner).map(_map)

    return deeper(st.recursive(scalar, deeper, max_leaves=4))


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, list[Any]]:
    """A column of a random nested type; equal values come often."""
    t, values = draw(types())
    some = draw(st.lists(st.none() | values, min_size=1, max_size=5))
    return t, [*some, *draw(st.lists(st.sampled_from(some), max_size=3))]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@example((pa.map_(pa.string(), pa.int64()), [[], [("a", 1), ("b", 2)], [("a", 1)], [("a", 1)]]))
@given(columns())
def test_identity_and_order_are_those_of_the_values(drawn: tuple[pa.DataType, list[Any]]) -> None:
    t, values = drawn
    column = pa.array([*reversed(values), *values], t).slice(len(values))
    ids, order = identity([column], len(column), LOCAL)[0], ranks(column)
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            assert bool(ids[i] == ids[j]) == (canonical(a) == canonical(b)) == bool(order[i] == order[j])
            assert bool(order[i] < order[j]) == (place(a) < place(b))
    assert identity([plain_zero(column)], len(column), LOCAL)[0].tolist() == ids.tolist()


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(columns(), st.integers(0, 4), st.randoms())
def test_stored_rows_come_back(drawn: tuple[pa.DataType, list[Any]], cut: int, rng: Any) -> None:
    t, values = drawn
    batch = pa.record_batch({"v": pa.array(values, t)})
    store = ColumnStore(batch.schema)
    store.append(batch.slice(0, cut))
    store.append(batch.slice(cut))
    rows = np.array([rng.randrange(len(values)) for _ in range(4)])
    store.take(rows).validate(full=True)
    assert canonical(store.take(rows).column(0).to_pylist()) == canonical([values[i] for i in rows])
    keep = np.array(sorted(set(rows.tolist())))
    store.compact(keep)
    assert canonical(store.all().column(0).to_pylist()) == canonical([values[i] for i in keep])
    whole = pa.chunked_array([batch.column(0)])
    assert column_key(whole) == column_key(pa.chunked_array([batch.column(0)[:cut], batch.column(0)[cut:]]))


@settings(max_examples=examples(40), deadline=None)
@given(columns())
def test_what_is_drawn_is_read_again(drawn: tuple[pa.DataType, list[Any]]) -> None:
    t, values = drawn
    batch = pa.record_batch({"v": pa.array(values, t)})
    history = History(Page.of(batch, le=[0] * len(values), re=[1] * len(values)))
    assert History.of(parse(repr(history), batch.schema), batch.schema) == history


def test_a_stream_keeps_one_layout_of_lists() -> None:
    for given_, kept_ in (
        (pa.large_list(pa.large_string()), pa.list_(pa.string())),
        (pa.list_(pa.int8(), 2), pa.list_(pa.int8())),
        (pa.list_view(pa.int64()), pa.list_(pa.int64())),
        (pa.list_(pa.timestamp("ns")), pa.list_(pa.timestamp("us"))),
        (pa.map_(pa.large_string(), pa.list_(pa.int8(), 1)), pa.map_(pa.string(), pa.list_(pa.int8()))),
    ):
        assert plain_type(given_) == kept_ and supported(kept_)
        value: Any = [("a", [1])] if pa.types.is_map(given_) else ["a", "b"]
        if not pa.types.is_map(given_) and not pa.types.is_large_string(given_.value_type):
            value = [1000, 2000] if pa.types.is_timestamp(given_.value_type) else [1, 2]
        column, flaw = kept(pa.array([value, None], given_), kept_)
        column.validate(full=True)
        assert column.type == kept_ and flaw is None and column[1].as_py() is None


def test_a_map_with_one_key_twice_goes_to_the_late_table() -> None:
    twice = pa.array([[(0.0, 2), (1.0, 3)], [(-0.0, 2), (0.0, 3)]], pa.map_(pa.float64(), pa.int8()))
    inside = pa.array([[], [twice[1].as_py()]], pa.list_(twice.type))
    assert kept(inside, inside.type)[1].tolist() == [0, DOUBLED_KEY]  # type: ignore[union-attr]
    result = cz.from_arrow(pa.table({"ts": [1, 2], "m": twice}), time="ts").run()
    assert len(result.history) == 1
    assert result.late["read"]["reason"].to_pylist() == ["has a map with one key twice"]
