"""A page comes out of a packet as it went in, whatever its columns hold."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from caesura.events import Page
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.runtime.packets.integer_encoding import BY_NAME, decode_integers, encode_integers
from caesura.runtime.packets.packet import Packet

EDGES = [MIN_TIME, MIN_TIME + 1, -1, 0, 1, 255, 256, 2**16, 2**32, 2**62, INFINITY - 1, INFINITY]
NEAR = st.one_of(st.sampled_from(EDGES), st.integers(0, 300), st.integers(2**40, 2**40 + 70_000))


@given(
    st.lists(st.tuples(NEAR, NEAR, NEAR, st.none() | NEAR, st.text(max_size=3)), max_size=6), st.booleans()
)
def test_page_comes_back(rows: list[tuple[Any, ...]], corrects: bool) -> None:
    le, re, new = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    payload = pa.record_batch({"_le": [row[2] for row in rows], "n": [row[3] for row in rows]}, WIDE)
    texts = pa.array([row[4] for row in rows], pa.string())
    sent = Page(le, re, payload.append_column("text", texts), new if corrects else None)
    (back,) = Packet.from_row(Packet(1, "in", 0, "a", 0, {}, (sent,)).to_row()).items
    assert isinstance(back, Page)
    assert back.schema == sent.schema
    assert back.payload.equals(sent.payload)
    assert (back.le == le).all() and (back.re == re).all()
    assert back.re_new is None if sent.re_new is None else (back.re_new == sent.re_new).all()


WIDE = pa.schema([("_le", pa.int64()), ("n", pa.int64())])


def test_rows_without_columns_come_back() -> None:
    sent = Page.of(pa.record_batch({"id": [1, 2]}).select([]), le=[3, 3], re=[4, 4])
    (back,) = Packet.from_row(Packet(1, "in", 0, "a", 0, {}, (sent,)).to_row()).items
    assert isinstance(back, Page) and len(back) == 2 and back.le.tolist() == [3, 3]


@pytest.mark.parametrize("name", BY_NAME)
def test_every_kind_of_number_is_narrowed(name: str) -> None:
    kind = BY_NAME[name]
    numbers = pa.array([30_000, 30_001, 30_200], pa.int64() if kind.bit_width == 64 else pa.int32())
    whole = numbers.cast(kind) if kind != pa.int16() else pa.array([3, 4, 200], kind)
    small, told = encode_integers(whole.slice(1))
    assert small is not None and small.type == pa.uint8()
    assert decode_integers(small, told, 2).equals(whole.slice(1))
