"""What an aggregation has sent for each slot, so that a correction takes back exactly that."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, Mask
from caesura.ops.sent import replaced


class SentBySlot:
    """The last row sent per slot; ``slots`` must have a field ``sent``, -1 where there is none."""

    def __init__(self, slots: RowState, schema: pa.Schema) -> None:
        self.slots = slots
        self.rows = RowState({"le": np.int64, "re": np.int64, "slot": np.int64}, schema)

    def change(self, at: I64, le: I64, re: I64, payload: pa.RecordBatch, present: Mask) -> Page:
        """Sends these rows for these slots instead of what was sent before; absent ones go."""
        before = self.slots.get("sent")[at]
        old, own, sent = before[before >= 0], at, self.slots.get("sent")
        if not present.all():
            new = np.flatnonzero(present)
            sent[at] = -1
            own, le, re, payload = at[new], le[new], re[new], payload.take(pa.array(new))
        page = replaced(self.rows, old, Page(le, re, payload))
        first = self.rows.append({"le": le, "re": re, "slot": own}, payload)
        sent[own] = np.arange(first, first + len(own))
        self.slots.touch(at)
        return page

    def forget(self, at: I64) -> None:
        """The rows of these slots are final: nothing will take them back."""
        old = self.slots.get("sent")[at]
        self.rows.kill(old[old >= 0])

    def renumber(self, keep: I64 | None) -> None:
        """Follows a compaction of the slots, and compacts itself when it is worth it."""
        if keep is not None:
            new = np.full(int(keep.max(initial=-1)) + 1, -1, np.int64)
            new[keep] = np.arange(len(keep))
            slot = self.rows.get("slot")
            live = self.rows.alive
            slot[live] = new[slot[live]]
            self.rows.touch(np.flatnonzero(live))
        if self.rows.wasteful:
            self.rows.compact()
            self.rebuild()

    def rebuild(self) -> None:
        """Writes into the slots where their rows are."""
        sent = self.slots.get("sent")
        sent[:] = -1
        live = np.flatnonzero(self.rows.alive)
        sent[self.rows.get("slot")[live]] = live
