"""Seeded data of the papers' experiments: NEXMark as StreamQRE has it, Yahoo's advertisements, patients.

Every generator gives columns of one record batch and the events' times, in order of time.

>>> some = patients(5, seed=3)
>>> some.batch.schema.names, some.time.tolist()[:3]
(['kind', 'patient', 'value'], [0, 1000000, 2000000])
>>> some.table().num_rows
5
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
PERSON, ITEM, BID, CLOSE = 0, 1, 2, 3
VIEW, CLICK, PURCHASE = 0, 1, 2
BEGIN, MEASURE, END, DAY = 0, 1, 2, 3


class PaperEvents(NamedTuple):
    """Events in order of time."""

    batch: pa.RecordBatch
    time: np.ndarray[tuple[int], np.dtype[np.int64]]

    def table(self) -> pa.Table:
        """The events with their times, in microseconds: ``cz.from_arrow(data.table(), time="time")``."""
        columns = dict(zip(self.batch.schema.names, self.batch.columns, strict=True))
        return pa.table({"time": self.time, **columns})


def _batch(**columns: np.ndarray) -> pa.RecordBatch:
    fields = [pa.field(name, pa.array(values[:1]).type, False) for name, values in columns.items()]
    arrays = [pa.array(values) for values in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def nexmark(events: int, *, seed: int = 1, auctions: int = 3000, per_second: int = 1000) -> PaperEvents:
    """Person, Item, Bid and Close events; bids are increments on the item's first price.

    About 2 % persons, 6 % items, 86 % bids, 6 % closes; ``auctions`` are open at once.
    """
    rng = np.random.default_rng(seed)
    kind = rng.choice(np.array([PERSON, ITEM, BID], np.int8), events, p=[0.02, 0.12, 0.86])
    turns = np.flatnonzero(kind == ITEM)
    kind[turns[auctions + 1 :: 2]] = CLOSE
    kind[: min(events, 10)] = ITEM
    opened, closed = np.cumsum(kind == ITEM), np.cumsum(kind == CLOSE)
    alive = np.maximum(opened - closed, 1)
    some = closed + 1 + (rng.random(events) * alive).astype(np.int64)
    item = np.select([kind == ITEM, kind == CLOSE, kind == BID], [opened, closed, some], 0).astype(np.int64)
    price = np.round(rng.random(events) * np.where(kind == ITEM, 100.0, 5.0), 2)
    category = (item * 2654435761 % 10).astype(np.int32)
    time = np.arange(events, dtype=np.int64) * (SECOND // per_second)
    return PaperEvents(_batch(kind=kind, item=item, price=price, category=category), time)


def yahoo(
    events: int, *, seed: int = 1, campaigns: int = 100, ads: int = 10, users: int = 100
) -> PaperEvents:
    """Views, clicks and purchases of ads, 100 a second; the ad's campaign has been looked up."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, events).astype(np.int8)
    ad = rng.integers(0, campaigns * ads, events).astype(np.int32)
    user = rng.integers(0, users, events).astype(np.int32)
    campaign = (ad // ads).astype(np.int32)
    time = np.arange(events, dtype=np.int64) * 10_000
    return PaperEvents(_batch(kind=kind, ad=ad, campaign=campaign, user=user), time)


def patients(events: int, *, seed: int = 1, patients: int = 1, per_day: int = 500) -> PaperEvents:
    """Episodes of measurements between begin and end, and a marker at the end of each day."""
    rng = np.random.default_rng(seed)
    kind = np.full(events, MEASURE, np.int8)
    cycle = np.arange(events) % 20
    kind[cycle == 0], kind[cycle == 19] = BEGIN, END
    sizes = rng.integers(per_day // 2, per_day * 3 // 2, events // per_day * 2 + 2) // 20 * 20
    ends = np.cumsum(np.maximum(sizes, 20))
    ends = ends[ends < events]
    order = np.insert(kind, ends, DAY)[:events]
    value = np.round(np.exp(rng.normal(3.0, 0.6, events)), 3)
    patient = rng.integers(0, patients, events).astype(np.int32)
    time = np.arange(events, dtype=np.int64) * SECOND
    return PaperEvents(_batch(kind=order, patient=patient, value=value), time)


def disordered(data: PaperEvents, share: float = 0.05, *, seed: int = 2, reach: int = 2000) -> PaperEvents:
    """The same events, some of them up to ``reach`` places late."""
    rng = np.random.default_rng(seed)
    places = np.arange(len(data.time), dtype=np.float64)
    late = rng.random(len(places)) < share
    places[late] += rng.random(int(late.sum())) * reach
    order = np.argsort(places, kind="stable")
    return PaperEvents(data.batch.take(pa.array(order)), data.time[order])
