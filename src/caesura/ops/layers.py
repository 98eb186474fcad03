"""`distinct` and `difference`: at every instant a payload has so many copies, written as maximal intervals.

     1   5 | x | +                       1   9 | x | +      distinct: present where it is at all
     3   9 | x | +      distinct   ->

     1   9 | x | +
     3   5 | x | + (right)  difference -> 1 3 | x | +   and   5 9 | x | +

With m(t) copies at t, layer k is where m(t) >= k, cut into maximal intervals: `distinct` has
m = min(1, n), the bag difference m = max(0, left - right), the set difference m = 1 where left > 0
and right = 0.

Law: before the CTI nothing changes, so rows and intervals that end before it go. Layers are stacked:
those that are up just before the CTI are the sent intervals that span it, and laying goes on from
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.delta import Deltas, deltas, net_page
from caesura.events.identity import plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, each_once
from caesura.ops.union import Union
from caesura.plan import (
    AlignedOperator,
    FeedbackRule,
    GivenUp,
    Holding,
    Need,
    Node,
    Operator,
    Properties,
    Translation,
)
from caesura.plan.lifetimes import Whole
from caesura.plan.roles import WHOLE, OnLoop, PunctuatedBy
from caesura.punctuation import INFINITY, MIN_TIME, Pattern

Count = Literal["distinct", "bag", "set"]
MODES: dict[Count, int] = {"distinct": 0, "bag": 1, "set": 2}


@dataclass(frozen=True, eq=False, kw_only=True)
class Layers(Node):
    """Counts copies per payload and instant, and writes the count as maximal intervals."""

    count: Count

    partitioning = "key"
    forward = True
    joins_intervals = True
    punctuated_by: ClassVar[PunctuatedBy] = "slowest"

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "distinct" if self.count == "distinct" else "difference"

    def output_schema(self) -> pa.Schema:
        if not self.inputs[0].schema.names:
            raise PlanError(
                "a stream without columns has nothing to compare.", remedy="Select a column first."
            )
        for other in self.inputs[1:]:
            Union._check(self, self.inputs[0], other, 2)  # type: ignore[arg-type]
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        return Properties(max_duration=inputs[0].max_duration if self.count == "bag" else None)

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return None if pattern.time_bound is None else pattern

    def keys(self, port: int) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def holds(self) -> tuple[Holding, ...]:
        needs = tuple(Need(port, self.keys(port)) for port in range(len(self.inputs)))
        words = ("left rows", "right rows") if len(self.inputs) > 1 else ("rows",)
        return tuple(Holding(what, port, needs, each=2) for port, what in enumerate(words))

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """A payload's intervals are given up whole: a row more or less may join or part them."""
        names = self.schema.names
        ports = tuple(Translation.of(names, child.properties, Whole(1)) for child in self.inputs)
        return (FeedbackRule(ports, "groups", purges=True),)

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        counted = once and self.count == "distinct"
        return OnLoop(monotone=1 not in ports, no_depth="" if counted else WHOLE)

    def operator(self) -> Operator:
        return LayersOperator(self)

    def describe(self) -> str:
        return "" if self.count == "distinct" else self.count


@kernel
def lay(
    group: I64,
    time: I64,
    left: I64,
    right: I64,
    mode: int,
    base: I64,
    stack_from: I64,
    stack: I64,
    o_group: I64,
    o_le: I64,
    o_re: I64,
) -> int:
    """The layers' intervals, from end points sorted by (group, time) with each count's change there.

    ``base`` holds the left and right counts of each group before its first end point, and
    ``stack[stack_from[g] : stack_from[g + 1]]`` the starts of its layers that are up then, lowest
    first. A layer goes up when the count rises to it and is written when the count falls below.
    """
    out = 0
    i = 0
    n = len(group)
    starts = np.empty(len(stack) + len(o_group) + 1, np.int64)
    for g in range(len(base)):
        height = 0
        for k in range(stack_from[g], stack_from[g + 1]):
            starts[height] = stack[k]
            height += 1
        a = base[g, 0]
        b = base[g, 1]
        while i < n and group[i] == g:
            t = time[i]
            while i < n and group[i] == g and time[i] == t:
                a += left[i]
                b += right[i]
                i += 1
            m = 0
            if mode == 1:
                m = max(0, a - b)
            elif a > 0 and (mode == 0 or b <= 0):
                m = 1
            while height < m:
                starts[height] = t
                height += 1
            while height > m:
                height -= 1
                o_group[out] = g
                o_le[out] = starts[height]
                o_re[out] = t
                out += 1
    return out


class LayersOperator(AlignedOperator):
    """Live rows of both sides and the intervals sent; payloads that a page touches are laid anew."""

    def __init__(self, node: Layers) -> None:
        super().__init__(len(node.inputs))
        self.node = node
        self._mode = MODES[node.count]
        own = {"h1": np.uint64, "h2": np.uint64, "le": np.int64, "re": np.int64}
        self.rows = RowState({**own, "n": np.int64, "side": np.int64}, node.schema)
        self.sent = RowState(own, node.schema)
        self._index()

    def _index(self) -> None:
        """Payloads and rows to numbers, and their chains; from the live rows alone."""
        for state in (self.rows, self.sent):
            if state.live < state.size:
                state.compact()
        self._payloads, self._values = KeyTable(), KeyTable()
        self._chains = [Chains(), Chains()]
        for state, chains in zip((self.rows, self.sent), self._chains, strict=True):
            number, _ = self._payloads.encode(state.get("h1"), state.get("h2"))
            chains.add(number)
        rows = self.rows
        fields = [rows.get(f) for f in ("le", "re", "side")]
        self._values.encode(*mixed((rows.get("h1"), rows.get("h2")), *fields))

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        plain = plain_zeros(page.payload)
        page = page if plain is page.payload else page.with_payload(plain)
        h1, h2 = page.ids(self.secret)
        number, _ = self._payloads.encode(h1, h2)
        touched, example = np.unique(number, return_index=True)
        self._apply(port, deltas(page), page, number)
        bound = self._bound(page.payload.take(pa.array(example)))
        group, le, re = self._lay(touched, bound)
        return [self._send(touched, page, example, group, le, re)]

    def _apply(self, port: int, change: Deltas, page: Page, number: I64) -> None:
        side = np.full(len(change.rows), port, np.int64)
        h1, h2 = (half[change.rows] for half in page.ids(self.secret))
        at, fresh = self._values.encode(*mixed((h1, h2), change.le, change.re, side))
        if len(fresh):
            fields = {
                "h1": h1[fresh],
                "h2": h2[fresh],
                "le": change.le[fresh],
                "re": change.re[fresh],
                "n": np.zeros(len(fresh), np.int64),
                "side": side[fresh],
            }
            self.rows.append(fields, page.payload.take(pa.array(change.rows[fresh])))
            self._chains[0].add(number[change.rows[fresh]])
        add_weights(at, change.weight, self.rows.get("n"))
        some = each_once(at)
        self.rows.touch(some)
        self.rows.keep(some, self.rows.get("n")[some] != 0)

    def _lay(self, touched: I64, bound: I64) -> tuple[I64, I64, I64]:
        """(place in touched, LE, RE) of every interval of these payloads that ends at the bound or later."""
        owner, row = self._chains[0].gather(touched)
        n, side = self.rows.get("n")[row], self.rows.get("side")[row]
        keep = self.rows.alive[row]
        owner, row, n, side = owner[keep], row[keep], n[keep], side[keep]
        le, re = self.rows.get("le")[row], self.rows.get("re")[row]
        before = le < bound[owner]
        base = np.zeros((len(touched), 2), np.int64)
        np.add.at(base, (owner[before], side[before]), n[before])
        group = np.concatenate([owner[~before], owner])
        time = np.concatenate([le[~before], re])
        count = np.concatenate([n[~before], -n])
        sides = np.concatenate([side[~before], side])
        order = np.lexsort((time, group))
        size = int(np.abs(n).sum()) + len(order) + 1
        stack_from, stack = self._stack(touched, bound)
        o_group, o_le, o_re = (np.empty(size + len(stack), np.int64) for _ in range(3))
        left, right = np.where(sides == 0, count, 0)[order], np.where(sides == 1, count, 0)[order]
        parts = (base, stack_from, stack, o_group, o_le, o_re)
        made = lay(group[order], time[order], left, right, self._mode, *parts)
        return o_group[:made], o_le[:made], o_re[:made]

    def _stack(self, touched: I64, bound: I64) -> tuple[I64, I64]:
        """The starts of the layers that are up just before each payload's bound, lowest first."""
        owner, row = self._chains[1].gather(touched)
        up = self.sent.alive[row] & (self.sent.get("le")[row] < bound[owner])
        owner, start = owner[up], self.sent.get("le")[row[up]]
        order = np.lexsort((start, owner))
        ends = np.searchsorted(owner[order], np.arange(len(touched) + 1))
        return ends, start[order]

    def _send(self, touched: I64, page: Page, example: I64, group: I64, le: I64, re: I64) -> Page:
        """The change from what was sent for these payloads to these intervals."""
        _, row = self._chains[1].gather(touched)
        row = row[self.sent.alive[row]]
        source = example[group]
        fresh = page.payload.take(pa.array(source))
        old = self.sent.payload.take(row)
        weight = np.concatenate([np.full(len(row), -1, np.int64), np.ones(len(le), np.int64)])
        change = net_page(
            pa.concat_batches([old, fresh]),
            np.concatenate([self.sent.get("le")[row], le]),
            np.concatenate([self.sent.get("re")[row], re]),
            weight,
        )
        self.sent.kill(row)
        h1, h2 = page.ids(self.secret)
        fields = {"h1": h1[source], "h2": h2[source], "le": le, "re": re}
        self.sent.append(fields, fresh)
        self._chains[1].add(touched[group])
        if any(state.size > 2 * state.live + 4096 for state in (self.rows, self.sent)):
            self._index()
        return change

    def _bound(self, payload: pa.RecordBatch) -> I64:
        """The time before which each payload is settled."""
        bound = np.asarray(self.alignment.held.effective_cti(payload))
        return np.broadcast_to(bound, payload.num_rows)

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        items = self.aligned(port, self.node.carry(port, pattern))
        if items:
            self.counters.sweeps += 1
            self._purge()
        behind = min(range(len(self.promises)), key=lambda p: self.promises[p].cti)
        self.counters.held_by = "" if items else f"input {behind + 1}"
        return items

    def _purge(self) -> None:
        """Lets go of rows and intervals that end before the bound."""
        for state in (self.rows, self.sent):
            live = np.flatnonzero(state.alive)
            bound = self._purge_bound(state, live)
            dropped = (state.get("re")[live] < bound) | (bound == INFINITY)
            state.kill(live[dropped])
        if self.rows.wasteful or self.sent.wasteful:
            self._index()

    def _purge_bound(self, state: RowState, live: I64) -> I64:
        held = self.alignment.held
        if held.size == 0:
            return np.full(len(live), held.cti)
        return self._bound(state.payload.take(live))

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back the intervals that match, unless one begins in the settled past and goes on."""
        found = covered(self.sent, pattern)
        le = self.sent.get("le")[found]
        payload = self.sent.payload.take(found)
        if (le < self._bound(payload)).any():
            return None
        page = Page.of(payload, le=le, re=self.sent.get("re")[found], re_new=le)
        rows = covered(self.rows, pattern)
        ends = self.sent.get("re")[found], self.rows.get("re")[rows]
        until = max(int(some.max(initial=MIN_TIME)) for some in ends)
        self.sent.kill(found)
        self.rows.kill(rows)
        self._index()
        return GivenUp([page], until, len(found) + len(rows))

    def states(self) -> dict[str, RowState]:
        return {"rows": self.rows, "sent": self.sent}

    def rebuild(self) -> None:
        self._index()


def covered(state: RowState, pattern: Pattern) -> I64:
    """The live rows of a state, with fields `le` and `re`, that match a feedback pattern."""
    live = np.flatnonzero(state.alive)
    batch = state.payload.take(live)
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns |= {"LE": state.get("le")[live], "RE": state.get("re")[live]}
    return live[pattern.matches(columns)]
