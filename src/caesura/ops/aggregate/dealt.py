"""Windows over rows that were dealt to buckets whatever their keys: each then takes over those of its keys.

     rows        bucket 0: k 3, j 1      bucket 1: k 4          whichever came
     windows     bucket 0: k 3, j 1      bucket 1: k 4
     taken over  bucket 0: k 7           bucket 1: j 1          by key, before any window closes

Nothing of a row is hashed or copied to find its bucket; what changes hands is one slot for each window of
each key. Sums are exact, so that no order of adding shows (ADR 4).

Law: once taken over, every bucket has the windows that it would have, had its rows come by their keys.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
import pyarrow as pa

from caesura.events.columns import taken
from caesura.events.identity import Secret
from caesura.kernels.dividing import OTHERS, UNKNOWN, pick_known
from caesura.kernels.hashing import I64
from caesura.kernels.keys import KeyTable
from caesura.kernels.memo import Memo
from caesura.kernels.placing import AGAIN, NO_ROWS, UNFIT
from caesura.kernels.sums import each_once
from caesura.ops.aggregate.panes import PaneOperator, Panes, pane_slots
from caesura.ops.aggregate.slots import Parts
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.aggregate.tumbling_operator import TumblingOperator
from caesura.plan import Operator
from caesura.punctuation import MIN_TIME

MANY_GROUPS = 4
"""Groups are forgotten where there are so many times as many as were needed last."""
FEW = 1024
BLOCK = 1 << 18
"""So many points are placed and added before the next are."""


class DealtWindows(Protocol):
    """The windows of rows of any key, beside an operator that has those of its own keys."""

    @property
    def count(self) -> int:
        """How many slots there are to be taken over."""

    def swap(self) -> None:
        """Has the operator bring rows here, or, the second time, to its own windows again."""

    def keys(self) -> pa.RecordBatch:
        """The keys that came since this was asked last."""

    def take_over(self, other: Any, keys: I64) -> None:
        """Adds the slots of some of another's latest keys, and of those before, to the operator's own."""

    def clear(self) -> None:
        """Lets all slots go."""


class DealtSlots:
    """The same for windows that do not overlap."""

    def __init__(self, operator: TumblingOperator) -> None:
        self._operator = operator
        self._slots, self._memo = deepcopy(operator.slots), Memo()

    @property
    def count(self) -> int:
        return self._slots.rows.size

    def swap(self) -> None:
        self._slots, self._memo = self._operator.swap(self._slots, self._memo)

    def keys(self) -> pa.RecordBatch:
        return self._slots.rows.payload.take(np.arange(self.count))

    def take_over(self, other: DealtSlots, keys: I64) -> None:
        if len(keys):
            self._operator.take_over(other._slots, keys)

    def clear(self) -> None:
        self._slots.clear()
        self._memo.clear()


class Placed(NamedTuple):
    """Panes of a page whose points lie in cells."""

    group: I64
    pane: I64
    points: I64
    cells: I64


NOTHING = Placed(*[np.zeros(0, np.int64)] * 4)


class LoosePanes(Panes):
    """Panes that no window slides over: those of the last page in cells, others in slots."""

    def __init__(self, node: Tumbling, secret: Secret) -> None:
        super().__init__(node, secret)
        self._cell_slots, self._held = pane_slots(node), NOTHING
        self._room = 0
        """How many cells may have something."""
        self._asked = self.latest = 0
        """How many groups there were when their keys were asked for, the last time and before it."""

    def _hang(self, fresh: I64) -> None:
        return None

    def _place(self, plain: I64, keys: pa.RecordBatch, values: list[pa.Array], le: I64) -> I64 | None:
        self._file()
        rest = self._cell_slots.beyond_counts(values)
        while missing := self._in_blocks(plain, keys, values, le, rest):
            self._cell_slots.empty(self._room)
            if missing == UNFIT:
                self._room = 0
                return None
        self._held = Placed(*self._places.found(), self._places.used.copy())
        self._cell_slots.add_counts(self._held.cells, self._held.points, values)
        self._revive(self._held.group)
        return self._held.group

    def _file(self) -> None:
        """Moves panes that are in cells to slots."""
        if len(self._held.cells):
            self.slots.merge(self._slots_of(*self._held[:2]), self._cell_slots, self._held.cells)
            self._cell_slots.empty(self._room)
        self._held, self._room = NOTHING, 0

    def _in_blocks(
        self, plain: I64, keys: pa.RecordBatch, values: list[pa.Array], le: I64, rest: Parts
    ) -> int:
        """Places points, and adds their values while the caches have them; 0 unless all must begin again."""
        size = BLOCK if rest else len(le)
        cells = self._cells_for(min(size, len(le)) if rest else 0)
        for start in range(0, len(le), size):
            some = slice(start, start + size)
            own = cells[: len(le) - start]
            if missing := self._placed_at(plain[some], le[some], own, more=start > 0):
                return self._learned(missing, start, size, plain, keys, le)
            self._room = self._places.room
            self._cell_slots.make_room(self._room)
            self._cell_slots.add_each(rest, own, [value.slice(start, size) for value in values])
        return 0

    def _learned(self, missing: int, start: int, size: int, plain: I64, keys: pa.RecordBatch, le: I64) -> int:
        """Learns the groups of a block that has unknown keys, and of all that the rest of the page has."""
        if missing > 0:
            self._learn(plain[start:], keys.slice(start))
            rest = slice(start + size, None)
            missing = self._placed_at(plain[rest], le[rest], NO_ROWS)
            if missing > 0:
                self._learn(plain[rest], keys.slice(start + size))
            elif missing == 0:
                self._places.found()  # they are placed again
        return missing or AGAIN

    @property
    def count(self) -> int:
        """How many panes there are."""
        return len(self._held.cells) + self.slots.rows.size

    def keys(self) -> pa.RecordBatch:
        """The keys of the groups that came since this was asked last."""
        self.latest, self._asked = self._asked, self.groups.size
        return self.groups.payload.take(np.arange(self.latest, self._asked))

    def give(self, own: OwnGroups, to: Panes) -> None:
        """Adds the panes of some groups to those elsewhere."""
        if len(self._held.cells):
            rows, group = own.of(self._held.group)
            pane, cells = taken(self._held.pane, rows), taken(self._held.cells, rows)
            to.take_over(group, pane, self._cell_slots, cells)
        if self.slots.rows.size:
            rows, group = own.of(self.slots.rows.get("group"))
            to.take_over(group, taken(self.slots.rows.get("w"), rows), self.slots, rows)

    def clear(self) -> None:
        """Lets all panes go; groups stay, since their keys come again, unless most did not."""
        many = self.groups.size > FEW + MANY_GROUPS * self.count
        self._cell_slots.empty(self._room)
        self._held, self._room = NOTHING, 0
        if self.slots.rows.size:
            self.slots.clear()
            self._last[:, 0] = MIN_TIME
        if many:
            self.groups.compact(np.zeros(0, np.int64))
            self._asked = 0
            self.numbering += 1
            self._table = KeyTable()
            self._memo.clear()
            self._places.forget()
            self._last, self._ends = self._last[:0], self._ends[:0]


class OwnGroups:
    """The groups of one bucket by those of another's loose panes, found once for each."""

    def __init__(self, own: Panes, other: LoosePanes) -> None:
        self._own, self._other = own, other
        self._number: I64 = np.zeros(0, np.int64)
        self._numbering = 0, 0

    def learn(self, keys: I64) -> None:
        """Takes some of the other's latest keys, which are for this bucket."""
        before, now = self._numbering, (self._own.numbering, self._other.numbering)
        if before[1] != now[1]:
            self._number = self._number[:0]
        elif before[0] != now[0]:
            self._number = np.where(self._number == OTHERS, OTHERS, UNKNOWN)
        self._numbering = now
        more = np.full(self._other.groups.size - len(self._number), OTHERS)
        self._number = np.concatenate([self._number, more]) if len(more) else self._number
        self._number[self._other.latest + keys] = UNKNOWN

    def of(self, group: I64) -> tuple[I64, I64]:
        """Of some of the other's groups those that are here, by row, and their numbers here."""
        room, found = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
        while True:
            count = pick_known(group, self._number, room, found)
            rows, numbers = room[:count], found[:count]
            unknown = group[rows[numbers == UNKNOWN]]
            if len(unknown) == 0:
                return rows, numbers
            some = each_once(unknown)
            self._number[some] = self._own.groups_like(self._other.groups, some)


class DealtPanes:
    """The same for windows that overlap."""

    def __init__(self, operator: PaneOperator) -> None:
        self._operator = operator
        self._loose = LoosePanes(operator.node, operator.secret)
        self._other: Panes = self._loose
        """Those that the operator does not have now."""
        self._groups: dict[DealtPanes, OwnGroups] = {}

    @property
    def count(self) -> int:
        return self._loose.count

    def swap(self) -> None:
        self._other, self._operator.panes = self._operator.panes, self._other

    def keys(self) -> pa.RecordBatch:
        return self._loose.keys()

    def take_over(self, other: DealtPanes, keys: I64) -> None:
        own = self._groups.get(other) or OwnGroups(self._operator.panes, other._loose)
        self._groups[other] = own
        own.learn(keys)
        other._loose.give(own, self._operator.panes)

    def clear(self) -> None:
        self._loose.clear()


def dealt_windows(operator: Operator) -> DealtWindows | None:
    """Where an operator can put the windows of rows of any key; None where it cannot."""
    if not _merges(operator):
        return None
    return DealtPanes(operator) if isinstance(operator, PaneOperator) else DealtSlots(operator)


def _merges(operator: Operator) -> TypeGuard[TumblingOperator]:
    """Whether an operator is one of those whose windows can be put together."""
    if type(operator) is PaneOperator:
        return operator.panes.slots.mergeable
    return type(operator) is TumblingOperator and operator.slots.mergeable


def takes_dealt(node: Tumbling) -> bool:
    """Whether rows may come in any bucket: none ends late or goes, and what they add up to merges."""
    known = node.inputs[0].properties
    bounded = known.points or known.max_duration is not None
    if not (node.group and known.insert_only and bounded) or node.scattered or node.thrifty:
        return False
    return _merges(node.operator())
