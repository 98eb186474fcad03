"""Rows that were sent and are replaced: the change from the old rows to the new ones.

Law: a retract names the value that was sent, never one computed again.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.delta import net_page
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64


def replaced(rows: RowState, old: I64, page: Page) -> Page:
    """The net change when a page of inserts takes the place of sent rows, which go."""
    if len(old) == 0:
        return page
    both = pa.concat_batches([rows.payload.take(old), page.payload])
    weight = np.concatenate([np.full(len(old), -1, np.int64), np.ones(len(page), np.int64)])
    le, re = (rows.get(name)[old] for name in ("le", "re"))
    rows.kill(old)
    return net_page(both, np.concatenate([le, page.le]), np.concatenate([re, page.re]), weight)
