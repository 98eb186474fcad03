"""A compiled query at work: pages in, the rows at which it answers and the values out.

The table-driven kernel runs any query; a specialised kernel of the same layout may take over at any
page, since both read and write the same registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.chunks import ChunkFormat
from caesura.events.columns import ColumnStore
from caesura.expr.faults import shown
from caesura.kernels.hashing import I64, Mask
from caesura.qre.compiler.automaton import automaton
from caesura.qre.compiler.columns import ColumnReader, PageColumns, null_key
from caesura.qre.compiler.generation import Form, Generated, generated
from caesura.qre.compiler.packing import Scalars, joined, packed, scalars_of, unpacked
from caesura.qre.engine.program import Program
from caesura.qre.engine.registers import SHALLOW, Array, Registers, RegisterState
from caesura.qre.kernels.key_slots import KeySlots
from caesura.qre.kernels.table import run_tables
from caesura.qre.language.query import Partition, Query
from caesura.qre.language.whole_numbers import no_value

CHUNK = 32_768
ITEMS_TO_SPECIALISE = 1_000_000
MAX_KNOWN_STATES = 50_000
MIN_KEYS_TO_COMPACT = 64
NOTHING: I64 = np.zeros(0, np.int64)
NO_LOG: I64 = np.zeros((2, 4), np.int64)
NO_FLOATS: Array = np.zeros(0, np.float64)
_ZEROS = np.zeros(CHUNK, np.int64)


@dataclass
class PatternAnswers:
    """At which rows a query answered, and what."""

    rows: I64
    values: pa.Array
    void: I64
    """Which of them have no value."""


@dataclass
class PatternState(RegisterState):
    """What is saved of a pattern."""

    rows: I64 | None
    sparse: bool
    departures: int
    keys: I64
    """The keys by number, if they are whole numbers."""
    named: pa.RecordBatch | None
    """The keys by number, if they are not."""
    types: bytes
    """The schema of the keys' columns."""


PATTERN = ChunkFormat("a pattern", PatternState)


class PatternStage(Registers):
    """One pattern, for all keys of a partition or for the whole stream."""

    def __init__(self, query: Query, *, kernel: str = "auto") -> None:
        assert query.items is not None
        self.query = query
        self.by = query.partitioned_by
        body = query.per_key
        self.program = self._program(body)
        self.auto = self.program.auto
        only = query.only
        self.once = int(not query.again) if isinstance(query, Partition) else 2
        self._only = None if only is None else self.auto.inputs.truth(only)
        self.reader = ColumnReader(query.items)
        self.keys = KeySlots()
        self.types: list[pa.DataType] = []
        """The types of the keys' columns, once there is a page."""
        self.named: ColumnStore | None = None
        """The keys by number, where they are no whole numbers."""
        self.kernel = kernel
        self.seen = 0
        self._open = 0
        self.departures = 0
        """How many items led out of the language."""
        self.work: I64 = np.zeros(2, np.int64)
        """The most instructions that the table-driven kernel ran for one item, and the row it reached."""
        self.departed: I64 = NOTHING
        """The rows of the last page at which they did."""
        self.rows = None
        self.sparse = False
        self._since = 0
        self._special: Generated | None = None
        self.ri = np.zeros((0, 1), np.int64)
        self.rf = np.zeros((0, 0), np.float64)
        self.rings = np.zeros((0, 0, 0), np.int64)
        self._reserve(1)

    def _program(self, body: Query) -> Program:
        return Program(automaton(body)[0])

    def _forget_states(self) -> None:
        """Numbers anew the states that keys are in, once there are very many."""
        if not self.auto.grows or len(self.auto.states) <= MAX_KNOWN_STATES:
            return
        states = self.auto.states
        used = np.unique(np.append([0, 1], self.ri[:, 0]))
        used = used[used >= 0]
        again = [sorted(states[number].positions) for number in used.tolist()]
        live = self.ri[:, 0] >= 0
        self.ri[live, 0] = np.searchsorted(used, self.ri[live, 0])
        self.program.known = again

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> PatternAnswers:
        """Feeds a page in order."""
        page = self.reader.page(batch, le, re)
        rows = batch.num_rows
        keys = [page.column(e) for _, e in self.by]
        seen = self._seen(page)
        self._refuse_null_keys(page, keys, seen)
        self.types = [key.type for key in keys]
        keys = packed(keys)
        self._deepen(self.seen + rows)
        special = self._specialised(rows)
        self.departed = NOTHING
        if special is not None:
            form = special.form(self._may_direct(keys), page)
            arrays = self.auto.inputs.arrays(page, special.reads(form))
            answers = self._fast(special, form, keys, arrays, rows)
        else:
            answers = self._slow(
                keys, self.program.letters(page, seen()), self.auto.inputs.arrays(page), rows
            )
        if len(answers.void):
            item = shown(batch, int(answers.rows[answers.void[0]]))
            raise no_value(f"the item ({item})", seen=page.failed)
        self.seen += rows
        self.departures += len(self.departed)
        self._forget_states()
        self._page_read()
        return answers

    def _page_read(self) -> None:
        """What is done behind every page."""
        self.forget_texts()

    def _slow(self, keys: list[pa.Array], letters: I64, arrays: list[Array], rows: int) -> PatternAnswers:
        """By the kernel that runs every query, a piece at a time."""
        outs = []
        for lo in range(0, rows, CHUNK):
            hi = min(rows, lo + CHUNK)
            slots, at = self._slots(keys, lo, hi), lo
            while at < hi:
                out, reached = self._interpreted(slots[at - lo :], letters, arrays, at, hi)
                outs.append(out)
                if reached < hi:
                    self.program.expand(int(self.ri[slots[reached - lo], 0]))
                at = reached
            self._tidy()
        return self._answers(outs)

    def _fast(
        self, special: Generated, form: Form, keys: list[pa.Array], arrays: list[Array], rows: int
    ) -> PatternAnswers:
        """By the query's own kernel, which finds rows itself where keys are whole numbers."""
        outs = special.outs(rows)
        meta, left = np.zeros(1, np.int64), np.zeros(rows + 1, np.int64)
        by = self._direct(keys)
        if by is not None:
            self._by_low_bits(special.function(form), by, [meta, left, *outs, *arrays], rows)
        at = int(self._reached) if by is not None else 0
        while at < rows:
            hi = min(rows, at + CHUNK) if self.by else rows
            slots = self._slots(keys, at, hi)
            rest = (NOTHING, self.ri, self.rf, self.rings, meta, left, *outs, *arrays)
            special.function(Form(False, form.dense))(at, hi, np.uint64(at), slots, *rest)
            self._tidy()
            at = hi
        self.departed = left[1 : left[0] + 1].copy()
        return self._answered(*special.columns(outs, int(meta[0])))

    def _by_low_bits(self, run: Any, by: Array, rest: list[Array], rows: int) -> None:
        """Runs until the page is done, or keys fall on one row and no number of rows keeps them apart."""
        at = 0
        while self.rows is not None:
            at = run(at, rows, np.uint64(0), by, self.rows, self.ri, self.rf, self.rings, *rest)
            if at == rows:
                break
            self._widen(int(by[at]))
        self._reached = at
        self.shrink(rows)

    def _seen(self, page: PageColumns) -> Callable[[], Mask | None]:
        only = self.query.only
        return lambda: None if only is None else page.mask(only)

    def _refuse_null_keys(
        self, page: PageColumns, keys: list[pa.Array], seen: Callable[[], Mask | None]
    ) -> None:
        for key in keys:
            if key.null_count:
                null = key.is_null().to_numpy(zero_copy_only=False)
                own = seen()
                bad = np.flatnonzero(null if own is None else null & own)
                if len(bad):
                    raise null_key(int(bad[0]), page, self.by)

    def _specialised(self, rows: int) -> Generated | None:
        if self.rows is None and self._cold(rows):
            return None
        if self._special is None:
            self._special = generated(self.auto, self.program.tables, bool(self.by), self._only, self.once)
        return self._special

    def _cold(self, rows: int) -> bool:
        return self.kernel == "table" or (self.kernel == "auto" and self.seen + rows < ITEMS_TO_SPECIALISE)

    def _slots(self, keys: list[pa.Array], lo: int, hi: int) -> I64:
        if not self.by:
            return _ZEROS[: hi - lo] if hi - lo <= CHUNK else NOTHING
        some = [k.slice(lo, hi - lo) for k in keys]
        slots, fresh = self.keys.numbered(some, hi - lo)
        if len(fresh):
            self._store([k.take(pa.array(fresh)) for k in some])
        self._reserve(self.keys.count)
        return slots

    def _store(self, fresh: list[pa.Array]) -> None:
        batch = pa.RecordBatch.from_arrays(fresh, names=[str(i) for i in range(len(fresh))])
        if self.named is None:
            self.named = ColumnStore(batch.schema)
        self.named.append(batch)

    def close(self, covered: Callable[[list[pa.Array]], Mask]) -> None:
        """Lets go of the keys that a promise covers: no item of theirs comes any more."""
        open_ = self._open_rows()
        if len(open_):
            self.ri[open_[covered(self._keys_of(open_))], 0] = self.free

    def _keys_of(self, rows: I64) -> list[pa.Array]:
        if self.rows is not None:
            return unpacked(self.rows[rows], self.types)
        if self.named is not None:
            return list(self.named.take(rows).columns)
        return unpacked(self.keys.whole()[rows], self.types)

    def _interpreted(
        self, slots: I64, letters: I64, arrays: list[Array], lo: int, hi: int
    ) -> tuple[tuple[I64, Array, Array], int]:
        t = self.program.tables
        size = hi - lo
        whole, real, consts = self.program.gathered(arrays, lo, hi)
        places = 3 * len(t.out_kinds)
        out_row = np.empty(size, np.int64)
        out_i, out_f = np.empty((places, size), np.int64), np.empty((places, size), np.float64)
        left = np.zeros(size + 1, np.int64)
        n = run_tables(
            size,
            slots,
            letters[lo:hi],
            whole,
            real,
            consts,
            t.code,
            t.steps,
            t.resting,
            self.ri,
            self.rf,
            self.rings,
            self.real,
            self.program.si,
            self.program.sf,
            t.out_place,
            out_row,
            out_i,
            out_f,
            left,
            self.work,
            self.once,
            *self._log(size, lo),
        )
        self.departed = np.append(self.departed, left[1 : left[0] + 1] + lo)
        self._read(int(self.work[1]))
        return (out_row[:n] + lo, out_i[:, :n].copy(), out_f[:, :n].copy()), lo + int(self.work[1])

    def _read(self, rows: int) -> None:
        """So many rows of the last piece were read."""

    def _log(self, size: int, lo: int) -> tuple[Array, ...]:
        """Where the kernel writes what is worked out later, and the states that it passes: nowhere."""
        return NO_LOG, NO_LOG[0], NO_FLOATS, NO_LOG[1], NOTHING

    def _tidy(self) -> None:
        """Gives back the rows of keys that stand at the start, once they are the most."""
        if self.keys.count >= max(MIN_KEYS_TO_COMPACT, 2 * self._open):
            self._drop_resting()

    def _drop_resting(self) -> None:
        count = self.keys.count
        open_ = np.flatnonzero(self.ri[:count, 0] != 0)
        self._open = len(open_)
        if not count or 2 * len(open_) > count:
            return
        self.keys.keep(open_)
        if self.named is not None:
            self.named.compact(open_)
        self._moved(open_, np.arange(len(open_)), min(len(self.ri), 4 * len(open_) + 1024))

    def _answers(self, outs: list[tuple[I64, Array, Array]]) -> PatternAnswers:
        rows = np.concatenate([NOTHING, *(o[0] for o in outs)])
        kinds = self.program.tables.out_kinds
        whole = joined([o[1] for o in outs], 3 * len(kinds), np.int64)
        return self._answered(
            rows, scalars_of(kinds, whole, joined([o[2] for o in outs], 3 * len(kinds), np.float64))
        )

    def _answered(self, rows: I64, scalars: Scalars) -> PatternAnswers:
        void = scalars.beyond()
        return PatternAnswers(
            rows, self.program.arrow(self.auto.type, scalars.values, scalars.there, len(rows)), void
        )

    # State.

    def save(self) -> bytes:
        """Everything that must survive a restart."""
        return PATTERN.write(PatternState(**self._pattern()))

    def load(self, saved: bytes) -> None:
        """Takes back what `save` gave."""
        self._take_pattern(PATTERN.read(saved))

    def _pattern(self) -> dict[str, Any]:
        """The fields of `PatternState`; keys that hold nothing are not among what is saved."""
        self._drop_resting()
        types = pa.schema([(str(i), t) for i, t in enumerate(self.types)]).serialize().to_pybytes()
        keys = {"keys": self.keys.whole(), "named": None if self.named is None else self.named.all()}
        own = {"rows": self.rows, "sparse": self.sparse, "departures": self.departures, "types": types}
        return {**self._registers(self._used), **keys, **own}

    def _take_pattern(self, state: PatternState) -> None:
        self._take_registers(state)
        self.rows, self.sparse, self.departures = state.rows, state.sparse, state.departures
        self.types = pa.ipc.read_schema(pa.py_buffer(state.types)).types
        self.keys, self.named = KeySlots.of([pa.array(state.keys)]), None
        if state.named is not None:
            self.keys = KeySlots.of(state.named.columns)
            self.named = ColumnStore(state.named.schema)
            self.named.append(state.named)

    @property
    def nbytes(self) -> int:
        """Bytes of state: registers, rings and keys."""
        rows = 0 if self.rows is None else self.rows.nbytes
        rows += 0 if self.named is None else self.named.nbytes
        texts = self.auto.inputs.texts.nbytes
        return int(self.ri.nbytes + self.rf.nbytes + self.rings.nbytes + self.keys.nbytes + rows + texts)

    @property
    def held(self) -> int:
        """How many keys hold state."""
        return len(self._open_rows()) if self.by else 0


__all__ = ["CHUNK", "NOTHING", "NO_FLOATS", "NO_LOG", "SHALLOW", "Array", "PatternAnswers", "PatternStage"]
