"""Rows of groups in order of their starts, and the results that were sent of them.

What a step computes from the rows of a group in order is a result of one of its rows, and leaves with the
lifetime of that row. A page changes some rows; the step says which results are computed again, and equal ones
cancel. A result that is settled is not computed again: where the end of its row changes, results stay in the
order of rows that are alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.delta import deltas, net_page
from caesura.events.identity import identity, plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.events.rows import SMALL, RowState
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, U64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights
from caesura.ops.ordered import Ordered
from caesura.ops.top.order import ranks
from caesura.plan import GivenUp, Node, Operator, definite
from caesura.punctuation import MIN_TIME, TIME, Pattern


def distinct(numbers: I64) -> I64:
    """Numbers once each, in order; much faster than `numpy.unique`, which hashes them."""
    found = np.sort(numbers)
    new = np.ones(len(found), np.bool_)
    new[1:] = found[1:] != found[:-1]
    return found[new]


def _follow(group: I64, time: I64) -> bool:
    """Whether times of a group follow each other, and groups too."""
    same = group[1:] == group[:-1]
    return bool(np.where(same, time[1:] > time[:-1], group[1:] > group[:-1]).all())


class SentResults(NamedTuple):
    """Results that go (numbers of what was sent), and those that take their place."""

    old: I64
    fields: dict[str, I64]
    """Of each new result its row, its place among rows that are alike, and what else is kept of it."""
    results: pa.RecordBatch


class RowsInOrder(Operator):
    """Rows that are settled not yet or that others read, and what was sent of them."""

    holds_back = False
    """Whether punctuation on time waits for results that may still change."""

    def __init__(
        self,
        node: Node,
        group: tuple[str, ...],
        passed: Iterable[str],
        fields: Iterable[str],
        ties: Iterable[str],
    ) -> None:
        super().__init__()
        self.node = node
        schema = node.inputs[0].schema
        self._names = group
        self._group, self._passed, self._ties = (
            [schema.get_field_index(name) for name in names] for names in (group, passed, ties)
        )
        """The columns of groups, those that leave with results, and the order of rows that start together."""
        own = {"p1": np.uint64, "p2": np.uint64, "le": np.int64, "re": np.int64, "n": np.int64}
        self.rows = RowState(own, schema)
        added = pa.schema(list(node.schema)[len(self._passed) :])
        self.sent = RowState(dict.fromkeys(("row", "place", *fields), np.int64), added)
        """Results by row, and their places among those of rows that are alike."""
        self._promised = MIN_TIME

    # -- what a step says ----------------------------------------------------------------------------------

    @property
    def settled(self) -> I64:
        """By group, the start before which its results are settled."""
        raise NotImplementedError

    def _begin_groups(self) -> None:
        """Groups are numbered anew."""

    def _open_groups(self, payload: pa.RecordBatch, slot: I64, fresh: I64) -> None:
        """Takes groups that are new, with a row of each; ``slot`` has those of all rows that came."""

    def _computed(self, changed: I64) -> SentResults:
        """What is computed again because of rows that came or went and are not settled."""
        raise NotImplementedError

    def _corrected(self, changed: I64, settled: Mask) -> I64:
        """The changed rows that have settled results."""
        return changed[settled]

    def _settled_results(self, old: I64) -> Mask:
        """Which results of such rows are settled."""
        return np.ones(len(old), np.bool_)

    def _purge(self) -> int:
        """Lets go of what is settled and that nothing reads; gives the least start that is not settled."""
        raise NotImplementedError

    # -- rows ------------------------------------------------------------------------------------------------

    def _index(self) -> None:
        """Groups, identities and order, from what is live alone."""
        if self.rows.live < self.rows.size:
            keep = self.rows.compact()
            new = np.full(int(keep.max(initial=-1)) + 1, -1, np.int64)
            new[keep] = np.arange(len(keep))
            live = np.flatnonzero(self.sent.alive)
            self.sent.get("row")[live] = new[self.sent.get("row")[live]]
            self.sent.touch(live)
        if self.sent.live < self.sent.size:
            self.sent.compact()
        self._groups, self._known, self._order = KeyTable(), KeyTable(), Ordered()
        self._slot = Grown(np.int64)
        """The group of each row."""
        self._begin_groups()
        self._links = Chains()
        self._links.add(self.sent.get("row"))
        if self.rows.size:
            fields = (self.rows.get(name) for name in ("p1", "p2", "le", "re"))
            p1, p2, le, re = fields
            self._known.encode(*mixed((p1, p2), le, re))
            self._put(self.rows.payload.all(), le, 0)

    def _put(self, payload: pa.RecordBatch, le: I64, first: int) -> None:
        """Takes new rows into their groups."""
        slot, fresh = self._groups.encode(*self._group_ids(payload))
        self._open_groups(take_rows(payload, fresh), slot, fresh)
        self._slot.extend(slot)
        self._order.add(slot, le, np.arange(first, first + len(le)))

    def _group_ids(self, payload: pa.RecordBatch) -> tuple[U64, U64]:
        columns = plain_zeros(payload.select(self._group)).columns
        return identity(columns, payload.num_rows, self.secret)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        plain = plain_zeros(page.payload)
        page = page if plain is page.payload else page.with_payload(plain)
        rows = self._counted(page)
        self.rows.keep(rows, self.rows.alive[rows] | (self.rows.get("n")[rows] > 0))
        settled = self.rows.get("le")[rows] < self.settled[self._slot.view[rows]]
        change = self._changed(
            self._computed(rows[~settled]), self._reordered(self._corrected(rows, settled))
        )
        self.rows.keep(rows, self.rows.get("n")[rows] > 0)
        if any(state.size > 2 * state.live + SMALL for state in (self.rows, self.sent)):
            self._index()
        return [change]

    def _counted(self, page: Page) -> I64:
        """Counts rows that come and go; gives their numbers."""
        change = deltas(page)
        p1, p2 = (half[change.rows] for half in page.ids(self.secret))
        at, fresh = self._known.encode(*mixed((p1, p2), change.le, change.re))
        if len(fresh):
            zeros = np.zeros(len(fresh), np.int64)
            le, re = change.le[fresh], change.re[fresh]
            payload = take_rows(page.payload, change.rows[fresh])
            first = self.rows.append(
                {"p1": p1[fresh], "p2": p2[fresh], "le": le, "re": re, "n": zeros}, payload
            )
            self._put(payload, le, first)
        add_weights(at, change.weight, self.rows.get("n"))
        rows = distinct(at)
        self.rows.touch(rows)
        return rows

    def _sorted(self, owner: I64, rows: I64, inside: Mask) -> tuple[I64, I64, Mask]:
        """Rows by group, start, values, then end; copies written out."""
        le, re, n = (self.rows.get(name)[rows] for name in ("le", "re", "n"))
        if _follow(owner, le) and (n == 1).all():
            return owner, rows, inside
        order = np.lexsort((re, le, owner))
        same = (owner[order][1:] == owner[order][:-1]) & (le[order][1:] == le[order][:-1])
        tied = np.append(same, False) | np.append(False, same) if len(order) else np.zeros(0, np.bool_)
        if tied.any():
            some = order[tied]
            payload = self.rows.payload.take(rows[some])
            values = [ranks(payload.column(at)) for at in self._ties]
            again = np.lexsort((re[some], *reversed(values), le[some], owner[some]))
            order[tied] = some[again]
        order = np.repeat(order, n[order])
        return owner[order], rows[order], inside[order]

    def _family(self, rows: I64) -> I64:
        """A number that rows share which start together and are alike, and end at different times."""
        p1, p2, le = (self.rows.get(name)[rows] for name in ("p1", "p2", "le"))
        return KeyTable().encode(*mixed((p1, p2), le))[0]

    def _places(self, rows: I64) -> I64:
        """The place of each row among those of its family, which follow each other."""
        family = self._family(rows)
        new = np.append(True, family[1:] != family[:-1]) if len(family) else np.zeros(0, np.bool_)
        starts = np.flatnonzero(new)
        return np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))

    def _reordered(self, changed: I64) -> SentResults:
        """Results of rows that are settled and whose ends changed: they stay in their order."""
        if len(changed) == 0:
            return self._none()
        slot, le = self._slot.view[changed], self.rows.get("le")[changed]
        key = np.unique(np.stack([slot, le]), axis=1)
        _, found = self._order.between(key[0], key[1], key[1], self.rows.alive)
        both = np.concatenate([changed, found])
        family = self._family(both)
        looked = found[np.isin(family[len(changed) :], family[: len(changed)])]
        family = self._family(looked)
        owner, old = self._links.gather(looked)
        live = self.sent.alive[old] & self._settled_results(old)
        owner, old = owner[live], old[live]
        order = np.lexsort((self.rows.get("re")[looked], family))
        count = np.maximum(self.rows.get("n")[looked[order]], 0)
        made, of_family = np.repeat(looked[order], count), np.repeat(family[order], count)
        place = self.sent.get("place")[old]
        rows = made[np.searchsorted(of_family, family[owner]) + place]
        fields = {name: self.sent.get(name)[old] for name in self.sent.dtypes if name != "row"}
        return SentResults(old, {"row": rows, **fields}, self.sent.payload.take(old))

    def _none(self) -> SentResults:
        """No results."""
        none = np.zeros(0, np.int64)
        fields = dict.fromkeys(self.sent.dtypes, none)
        return SentResults(none, fields, pa.RecordBatch.from_pylist([], self.sent.schema))

    def _changed(self, *parts: SentResults) -> Page:
        """The change from what was sent of rows to new results, which are kept."""
        old = np.concatenate([part.old for part in parts])
        fields = {name: np.concatenate([part.fields[name] for part in parts]) for name in self.sent.dtypes}
        results = pa.concat_batches([part.results for part in parts])
        rows = np.concatenate([self.sent.get("row")[old], fields["row"]])
        payload = self._shown(rows, pa.concat_batches([self.sent.payload.take(old), results]))
        weight = np.ones(len(rows), np.int64)
        weight[: len(old)] = -1
        page = net_page(payload, self.rows.get("le")[rows], self.rows.get("re")[rows], weight)
        self._keep_sent(old, fields, results)
        return page

    def _keep_sent(self, old: I64, fields: dict[str, I64], results: pa.RecordBatch) -> None:
        """Puts new results in the place of old ones."""
        self.sent.kill(old)
        self.sent.append(fields, results)
        self._links.add(fields["row"])

    def _shown(self, rows: I64, results: pa.RecordBatch) -> pa.RecordBatch:
        """What leaves: columns of rows, then what was computed of them."""
        mine = self.rows.payload.take(rows)
        columns = [*(mine.column(at) for at in self._passed), *results.columns]
        return pa.RecordBatch.from_arrays(columns, schema=self.node.schema)

    def _live(self, rows: I64) -> I64:
        """The results that were sent of rows."""
        _, old = self._links.gather(rows)
        return old[self.sent.alive[old]]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        waiting = self._purge()
        if not self.holds_back or TIME not in pattern:
            return definite(self.node.carry(port, pattern))
        until = min(self.promises[0].cti, waiting)
        items = definite(Pattern.before(until)) if until > self._promised else []
        self._promised = max(self._promised, until)
        return items

    def _bound(self, rows: I64) -> I64:
        known = self.promises[0]
        batch = self.rows.payload.take(rows)
        columns = {name: batch.column(at) for name, at in zip(self._names, self._group, strict=True)}
        return np.array(np.broadcast_to(np.asarray(known.effective_cti(columns=columns)), len(rows)))

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back the groups that match, unless a result of one is settled."""
        live = np.flatnonzero(self.rows.alive)
        batch = self.rows.payload.take(live)
        columns = {name: batch.column(at) for name, at in zip(self._names, self._group, strict=True)}
        rows = live[pattern.matches({**columns, "LE": np.zeros(len(live), np.int64)})]
        if (self.rows.get("le")[rows] < self._bound(rows)).any():
            return None
        gone = len(rows) + self.sent.live
        page = self._changed(self._none()._replace(old=self._live(rows)))
        until = int(self.rows.get("re")[rows].max(initial=MIN_TIME))
        self.rows.get("n")[rows] = 0
        self.rows.kill(rows)
        self._index()
        return GivenUp([page], until, gone - self.sent.live)

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "promised": self._promised}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._promised = meta["promised"]

    def states(self) -> dict[str, RowState]:
        return {"rows": self.rows, "sent": self.sent}

    def rebuild(self) -> None:
        self._index()
