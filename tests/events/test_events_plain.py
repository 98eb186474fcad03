"""Python values come back from JSON as they were, and what cannot is refused by name."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caesura.errors import StreamError
from caesura.events.plain import PLAIN, Codec, classes_of, weight

Pair = namedtuple("Pair", ["a", "b"])


@dataclass(frozen=True)
class Point:
    x: float
    seen: tuple[int, ...] = ()


@dataclass
class Track:
    points: list[Point] = field(default_factory=list)
    pair: Pair | None = None


def back(value: Any, codec: Codec = PLAIN) -> Any:
    return codec.from_json(json.loads(json.dumps(codec.to_json(value))))


numbers = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.decimals(allow_nan=False)
times = st.dates() | st.datetimes() | st.timedeltas() | st.times()
leaves = st.none() | numbers | times | st.text() | st.binary() | st.uuids()
keys = st.recursive(leaves, lambda inner: st.tuples(inner, inner) | st.frozensets(inner), max_leaves=4)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner) | st.sets(keys),
    max_leaves=12,
)


def types(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: types(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [types(v) for v in value]
    return type(value)


@pytest.mark.slow
@given(values)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    got = back(value)
    assert got == value and types(got) == types(value)


@pytest.mark.parametrize(
    "value",
    [
        Counter("abca"),
        deque([1, 2, 3], 3),
        defaultdict(list, {"a": [1]}),
        OrderedDict([("b", 1), ("a", 2)]),
        np.float64(0.1),
        np.int8(-3),
        np.bool_(True),
        np.datetime64("2024-02-29"),
        dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
        dt.datetime(2024, 2, 29, 12, tzinfo=ZoneInfo("Europe/Berlin")),
        float("inf"),
        -0.0,
        2**300,
        Decimal("1E+30"),
        UUID(int=7),
    ],
    ids=repr,
)
def test_so_do_the_standard_librarys_and_numpys(value: Any) -> None:
    got = back(value)
    assert got == value and type(got) is type(value) and repr(got) == repr(value)


@pytest.mark.parametrize("dtype", ["f8", "u1", "?", "U3", "M8[ns]", "c16"])
def test_arrays_come_back_writable(dtype: str) -> None:
    array = np.zeros((2, 3), dtype)
    got = back([array, np.zeros((0, 4), dtype)])
    assert got[0].dtype == array.dtype and got[0].shape == (2, 3) and got[1].shape == (0, 4)
    got[0][0, 0] = 1
    np.testing.assert_array_equal(got[0][1], array[1])


def test_classes_that_the_reader_knows_come_back_and_others_are_refused() -> None:
    track = Track([Point(0.5, (1, 2)), Point(1.5)], Pair(1, "b"))
    assert classes_of(Track()) == {Track, Point, Pair}
    assert back(track, Codec(classes_of(Track()))) == track
    with pytest.raises(StreamError, match=r"Track cannot be saved"):
        PLAIN.to_json(track)
    with pytest.raises(StreamError, match="cannot be read"):
        PLAIN.from_json(Codec({Point}).to_json(Point(1.0)))


@pytest.mark.parametrize(
    "value", [threading.Lock(), lambda: 1, object(), Exception("x"), np.array([object()])]
)
def test_what_is_no_plain_data_is_refused(value: Any) -> None:
    with pytest.raises(StreamError, match="cannot be saved: it is no plain data"):
        PLAIN.to_json([value])


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = [1]
    value.append({"again": (value,)})
    with pytest.raises(StreamError, match="it holds itself"):
        PLAIN.to_json(value)


def test_depth_and_sharing_cost_nothing() -> None:
    deep: Any = ()
    wide: Any = ("x",)
    for i in range(20_000):
        deep = (i, deep)
    for _ in range(100):
        wide = (wide, wide)
    nodes = PLAIN.to_json([deep, wide])
    assert len(nodes) == 20_103
    got, shared = PLAIN.from_json(nodes)
    while deep:
        assert got[0] == deep[0]
        got, deep = got[1], deep[1]
    assert shared[0] is shared[1] and weight(wide) < 3000


@pytest.mark.parametrize(
    "nodes", [[], [["list", [5]]], [["class", "Popen"]], [["os.system", "ls"]], ["x"], [["date", "soon"]]]
)
def test_nodes_that_nobody_wrote_are_refused(nodes: list[Any]) -> None:
    with pytest.raises(StreamError, match="cannot be read"):
        PLAIN.from_json(nodes)
