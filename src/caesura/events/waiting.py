"""Events that wait in a row state, by payload and start, and retracts that take some of them out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.identity import LOCAL, identity
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, U64, mixed
from caesura.kernels.keys import KeyTable


def take_out(waiting: RowState, retracted: Page) -> None:
    """Removes as many waiting events as were retracted; equal events are interchangeable."""
    live = np.flatnonzero(waiting.alive)
    known = KeyTable()
    mine, _ = known.encode(*_ids(waiting.payload.take(live), waiting.get("le")[live]))
    theirs = known.find(*_ids(retracted.payload, retracted.le))
    counts = np.bincount(theirs[theirs >= 0], minlength=known.count)
    order = np.argsort(mine, kind="stable")
    rank = np.arange(len(mine)) - np.searchsorted(mine[order], mine[order])
    waiting.kill(np.sort(live[order[rank < counts[mine[order]]]]))


def _ids(payload: pa.RecordBatch, le: I64) -> tuple[U64, U64]:
    return mixed(identity(payload.columns, len(le), LOCAL), le)
