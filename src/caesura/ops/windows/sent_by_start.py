"""What was sent for each window, so that a correction takes back exactly that."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.identity import LOCAL, Secret, identity
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, U64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.ops.ordered import Ordered
from caesura.ops.sent import replaced
from caesura.ops.windows.regions import Regions
from caesura.punctuation import MIN_TIME


class SentByStart:
    """Sent rows, found by group and window start."""

    def __init__(self, schema: pa.Schema, width: int, secret: Secret) -> None:
        self._secret = secret
        self.width = width
        own = {"window": np.int64, "le": np.int64, "re": np.int64}
        self.rows = RowState(own, schema)
        self.starts, self.group = Ordered(), Grown(np.int64)

    def replace(
        self, regions: Regions, group: I64, window: I64, le: I64, re: I64, payload: pa.RecordBatch
    ) -> Page:
        """Sends these rows for the windows of some regions instead of what was sent before."""
        _, old = self.starts.between(regions.group, regions.lo, regions.hi - 1, self.rows.alive)
        page = replaced(self.rows, old, Page(le, re, payload))
        first = self.rows.append({"window": window, "le": le, "re": re}, payload)
        self.group.extend(group)
        self.starts.add(group, window, np.arange(first, first + len(le)))
        return page

    @property
    def groups(self) -> I64:
        """The groups of which rows were sent that may still be replaced."""
        return np.unique(self.group.view[np.flatnonzero(self.rows.alive)])

    def windows_of(self, group: I64, window: I64, some: Mask) -> Mask:
        """Which rows are of a window that has a row among some, or of which a row was sent."""
        live = np.flatnonzero(self.rows.alive)
        known = KeyTable()
        known.encode(*_windows(self.group.view[live], self.rows.get("window")[live]))
        known.encode(*_windows(group[some], window[some]))
        return known.find(*_windows(group, window)) >= 0

    def settle(self, groups: I64, done: I64) -> None:
        """The windows that start before each group's bound are final: nothing will take them back."""
        lowest = np.full(len(groups), MIN_TIME)
        _, old = self.starts.between(groups, lowest, np.maximum(done, MIN_TIME + 1) - 1, self.rows.alive)
        self.rows.kill(old)

    def index(self, groups: KeyTable) -> None:
        """Orders the live rows anew, under the groups' new numbers."""
        if self.rows.live < self.rows.size:
            self.rows.compact()
        keys = self.rows.payload.all().columns[: self.width]
        number, _ = groups.encode(*identity(keys, self.rows.size, self._secret))
        self.starts, self.group = Ordered(), Grown(np.int64)
        self.group.extend(number)
        self.starts.add(number, self.rows.get("window"), np.arange(self.rows.size))


def _windows(group: I64, window: I64) -> tuple[U64, U64]:
    """A group's number and a window's start, as one key."""
    return mixed(identity([pa.array(group)], len(group), LOCAL), window)
