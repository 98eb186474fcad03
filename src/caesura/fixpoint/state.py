"""What a loop that keeps one row per key remembers: derivations, rows of the loop, rows given out.

A derivation is a row that came, with the depth of what it was made of and how often it came. A row
of the loop is what goes around, with its own depth. Both are numbered by key, and found by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.delta import deltas, net_page
from caesura.events.identity import LOCAL, identity
from caesura.events.nested import validity
from caesura.events.order import ranks
from caesura.events.page import Page, take_rows
from caesura.events.rows import RowState
from caesura.fixpoint.kernels import furthest, lay_best
from caesura.fixpoint.node import RANK, Keep
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, U64, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights
from caesura.punctuation import INFINITY, Pattern

WORST = np.iinfo(np.int64).max


class LoopState:
    """Three tables of rows and their indexes."""

    def __init__(self, schema: pa.Schema, keep: Keep) -> None:
        self.schema = schema
        self.keep = keep
        own = {"le": np.int64, "re": np.int64, "key": np.int64, "row": np.int64}
        self.came = RowState({**own, "depth": np.int64, "value": np.int64, "n": np.int64}, schema)
        self.loop = RowState({**own, "depth": np.int64}, schema)
        self.sent = RowState(own, schema)
        self._key_places = [schema.get_field_index(name) for name in keep.per] if keep.value else []
        self._further = keep.further(schema)
        """They decide between rows of one key and value, in their order; never arrival, never depth."""
        self.index()

    def states(self) -> dict[str, RowState]:
        return {"came": self.came, "loop": self.loop, "sent": self.sent}

    def index(self) -> None:
        """Numbers everything anew, from the live rows alone."""
        self._keys, self._rows, self._values = KeyTable(), KeyTable(), KeyTable()
        self.chains = {}
        for name, state in self.states().items():
            if state.live < state.size:
                state.compact()
            chains = self.chains[name] = Chains()
            if state.size:
                key, row, ids = self._number(state.payload.all())
                state.get("key")[:], state.get("row")[:] = key, row
                state.touch(np.arange(state.size))
                chains.add(key)
                if state is self.came:
                    self._values.encode(*mixed(ids, *(state.get(f) for f in ("le", "re", "depth"))))

    def _number(self, payload: pa.RecordBatch) -> tuple[I64, I64, tuple[U64, U64]]:
        """The number of each row's key and of its payload, and the payload's identity."""
        ids = identity(payload.columns, payload.num_rows, LOCAL)
        row, _ = self._rows.encode(*ids)
        if not self.keep.value:
            return row, row, ids
        columns = [payload.column(i) for i in self._key_places]
        key, _ = self._keys.encode(*identity(columns, payload.num_rows, LOCAL))
        return key, row, ids

    def take(self, page: Page, depth: I64) -> I64:
        """Counts derivations that come and go; gives the number of each row's key.

        With further columns a row without a value is none: no sum makes it worse than what it is made of.
        """
        if self._further and page.payload.column(self.keep.value).null_count:
            valued = np.flatnonzero(validity(page.payload.column(self.keep.value)))
            page, depth = page.take(valued), depth[valued]
        key, row, ids = self._number(page.payload)
        change = deltas(page)
        rows, le, re = change.rows, change.le, change.re
        mine = ids[0][rows], ids[1][rows]
        at, fresh = self._values.encode(*mixed(mine, le, re, depth[rows]))
        if len(fresh):
            some = rows[fresh]
            payload = take_rows(page.payload, some)
            fields = {"le": le[fresh], "re": re[fresh], "key": key[some], "row": row[some]}
            fields |= {"depth": depth[some], "n": np.zeros(len(some), np.int64)}
            self.came.append({**fields, "value": self._worth(payload)}, payload)
            self.chains["came"].add(key[some])
        add_weights(at, change.weight, self.came.get("n"))
        some = np.unique(at)
        self.came.touch(some)
        self.came.keep(some, self.came.get("n")[some] != 0)
        return key

    def _worth(self, payload: pa.RecordBatch) -> I64:
        """Values as whole numbers, the best least; null is worst."""
        if not self.keep.value:
            return np.zeros(payload.num_rows, np.int64)
        column = payload.column(self.keep.value)
        order = _ordered(column)
        order = ~order if self.keep.best == "greatest" else order
        valid = validity(column)
        return np.where(valid, order, WORST) if len(valid) else order

    def advance(self, keys: I64, settled: int, *, adding: bool) -> tuple[Page | None, bool, I64]:
        """What must change in the loop for these keys: (change, whether rows were lost, keys changed).

        The loop's rows are changed here; the page, with depths as its last column, is to go around.
        """
        c_own, c_at = self._of("came", keys)
        order = np.lexsort(
            (self.came.get("depth")[c_at], *self._ties(c_at), self.came.get("value")[c_at], c_own)
        )
        c_own, c_at = c_own[order], c_at[order]
        s_own, s_at = self._of("loop", keys)
        order = np.lexsort((self.loop.get("le")[s_at], s_own))
        s_own, s_at = s_own[order], s_at[order]
        every = np.arange(len(keys) + 1)
        parts = [np.searchsorted(c_own, every)]
        parts += [self.came.get(f)[c_at] for f in ("row", "depth", "le", "re")]
        parts += [np.searchsorted(s_own, every)]
        parts += [self.loop.get(f)[s_at] for f in ("row", "depth", "le", "re")]
        room = 4 * (len(c_at) + len(s_at)) + 4
        outs = [np.empty(room, np.int64) for _ in range(5)]
        made, lost = lay_best(*parts, np.full(len(keys), settled), adding, *outs)  # type: ignore[arg-type, call-arg]
        group, source, depth, le, re = (o[:made] for o in outs)
        changed = self._differing(len(keys), s_own, s_at, group, source, c_at, depth, le, re)
        if not changed.any():
            return None, bool(lost), keys[:0]
        old = s_at[changed[s_own]]
        new = changed[group]
        page, fields = self._replace(old, source[new], c_at, s_at, depth[new], le[new], re[new])
        self.loop.kill(old)
        self.loop.append(*fields)
        self.chains["loop"].add(fields[0]["key"])
        return page, bool(lost), keys[changed]

    def _ties(self, at: I64) -> list[I64]:
        """The places of derivations in the order of each further column, the first one last."""
        if not self._further:
            return []
        payload = self.came.payload.take(at)
        return [ranks(payload.column(name)) for name in reversed(self._further)]

    def _of(self, name: str, keys: I64) -> tuple[I64, I64]:
        """(place in ``keys``, row) of a table's live rows with these keys."""
        own, at = self.chains[name].gather(keys)
        live = self.states()[name].alive[at]
        return own[live], at[live]

    def _differing(
        self,
        count: int,
        s_own: I64,
        s_at: I64,
        group: I64,
        source: I64,
        c_at: I64,
        depth: I64,
        le: I64,
        re: I64,
    ) -> Any:
        """Which keys have other rows in the loop than before."""
        before, after = np.bincount(s_own, minlength=count), np.bincount(group, minlength=count)
        changed = before != after
        same = ~changed
        olds, news = same[s_own], same[group]
        row = self._source_field("row", source[news], c_at, s_at)
        old = s_at[olds]
        differs = (self.loop.get("le")[old] != le[news]) | (self.loop.get("re")[old] != re[news])
        differs |= (self.loop.get("depth")[old] != depth[news]) | (self.loop.get("row")[old] != row)
        changed[group[news][differs]] = True
        return changed

    def _source_field(self, name: str, source: I64, c_at: I64, s_at: I64) -> I64:
        out = np.empty(len(source), np.int64)
        fresh = source >= 0
        out[fresh] = self.came.get(name)[c_at[source[fresh]]]
        out[~fresh] = self.loop.get(name)[s_at[-2 - source[~fresh]]]
        return out

    def _replace(
        self, old: I64, source: I64, c_at: I64, s_at: I64, depth: I64, le: I64, re: I64
    ) -> tuple[Page, tuple[dict[str, Any], pa.RecordBatch]]:
        fresh = source >= 0
        there = self.came.payload.take(c_at[source[fresh]])
        here = self.loop.payload.take(s_at[-2 - source[~fresh]])
        back = np.argsort(np.concatenate([np.flatnonzero(fresh), np.flatnonzero(~fresh)]))
        payload = take_rows(pa.concat_batches([there, here]), back)
        fields = {f: self._source_field(f, source, c_at, s_at) for f in ("key", "row")}
        fields |= {"le": le, "re": re, "depth": depth}
        old_rows = self.loop.payload.take(old)
        depths = np.concatenate([self.loop.get("depth")[old], depth])
        both = pa.concat_batches([old_rows, payload]).append_column(RANK, pa.array(depths))
        weight = np.concatenate([np.full(len(old), -1, np.int64), np.ones(len(le), np.int64)])
        starts = np.concatenate([self.loop.get("le")[old], le])
        ends = np.concatenate([self.loop.get("re")[old], re])
        return net_page(both, starts, ends, weight), (fields, payload)

    def send(self, keys: I64, settled: int) -> Page:
        """The change of the output for these keys: the loop's rows on maximal intervals."""
        _, at = self._of("loop", keys)
        _, old = self._of("sent", keys)
        sent, loop = self.sent, self.loop
        early = old[(sent.get("le")[old] < settled) & (sent.get("re")[old] >= settled)]
        row = np.concatenate([loop.get("row")[at], sent.get("row")[early]])
        le = np.concatenate([loop.get("le")[at], sent.get("le")[early]])
        re = np.concatenate([loop.get("re")[at], np.full(len(early), settled, np.int64)])
        key = np.concatenate([loop.get("key")[at], sent.get("key")[early]])
        order = np.lexsort((le, row))
        row, le, re, key = row[order], le[order], re[order], key[order]
        first, ends = _merged(row, le, re)
        source = order[first]
        payload = pa.concat_batches([loop.payload.take(at), sent.payload.take(early)])
        fresh = take_rows(payload, source)
        weight = np.concatenate([np.full(len(old), -1, np.int64), np.ones(len(first), np.int64)])
        change = net_page(
            pa.concat_batches([sent.payload.take(old), fresh]),
            np.concatenate([sent.get("le")[old], le[first]]),
            np.concatenate([sent.get("re")[old], ends]),
            weight,
        )
        sent.kill(old)
        sent.append({"le": le[first], "re": ends, "key": key[first], "row": row[first]}, fresh)
        self.chains["sent"].add(key[first])
        return change

    def keys(self) -> I64:
        """The numbers of all keys that there is anything about."""
        return np.unique(np.concatenate([state.get("key") for state in self.states().values()]))

    def holds(self, pattern: Pattern) -> bool:
        """Whether there is a row that matches a pattern of columns."""
        for state in self.states().values():
            live = np.flatnonzero(state.alive)
            if len(live) and pattern.matches(state.payload.take(live)).any():
                return True
        return False

    def purge(self, t: int) -> None:
        """Lets go of what ended before t."""
        for state in self.states().values():
            live = np.flatnonzero(state.alive)
            state.kill(live[(state.get("re")[live] < t) | (t == INFINITY)])

    @property
    def wasteful(self) -> bool:
        """Whether it is time to number anew: more is dead than alive."""
        return any(state.size > 2 * state.live + 1024 for state in self.states().values())


def _merged(row: I64, le: I64, re: I64) -> tuple[I64, I64]:
    """Of rows sorted by (row, LE): where each maximal interval begins, and its end."""
    if len(row) == 0:
        return row, re
    fresh = np.ones(len(row), np.bool_)
    reach = re.copy()
    furthest(row, reach)
    fresh[1:] = (row[1:] != row[:-1]) | (le[1:] > reach[:-1])
    first = np.flatnonzero(fresh)
    return first, np.append(reach[first[1:] - 1], reach[-1])


def _ordered(column: pa.Array) -> I64:
    """Numbers and times as 64-bit whole numbers in the same order."""
    t = column.type
    if pa.types.is_floating(t):
        values = column.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)  # one NaN, past infinity
        return np.where(bits < 0, bits ^ WORST, bits)
    if pa.types.is_temporal(t):
        column = column.view(pa.int64() if t.bit_width == 64 else pa.int32())
    return column.fill_null(0).cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]
