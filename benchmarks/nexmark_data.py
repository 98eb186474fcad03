"""NEXMark's auction house: persons, auctions and bids, 1 : 3 : 46, made from a seed.

Own code, after the public description of the benchmark: of every 50 events one is a person, three are
auctions, the rest bids. Half of the bids go to the hottest auction of the moment and come from a hot
bidder; prices are spread evenly over six powers of ten. Every event has a time of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

TURN = 50
PERSONS, AUCTIONS = 1, 3
FIRST = 1_000
"""The first id of a person and of an auction."""
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
CITIES = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
]
CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
START = np.datetime64("2026-01-01T06:00:00", "us").astype(np.int64)


class House(NamedTuple):
    """The three tables, in order of time."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table


def house(events: int, per_second: int = 10_000, seed: int = 7) -> House:
    """So many events, so many in a second."""
    random = np.random.default_rng(seed)
    number = np.arange(events)
    time = START + number * (1_000_000 // per_second)
    turn, place = number // TURN, number % TURN
    return House(
        _persons(random, turn[place < PERSONS], time[place < PERSONS]),
        _auctions(
            random, *(v[(place >= PERSONS) & (place < PERSONS + AUCTIONS)] for v in (turn, place, time))
        ),
        _bids(random, *(v[place >= PERSONS + AUCTIONS] for v in (turn, time))),
    )


def _persons(random: np.random.Generator, turn: np.ndarray, time: np.ndarray) -> pa.Table:
    n = len(turn)
    first, last = (random.integers(0, 40, n) for _ in range(2))
    return pa.table(
        {
            "dateTime": pa.array(time, pa.timestamp("us")),
            "id": FIRST + turn * PERSONS,
            "name": pa.array([f"first{a} last{b}" for a, b in zip(first, last, strict=True)]),
            "emailAddress": pa.array([f"u{i}@mail{i % 90}.com" for i in turn]),
            "creditCard": pa.array([f"{c:016d}" for c in random.integers(0, 10**15, n)]),
            "city": _picked(random, CITIES, n),
            "state": _picked(random, STATES, n),
            "extra": _noise(random, n, 60),
        }
    )


def _auctions(random: np.random.Generator, turn: np.ndarray, place: np.ndarray, time: np.ndarray) -> pa.Table:
    n = len(turn)
    newest = turn * PERSONS
    seller = np.where(random.random(n) < 0.75, newest // 100 * 100, newest - random.integers(0, 1_000, n))
    opening = _prices(random, n)
    return pa.table(
        {
            "dateTime": pa.array(time, pa.timestamp("us")),
            "id": FIRST + turn * AUCTIONS + place - PERSONS,
            "itemName": _noise(random, n, 12),
            "description": _noise(random, n, 60),
            "initialBid": opening,
            "reserve": opening + _prices(random, n),
            "expires": pa.array(time + random.integers(1, 20_000_000, n), pa.timestamp("us")),
            "seller": FIRST + np.maximum(seller, 0),
            "category": 10 + random.integers(0, 5, n),
            "extra": _noise(random, n, 40),
        }
    )


def _bids(random: np.random.Generator, turn: np.ndarray, time: np.ndarray) -> pa.Table:
    n = len(turn)
    auctions, persons = turn * AUCTIONS, turn * PERSONS
    hot = auctions // 100 * 100
    auction = np.where(random.random(n) < 0.5, hot, auctions - random.integers(0, 100, n))
    bidder = np.where(
        random.random(n) < 0.75, persons // 100 * 100 + 1, persons - random.integers(0, 1_000, n)
    )
    known = random.random(n) < 0.5
    channel, other = random.integers(0, 4, n), random.integers(0, 10_000, n)
    path = random.integers(0, 500, n)
    names = pa.array([*CHANNELS, *(f"channel-{i}" for i in range(10_000))])
    urls = [f"https://www.nexmark.com/a{p}/b{p % 7}/c{p % 31}/item.htm?query=1" for p in range(500)]
    urls += [
        f"https://www.nexmark.com/a{c % 500}/b{c % 7}/c{c % 31}/item.htm?query=1&channel_id={c}"
        for c in range(10_000)
    ]
    return pa.table(
        {
            "dateTime": pa.array(time, pa.timestamp("us")),
            "auction": FIRST + np.maximum(auction, 0),
            "bidder": FIRST + np.clip(bidder, 0, persons),
            "price": _prices(random, n),
            "channel": names.take(pa.array(np.where(known, channel, 4 + other))),
            "url": pa.array(urls).take(pa.array(np.where(known, path, 500 + other))),
            "extra": _noise(random, n, 24),
        }
    )


def _prices(random: np.random.Generator, n: int) -> np.ndarray:
    return np.round(10 ** (random.random(n) * 6) * 100).astype(np.int64)


def _picked(random: np.random.Generator, texts: list[str], n: int) -> pa.Array:
    return pa.array(texts).take(pa.array(random.integers(0, len(texts), n)))


def _noise(random: np.random.Generator, n: int, size: int) -> pa.Array:
    """Texts of small letters."""
    letters = random.integers(97, 123, n * size, np.uint8)
    offsets = np.arange(0, (n + 1) * size, size, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def disordered(table: pa.Table, seconds: float = 3.0, seed: int = 11) -> pa.Table:
    """The same rows as they would arrive, each up to so many seconds late."""
    late = np.random.default_rng(seed).random(len(table)) * seconds * 1e6
    return table.take(
        pa.array(np.argsort(table["dateTime"].cast(pa.int64()).to_numpy() + late, kind="stable"))
    )
