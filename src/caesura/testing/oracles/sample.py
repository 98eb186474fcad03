"""A sample by hashing each row in plain Python: SipHash-1-3, column by column, each under the hash so far.

>>> import pyarrow as pa
>>> rows = [(0, 1, {"id": n}) for n in range(8)]
>>> [p["id"] for _, _, p in sample(rows, 0.5, 1, pa.schema([("id", pa.int64())]))]
[3, 4, 7]
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from caesura.ops.sample import Sample
from caesura.testing.oracles.rows import Payload, Rows
from caesura.testing.oracles.steps import StepInputs, recomputes

MASK = 2**64 - 1
BEGIN = struct.unpack(">4Q", b"somepseudorandomlygeneratedbytes")
NULL, VALUE = 0xEE, 0xFF


@recomputes(Sample)
def _sampled(node: Sample, given: StepInputs) -> Rows:
    fields = pa.schema([node.schema.field(name) for name in node.by])
    return sample(given.rows[0], node.fraction, node.seed, fields)


def sample(rows: Rows, fraction: float, seed: int, schema: pa.Schema) -> Rows:
    """The rows whose hash over these columns, under the seed, lies in the share."""
    return [(a, b, p) for a, b, p in rows if hashed(p, seed, schema) < Fraction(fraction) * 2**64]


def hashed(payload: Payload, seed: int, schema: pa.Schema) -> int:
    """The first half of a row's hash."""
    key = blake2b(key=seed.to_bytes(16, "little", signed=True), person=b"rows", digest_size=16).digest()
    halves = struct.unpack("<2Q", key)
    for field in schema:
        halves = _hashed(halves, payload[field.name], field.type)
    return int(halves[0])


def _hashed(halves: tuple[int, ...], value: Any, t: pa.DataType) -> tuple[int, ...]:
    """What the halves of a row become by a value."""
    if pa.types.is_struct(t):
        halves = _sip(halves, [0], NULL if value is None else VALUE)
        for part in t:
            halves = _hashed(halves, None if value is None else value[part.name], part.type)
        return halves
    if value is None or not (pa.types.is_list(t) or pa.types.is_map(t)):
        for words, end in _links(value, t):
            halves = _sip(halves, words, end)
        return halves
    if pa.types.is_map(t):
        t = pa.list_(pa.struct([("key", t.key_type), ("value", t.item_type)]))
        value = [{"key": key, "value": each} for key, each in sorted(value, key=lambda entry: entry[0])]
    words = [half for each in value for half in _hashed(halves, each, t.value_type)]
    return _sip(halves, [*words, len(value)], VALUE)


def _links(value: Any, t: pa.DataType) -> Iterator[tuple[list[int], int]]:
    """The words of a value, by the links of the chain that it takes, each with how it ends."""
    if pa.types.is_decimal(t):
        whole = 0 if value is None else int(value.scaleb(t.scale))
        for word in (whole & MASK, (whole >> 64) & MASK):
            yield [0 if value is None else word], NULL if value is None else VALUE
    elif value is None:
        yield [0], NULL
    elif isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        padded = data + bytes(-len(data) % 8)
        yield [*struct.unpack(f"<{len(padded) // 8}Q", padded), len(data)], VALUE
    else:
        yield [_word(value, t)], VALUE


def _word(value: Any, t: pa.DataType) -> int:
    if isinstance(value, float):
        plain = float("nan") if value != value else value + 0.0
        return int(struct.unpack("<Q", struct.pack("<d", abs(plain) if plain != plain else plain))[0])
    if isinstance(value, int):
        return int(value) & MASK
    raw = pa.scalar(value, t).cast(pa.int32() if pa.types.is_date32(t) else pa.int64())
    return int(raw.as_py()) & MASK


def _sip(key: tuple[int, ...], words: list[int], end: int) -> tuple[int, ...]:
    state = [BEGIN[i] ^ key[i % 2] for i in range(4)]
    for word in words:
        state[3] ^= word
        state = _round(state)
        state[0] ^= word
    state[2] ^= end
    for _ in range(3):
        state = _round(state)
    return state[0] ^ state[1], state[2] ^ state[3]


def _round(state: list[int]) -> list[int]:
    a, b, c, d = state
    a, c = (a + b) & MASK, (c + d) & MASK
    b, d = _turned(b, 13) ^ a, _turned(d, 16) ^ c
    a, c = (_turned(a, 32) + d) & MASK, (c + b) & MASK
    b, d = _turned(b, 17) ^ c, _turned(d, 21) ^ a
    return [a, b, _turned(c, 32), d]


def _turned(word: int, by: int) -> int:
    return ((word << by) | (word >> (64 - by))) & MASK
