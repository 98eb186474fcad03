"""`clip` ends each event where the next event of another stream with the same key begins.

     1 inf | k=7 | +      clip by      1   6 | 7 | +       a reading lasts until the next one
     6 inf | k=7 | +      itself  ->   6 inf | 7 | +

An event ends at the least start of a right event with equal keys that lies after its own start, if
that comes before its own end. A null key clips nothing and is not clipped.

Law: an event that a settled start has clipped is final: later changes of its own end do not show.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, each_once
from caesura.ops.join.node import Join
from caesura.ops.join.side import Side
from caesura.plan import AlignedOperator, FeedbackRule, Holding, Need, Operator, Properties, Translation
from caesura.plan.lifetimes import Moved
from caesura.plan.roles import OnLoop, PunctuatedBy
from caesura.punctuation import INFINITY, Pattern


@dataclass(frozen=True, eq=False, kw_only=True)
class Clip(Join):
    """Left events, cut at the next start on the right. Keys and checks are a semi join's."""

    kind = "clip"
    punctuated_by: ClassVar[PunctuatedBy] = "rows"

    @property
    def caution(self) -> str:
        """What meets no start stays as it is."""
        return ""

    @property
    def start_delay(self) -> int:
        return 0

    def derive(self, *inputs: Properties) -> Properties:
        return Properties(points=inputs[0].points, max_duration=inputs[0].max_duration)

    def holds(self) -> tuple[Holding, ...]:
        """A clipped row goes when neither its end nor a start before it can change."""
        own = Need(0, tuple(self.inputs[0].schema.names))
        left, right = (Need(port, self.keys(port)) for port in (0, 1))
        itself = self.inputs[0].fingerprint == self.inputs[1].fingerprint
        rows = Holding("left rows", 0, (own, right), each=2, one_per=self.keys(0) if itself else None)
        return rows, Holding("starts", 1, (left, right), until="start")

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """A left row is its own result; a right start cuts others, so nothing is sent to the right."""
        left = Translation.of(self.schema.names, self.inputs[0].properties, Moved(("LE", 0), None))
        return (FeedbackRule((left, None), "rows", "input"),)

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        return OnLoop(monotone=False)

    def looks_up(self, port: int) -> bool:
        return False

    def operator(self) -> Operator:
        return Clipper(self)

    def describe(self) -> str:
        keys = ", ".join(a if a == b else f"{a} = {b}" for a, b in self.on)
        return f"by the right, on {keys}" if keys else "by the right"


@kernel
def least_after(owner: I64, start: I64, n: I64, le: I64, out: I64) -> None:
    """The least start with a positive count after each owner's LE; INFINITY where there is none."""
    for i in range(len(out)):
        out[i] = INFINITY
    for i in range(len(owner)):
        o = owner[i]
        if n[i] > 0 and start[i] > le[o] and start[i] < out[o]:
            out[o] = start[i]


class Clipper(AlignedOperator):
    """Left rows that may still change, and counted right starts, linked by key."""

    def __init__(self, node: Clip) -> None:
        super().__init__(2)
        self.node = node
        names = [[pair[port] for pair in node.on] for port in (0, 1)]
        self.names = names
        schemas = [source.schema for source in node.inputs]
        self.left = Side(0, schemas[0], names[0], self.secret, by_value=True, preserved=True)
        self._right = Side(1, schemas[1], names[1], self.secret, by_value=False, preserved=False)
        keys = pa.schema([schemas[1].field(name) for name in names[1]])
        self.starts = RowState({"le": np.int64, "n": np.int64, "h1": np.uint64, "h2": np.uint64}, keys)
        self.rebuild()

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        return [self._left_page(page) if port == 0 else self._right_page(page)]

    def _left_page(self, page: Page) -> Page:
        key, _ = self._table.encode(*self.left.key_ids(page.payload))
        if page.retracts is None:
            changed = self.left.added(self.left.insert(page, None, key))
        else:
            came = self.left.added(self.left.insert(page, np.flatnonzero(~page.retracts), key))
            found = self.left.retract(page, np.flatnonzero(page.retracts), key)
            changed = each_once(np.concatenate([came, found[found >= 0]]))
        return self._relay(changed)

    def _right_page(self, page: Page) -> Page:
        """Counts starts that come and go; a change of a right event's end changes nothing."""
        weight = np.ones(len(page), np.int64)
        if page.re_new is not None and page.retracts is not None:
            weight = np.where(page.retracts, np.where(page.re_new <= page.le, -1, 0), 1)
        some = np.flatnonzero(weight)
        h1, h2 = self._right.key_ids(page.payload)
        key, _ = self._table.encode(h1, h2)
        at, fresh = self._values.encode(*mixed((h1[some], h2[some]), page.le[some]))
        if len(fresh):
            rows = some[fresh]
            fields = {"le": page.le[rows], "n": np.zeros(len(rows), np.int64), "h1": h1[rows], "h2": h2[rows]}
            self.starts.append(fields, page.payload.select(self._right.key_places).take(pa.array(rows)))
            self._chains.add(key[rows])
        add_weights(at, weight[some], self.starts.get("n"))
        touched = each_once(at)
        self.starts.touch(touched)
        self.starts.keep(touched, self.starts.get("n")[touched] > 0)
        _, row = self.left.chains.gather(each_once(key[some]))
        return self._relay(each_once(row[self.left.rows.alive[row]]))

    def _relay(self, rows: I64) -> Page:
        """Clips these left rows again; gives the change from what was sent about them."""
        left = self.left
        live = rows[left.rows.alive[rows]]
        le = left.rows.get("le")[live]
        re = np.minimum(left.rows.get("re")[live], self._cut(live, le))
        return left.resend(rows, live, le, re, left.rows.payload.take)

    def _cut(self, live: I64, le: I64) -> I64:
        key = self._table.find(*self.left.key_ids(self.left.rows.payload.take(live)))
        owner, row = self._chains.gather(key)
        out = np.empty(len(live), np.int64)
        least_after(owner, self.starts.get("le")[row], self.starts.get("n")[row], le, out)
        return out

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        items = self.aligned(port, self.node.carry(port, pattern))
        self._purge()
        behind = 0 if self.promises[0].cti <= self.promises[1].cti else 1
        self.counters.held_by = "" if items else f"the {('left', 'right')[behind]} input"
        return items

    def _purge(self) -> None:
        """Rows whose piece ends before both bounds are final; starts before both, or after all, clip none."""
        left, starts = self.left, self.starts
        live = np.flatnonzero(left.sent.alive)
        row = left.sent.get("row")[live]
        bound = self._settled(left.rows.payload.take(row), 0, own=True)
        final = (left.sent.get("re")[live] < bound) | (bound == INFINITY)
        left.drop(row[final])
        some = np.flatnonzero(starts.alive)
        bound = self._settled(starts.payload.take(some), 1, own=False)
        over = left.rows.live == 0 and self.promises[0].cti == INFINITY
        starts.kill(some[(starts.get("le")[some] < bound) | (bound == INFINITY) | over])
        if left.wasteful or starts.wasteful:
            self.rebuild()

    def _settled(self, payload: pa.RecordBatch, side: int, *, own: bool) -> I64:
        """The time before which both sides are settled for these rows' keys."""
        keys = self.names[side]
        bounds = []
        for port in (0, 1):
            columns = {n: payload.column(k) for n, k in zip(self.names[port], keys, strict=True)}
            if own and port == side:
                columns = dict(zip(payload.schema.names, payload.columns, strict=True))
            bounds.append(self.promises[port].effective_cti(columns=columns))
        return np.broadcast_to(np.minimum(bounds[0], bounds[1]), payload.num_rows)

    def states(self) -> dict[str, RowState]:
        return {"left": self.left.rows, "sent": self.left.sent, "starts": self.starts}

    def rebuild(self) -> None:
        self._table, self._values, self._chains = KeyTable(), KeyTable(), Chains()
        self.left.compact()
        self.left.link(self._table)
        if self.starts.live < self.starts.size:
            self.starts.compact()
        h1, h2 = self.starts.get("h1"), self.starts.get("h2")
        key, _ = self._table.encode(h1, h2)
        self._chains.add(key)
        self._values.encode(*mixed((h1, h2), self.starts.get("le")))
