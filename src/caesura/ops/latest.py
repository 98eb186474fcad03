"""`latest` keeps the current row of every key, from events that replace each other.

     LE | id | v |                     latest(key="id")
      1 | 7  | a | +            ->      1   5 | 7 a | +
      5 | 7  | b | +                    5 inf | 7 b | +

Each event lives from its start until the next event of its key; its own end does not matter. Where several of
a key start together, the last one in the given order counts, then the last in canonical order. Null is a key
like others. An event that says so deletes: it ends the row before it and gives none.

Law: behind a CTI one row per key is kept, the one that may still be replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import DataError, PlanError
from caesura.events.delta import net_page
from caesura.events.identity import identity, plain_zeros
from caesura.events.item import Item
from caesura.events.order import ranks
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, U64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights
from caesura.ops.where import on_keys
from caesura.plan import (
    FeedbackRule,
    GivenUp,
    Holding,
    Need,
    Node,
    Operator,
    Properties,
    Translation,
    definite,
)
from caesura.plan.lifetimes import Whole
from caesura.plan.roles import OnLoop, PunctuatedBy
from caesura.punctuation import INFINITY, MIN_TIME, Pattern

HIDDEN = MIN_TIME
"""The end of a row that is not shown."""


@dataclass(frozen=True)
class Ops:
    """Which texts of a column say that a row is there, and which that it is deleted."""

    column: str
    present: tuple[str, ...]
    deleted: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Latest(Node):
    """The current row of every key."""

    group: tuple[str, ...]
    order: tuple[str, ...] = ()
    """Which of several that start together counts: the last by these columns."""
    ops: Ops | None = None
    """How rows say that they delete; None where none does."""

    partitioning = "key"
    punctuated_by: ClassVar[PunctuatedBy] = "rule"
    loop_remedy = "Take the current rows of what comes out of the loop."

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "latest" if self.ops is None else "changelog"

    def output_schema(self) -> pa.Schema:
        source = self.inputs[0].schema
        for name in (*self.group, *self.order):
            self.column(name)
        if not self.group:
            raise PlanError("no column tells which row replaces which.", remedy="Name the key: key='id'.")
        if self.ops is None:
            return source
        kind = self.column(self.ops.column).type
        if kind != pa.string():
            raise PlanError(
                f"the column '{self.ops.column}', which says what a row does, is of type {kind}.",
                remedy=f"It must hold texts such as 'c', 'u', 'd': col('{self.ops.column}').cast('string').",
            )
        if self.ops.column in self.group:
            raise PlanError(
                f"'{self.ops.column}' says what a row does, so it is no part of the key.",
                remedy="Leave it out of key=.",
            )
        return pa.schema([field for field in source if field.name != self.ops.column])

    def derive(self, *inputs: Properties) -> Properties:
        return Properties()

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """A pattern on whole keys passes: a row with another value may still replace one."""
        whole = set(pattern.without_time().attributes) <= set(self.group)
        return pattern if whole and pattern.time_bound is not None else None

    def keys(self, port: int) -> tuple[str, ...]:
        return self.group

    def push_filter(self, where: Node) -> Node | None:
        return on_keys(where, self, self.group)

    def holds(self) -> tuple[Holding, ...]:
        return (Holding("rows", 0, (Need(0, self.group),), one_per=self.group),)

    @property
    def results_endless(self) -> bool:
        return True

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Keys are given up whole."""
        translation = Translation.of(self.group, self.inputs[0].properties, Whole(1))
        return (FeedbackRule((translation,), "groups", purges=True, group=self.group),)

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        return OnLoop(monotone=False)

    def operator(self) -> Operator:
        return LatestOperator(self)

    def describe(self) -> str:
        order = f"; of equal times the last by {', '.join(self.order)}" if self.order else ""
        ops = "" if self.ops is None else f"; '{self.ops.column}' deletes by {', '.join(self.ops.deleted)}"
        return f"by {', '.join(self.group)}{order}{ops}"


class LatestOperator(Operator):
    """Rows that may still be replaced or taken back, linked by key, each with the end that was sent."""

    def __init__(self, node: Latest) -> None:
        super().__init__()
        self.node = node
        source = node.inputs[0].schema
        self._group = [source.get_field_index(name) for name in node.group]
        self._shown = [source.get_field_index(name) for name in node.schema.names]
        self._op = None if node.ops is None else source.get_field_index(node.ops.column)
        own = {"h1": np.uint64, "h2": np.uint64, "le": np.int64, "n": np.int64, "end": np.int64}
        self.rows = RowState({**own, "gone": np.int64}, source)
        self.rebuild()

    def page(self, port: int, page: Page) -> Iterable[Item]:
        weight = np.ones(len(page), np.int64)
        if page.retracts is not None and page.re_new is not None:
            weight = np.where(page.retracts, np.where(page.re_new <= page.le, -1, 0), 1)
        some = np.flatnonzero(weight)
        if len(some) == 0:
            return []
        page, weight = page.take(some), weight[some]
        plain = plain_zeros(page.payload)
        page = page if plain is page.payload else page.with_payload(plain)
        keys, _ = self._keys.encode(*self._key_ids(page.payload))
        self._apply(page, weight, keys)
        change = self._changed(np.unique(keys))
        if self.rows.size > 2 * self.rows.live + 4096:
            self.rebuild()
        return [change]

    def _key_ids(self, payload: pa.RecordBatch) -> tuple[U64, U64]:
        return identity([payload.column(i) for i in self._group], payload.num_rows, self.secret)

    def _apply(self, page: Page, weight: I64, keys: I64) -> None:
        h1, h2 = page.ids(self.secret)
        at, fresh = self._values.encode(*mixed((h1, h2), page.le))
        if len(fresh):
            payload = page.payload.take(pa.array(fresh))
            fields = {"h1": h1[fresh], "h2": h2[fresh], "le": page.le[fresh]}
            fields |= {"n": np.zeros(len(fresh), np.int64), "end": np.full(len(fresh), HIDDEN)}
            self.rows.append({**fields, "gone": self._deletes(payload).astype(np.int64)}, payload)
            self._chains.add(keys[fresh])
        add_weights(at, weight, self.rows.get("n"))
        touched = np.unique(at)
        self.rows.touch(touched)
        self.rows.keep(touched, self._needed(touched))

    def _needed(self, rows: I64) -> Mask:
        needed: Mask = (self.rows.get("n")[rows] > 0) | (self.rows.get("end")[rows] != HIDDEN)
        return needed

    def _deletes(self, payload: pa.RecordBatch) -> Mask:
        ops = self.node.ops
        if ops is None or self._op is None:
            return np.zeros(payload.num_rows, np.bool_)
        column = payload.column(self._op)
        known = pc.is_in(column, pa.array([*ops.present, *ops.deleted], pa.string()))
        strange = column.filter(pc.invert(known))
        if len(strange):
            raise DataError(
                f"'{ops.column}' is {strange[0].as_py()!r}, which says neither that a row is there "
                f"({', '.join(ops.present)}) nor that it is deleted ({', '.join(ops.deleted)}).",
                remedy="Name its values: insert=, update=, delete=; or leave such rows out with where.",
            )
        found: Mask = np.asarray(pc.is_in(column, pa.array(ops.deleted, pa.string())))
        return found

    def _changed(self, keys: I64) -> Page:
        """The change of what these keys show."""
        owner, row = self._chains.gather(keys)
        live = self.rows.alive[row]
        owner, row = owner[live], row[live]
        old, new = self.rows.get("end")[row], self._ends(owner, row)
        was = np.flatnonzero((old != new) & (old != HIDDEN))
        now = np.flatnonzero((old != new) & (new != HIDDEN))
        some = np.concatenate([row[was], row[now]])
        weight = np.concatenate([np.full(len(was), -1), np.ones(len(now), np.int64)])
        payload = self.rows.payload.take(some).select(self._shown)
        page = net_page(payload, self.rows.get("le")[some], np.concatenate([old[was], new[now]]), weight)
        self.rows.get("end")[row] = new
        changed = row[old != new]
        self.rows.touch(changed)
        self.rows.keep(row, self._needed(row))
        return page

    def _ends(self, owner: I64, row: I64) -> I64:
        """Where each row ends by all of its key's; hidden where it is not shown at all."""
        le = self.rows.get("le")[row]
        there = np.flatnonzero(self.rows.get("n")[row] > 0)
        order = there[np.lexsort((le[there], owner[there]))]
        order = self._settle_ties(order, owner, le, row)
        ends = np.full(len(row), HIDDEN)
        follows = np.append(owner[order][1:] == owner[order][:-1], False)
        after = np.append(le[order][1:], INFINITY)
        until = np.where(follows, after, INFINITY)
        wins = (until > le[order]) & (self.rows.get("gone")[row[order]] == 0)
        ends[order[wins]] = until[wins]
        return ends

    def _settle_ties(self, order: I64, owner: I64, le: I64, row: I64) -> I64:
        """The same order; rows of a key that start together by what counts among them, the last one last."""
        same = (owner[order][1:] == owner[order][:-1]) & (le[order][1:] == le[order][:-1])
        tied = np.append(same, False) | np.append(False, same)
        if not same.any():
            return order
        place = order[tied]
        payload = self.rows.payload.take(row[place])
        names = [*self.node.order, *payload.schema.names]
        values = [ranks(payload.column(name)) for name in names]
        again = np.lexsort((*reversed(values), le[place], owner[place]))
        order = order.copy()
        order[tied] = place[again]
        return order

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        live = np.flatnonzero(self.rows.alive)
        bound = self._bound(live)
        le, end = self.rows.get("le")[live], self.rows.get("end")[live]
        self.rows.kill(live[((le < bound) & (end < bound)) | (bound == INFINITY)])
        if self.rows.wasteful:
            self.rebuild()
        return definite(self.node.carry(port, pattern))

    def _bound(self, rows: I64) -> I64:
        """The time before which the key of each row is settled."""
        known = self.promises[0]
        if known.size == 0:
            return np.full(len(rows), known.cti)
        batch = self.rows.payload.take(rows)
        columns = {name: batch.column(at) for name, at in zip(self.node.group, self._group, strict=True)}
        return np.broadcast_to(np.asarray(known.effective_cti(columns=columns)), len(rows))

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back what is shown of the keys that match, unless one has begun in the settled past."""
        found = self._matching(pattern)
        end, le = self.rows.get("end")[found], self.rows.get("le")[found]
        shown = end != HIDDEN
        if (shown & (le < self._bound(found))).any():
            return None
        payload = self.rows.payload.take(found[shown]).select(self._shown)
        page = Page.of(payload, le=le[shown], re=end[shown], re_new=le[shown])
        until = int(end[shown].max(initial=MIN_TIME))
        self.rows.kill(found)
        self.rebuild()
        return GivenUp([page], until, len(found))

    def _matching(self, pattern: Pattern) -> I64:
        live = np.flatnonzero(self.rows.alive)
        batch = self.rows.payload.take(live)
        return live[pattern.matches(dict(zip(batch.schema.names, batch.columns, strict=True)))]

    def states(self) -> dict[str, RowState]:
        return {"rows": self.rows}

    def rebuild(self) -> None:
        if self.rows.live < self.rows.size:
            self.rows.compact()
        self._keys, self._values, self._chains = KeyTable(), KeyTable(), Chains()
        if self.rows.size:
            number, _ = self._keys.encode(*self._key_ids(self.rows.payload.all()))
            self._chains.add(number)
            ids = (self.rows.get("h1"), self.rows.get("h2"))
            self._values.encode(*mixed(ids, self.rows.get("le")))


__all__ = ["Latest", "Ops"]
