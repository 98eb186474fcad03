"""The live rows that a guard has dropped, so that a retract is dropped exactly with its insert.

Law: what passed and what is in the bag are together what came, as bags of rows.

>>> from caesura.events import parse
>>> page, = parse(" LE RE | id |\\n 1 9 | 7 | +\\n 1 9->5 | 7 | -")
>>> bag = RowBag(page.schema)
>>> bag.take(page, np.array([True, False])).tolist(), bag.rows.live
([True, True], 1)
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.identity import LOCAL, identity
from caesura.events.page import Page, take_rows
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights
from caesura.punctuation import INFINITY, Promises


@kernel
def take_back(old: I64, new: I64, n: I64, taken: Mask) -> None:
    """Retracts in order: one whose row is in the bag changes the bag and is taken."""
    for i in range(len(old)):
        if old[i] >= 0 and n[old[i]] > 0:
            n[old[i]] -= 1
            if new[i] >= 0:
                n[new[i]] += 1
            taken[i] = True


class RowBag:
    """Counted rows by value: payload, LE and RE."""

    def __init__(self, schema: pa.Schema, *, fixed: bool = False) -> None:
        self.rows = RowState({"le": np.int64, "re": np.int64, "n": np.int64}, schema)
        self._fixed = fixed
        """Whether a row can only vanish, so that it is final once its start is."""
        self._table = KeyTable()

    def take(self, page: Page, stopped: Mask) -> Mask:
        """Takes the stopped inserts of a page, and its retracts of rows in the bag; says which rows."""
        retracts = page.retracts
        rejected = stopped if retracts is None else stopped & ~retracts
        rows = np.flatnonzero(rejected)
        if len(rows):
            at = self._at(page, rows, page.re[rows])
            add_weights(at, np.ones(len(rows), np.int64), self.rows.get("n"))
            self._changed(np.unique(at))
        if retracts is None or self.rows.live == 0:
            return rejected
        return rejected | self._retracted(page, np.flatnonzero(retracts))

    def _retracted(self, page: Page, rows: I64) -> Mask:
        assert page.re_new is not None
        taken = np.zeros(len(page), np.bool_)
        known = self._table.find(*_ids(page, rows, page.re[rows]))
        some = self._reaching(page, rows, known)
        if len(some) == 0:
            return taken
        new = np.full(len(some), -1, np.int64)
        stays = page.re_new[some] > page.le[some]
        new[stays] = self._at(page, some[stays], page.re_new[some[stays]])
        old = self._table.find(*_ids(page, some, page.re[some]))
        out = np.zeros(len(some), np.bool_)
        take_back(old, new, self.rows.get("n"), out)
        touched = np.concatenate([old[old >= 0], new[new >= 0]])
        self._changed(np.unique(touched))
        taken[some[out]] = True
        return taken

    def _reaching(self, page: Page, rows: I64, known: I64) -> I64:
        """The retracts that may speak of the bag: rows of the same payload and start as one in it."""
        if (known >= 0).all():
            return rows
        starts = KeyTable()
        mine = np.flatnonzero(known >= 0)
        none = np.zeros(len(rows), np.int64)
        h1, h2 = _ids(page, rows, none)
        starts.encode(h1[mine], h2[mine])
        return rows[starts.find(h1, h2) >= 0]

    def _at(self, page: Page, rows: I64, re: I64) -> I64:
        at, fresh = self._table.encode(*_ids(page, rows, re))
        if len(fresh):
            fields = {"le": page.le[rows[fresh]], "re": re[fresh], "n": np.zeros(len(fresh), np.int64)}
            self.rows.append(fields, take_rows(page.payload, rows[fresh]))
        return at

    def _changed(self, at: I64) -> None:
        self.rows.touch(at)
        self.rows.keep(at, self.rows.get("n")[at] > 0)

    def settle(self, promises: Promises) -> None:
        """Lets go of rows that no retract can name any more."""
        live = np.flatnonzero(self.rows.alive)
        if len(live) == 0:
            return
        bound = np.asarray(promises.cti)
        if promises.size:
            bound = np.asarray(promises.effective_cti(self.rows.payload.take(live)))
        last = self.rows.get("le" if self._fixed else "re")[live]
        self.rows.kill(live[(last < bound) | (bound == INFINITY)])
        if self.rows.wasteful:
            self.rebuild()

    def rebuild(self) -> None:
        """Numbers the live rows anew."""
        if self.rows.live < self.rows.size:
            self.rows.compact()
        ids = identity(self.rows.payload.all().columns, self.rows.size, LOCAL)
        self._table = KeyTable()
        self._table.encode(*mixed(ids, self.rows.get("le"), self.rows.get("re")))


def _ids(page: Page, rows: I64, re: I64) -> tuple[U64, U64]:
    return mixed(page.ids(LOCAL), page.le[rows], re, rows=rows)
