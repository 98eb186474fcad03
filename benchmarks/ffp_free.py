"""A loop that takes input while it works, beside one that is worked off first: the W query, input on its way.

The clock counts steps of the engine (items taken, batches read, or an idle turn); an event arrives every so
many of them, whatever the engine does. Staged, an event waits outside until the loop is at rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import caesura as cz
from caesura.api import Stream
from caesura.events import Page
from caesura.io import Offsets, Reader
from caesura.io.ingress.shape import Shape
from caesura.io.sources.source import Source
from caesura.plan import NOTHING_NOW, Raw, SourceBatch
from caesura.runtime import Query

SCHEMA = pa.schema([(name, pa.int64()) for name in ("ts", "end", "seq", "up")])


class Arriving(Reader):
    """Events that arrive at their times, one in a batch; all that have arrived can be read."""

    key, schema, poll_seconds = "ticks", SCHEMA, 0.0

    def __init__(self, up: np.ndarray, window: int, gap: int) -> None:  # type: ignore[type-arg]
        self.up, self.window, self.gap = up, window, gap
        self.now = 0
        self.waited: list[int] = []
        """How long each event waited before it was read."""

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        for seq, up in enumerate(self.up.tolist()):
            while self.now < seq * self.gap:
                yield NOTHING_NOW
            self.waited.append(self.now - seq * self.gap)
            row = {"ts": seq, "end": seq + self.window, "seq": seq, "up": up}
            yield Raw(0, seq, pa.RecordBatch.from_pylist([row], SCHEMA))

    def describe(self) -> str:
        return "ticks"


def measured(
    loop: Callable[[Stream], Stream], begin: Callable[[Query], None], reader: Arriving
) -> dict[str, Any]:
    """How long events wait, how many steps and pages around it takes, and the CPU time."""
    shape = Shape.of(time="ts", end="end")
    ticks = Stream(Source(reader=reader, shape=shape, policy=cz.delay(0), name="ticks"))
    query = Query({"out": loop(ticks).node})
    begin(query)
    began, rows = time.process_time(), 0
    while not query.parts.readers["ticks"].done or any(edge.items for edge in query.graph.edges):
        query.step()
        reader.now += 1
        rows += sum(len(item) for item in query.take("out") if isinstance(item, Page))
    head = query.parts.loops[0].head.operator.counters
    return {
        "events_wait": round(float(np.mean(reader.waited)), 1),
        "longest_wait": max(reader.waited),
        "steps": reader.now,
        "pages_around": head.extra["rounds"],
        "cpu_s": round(time.process_time() - began, 2),
        "rows": rows,
    }
