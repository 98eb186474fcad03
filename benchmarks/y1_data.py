"""Yahoo's first benchmark: ad events, the campaign of each ad, and the query that counts views.

Views are filtered, their campaign is looked up, and they are counted per campaign and second.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import caesura as cz
from caesura import col

ADS = 1_000
TICK = 10
"""Microseconds from event to event: 100 K events a second."""


def ads(events: int, seed: int = 1) -> pa.Table:
    """Ad events of three kinds."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": pa.array(np.arange(events) * TICK, pa.timestamp("us")),
            "ad": random.integers(0, ADS, events),
            "kind": random.integers(0, 3, events, np.int8),
        }
    )


def later(table: pa.Table, by: int) -> pa.Table:
    """The same events, so many events later."""
    ts = table["ts"].cast(pa.int64()).to_numpy()
    return table.set_column(0, "ts", pa.array(ts + by * TICK, pa.timestamp("us")))


def campaigns() -> pa.Table:
    """The campaign of each ad, from the beginning of time."""
    return pa.table(
        {
            "since": pa.array([0] * ADS, pa.timestamp("us")),
            "ad": np.arange(ADS),
            "campaign": np.arange(ADS) // 10,
        }
    )


def views(clicks: cz.Stream) -> cz.Stream:
    """Views per campaign and second."""
    endless = campaigns().append_column("until", pa.nulls(ADS, pa.timestamp("us")))
    lookup = cz.from_arrow(endless, time="since", end="until")
    return (
        clicks.where(col("kind") == 0)
        .select("ad")
        .join(lookup, on="ad")
        .group_by("campaign")
        .tumbling("1s")
        .agg(n=cz.count())
    )
