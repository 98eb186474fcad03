"""Event shapes: which columns say when an event starts and ends, and what kind of row it is.

Points live one tick. Intervals have an end column, where null means never. An edge row starts an event
that never ends, or ends one that was started. The full physical form has inserts and retracts. The
columns that a shape reads leave the payload; rows that make no event are refused with a reason.

>>> shape = Shape.of(time="at", end="until")
>>> batch = pa.record_batch({"at": [1, 5, None], "until": [None, 3, 9], "id": [7, 8, 9]})
>>> shaped = shape.cut(batch, pa.schema([("id", pa.int64())]))
>>> bool(shaped.re[0] == INFINITY), shaped.reasons(np.array([1, 2]))
(True, ['ends at or before its start', 'has no time'])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.events.columns import empty_rows, raw_parts
from caesura.events.nested import validity
from caesura.events.page import NO_NEW_END, Page, PointPage
from caesura.events.types import plain_type
from caesura.io.ingress import row_kernels
from caesura.io.ingress.clock import check_time, stream_time, to_ticks
from caesura.io.ingress.kept import kept
from caesura.io.ingress.open_kernels import BEHIND, LATEST, LOW, read_changes
from caesura.io.ingress.runs import OpenedRows
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.punctuation import INFINITY, MIN_TIME

Form = Literal["point", "interval", "edge", "full"]

REASONS = (
    "",
    "has no time",
    "is of no known kind: not '+', '-', 'insert', 'retract'; nor, of an edge, 'start', 'end'",
    "ends at or before its start",
    "its new end is before its start",
    "a retract that changes nothing",
    "an end edge without an end",
    "a retract, but the stream is declared to have inserts only",
    "lives longer than a tick, but the stream is declared to have points only",
    "a retract that changes an end, but the stream is declared to have fixed ends",
    "lives longer than the stream is declared to",
    "has a timestamp that microseconds cannot hold: it is finer, or too far away",
    "has a map with one key twice",
)
STARTS = {"edge": ("start",), "full": ("+", "insert")}
WIDE = 1 << 62
"""Times that lie further apart are not told from each other by their difference."""
ENDS = {"edge": ("end",), "full": ("-", "retract")}


class Shaped(NamedTuple):
    """Rows with lifetimes; ``flaw`` says what is wrong with each (0: nothing), None if all are sound."""

    le: I64
    re: I64 | None
    """None for points."""
    changed: I64 | None
    """The new ends, unless the rows were opened."""
    payload: pa.RecordBatch
    flaw: np.ndarray[tuple[int], np.dtype[np.int8]] | None
    advance: I64
    """How far each row says that time has come."""
    span: tuple[int, int] | None = None
    """A time that no row's sync time is before, and the latest that one tells of, where they are known."""
    behind: int | None = None
    """How far at most a row's sync time is behind the latest time that one before it tells of, if known."""
    opened: OpenedRows | None = None
    """What is known of the rows, all of them, to whom looks for the events that retracts name."""

    def part(self, begin: int, end: int) -> Shaped:
        """The rows between two positions."""
        if begin == 0 and end == len(self.le):
            return self
        some = slice(begin, end)
        re_new = None if self.re_new is None else self.re_new[some]
        if re_new is not None and not (re_new != NO_NEW_END).any():
            re_new = None  # the rows that have one lie elsewhere
        flaw = None if self.flaw is None else self.flaw[some]
        payload = self.payload.slice(begin, end - begin)
        re = None if self.re is None else self.re[some]
        return Shaped(self.le[some], re, re_new, payload, flaw, self.advance[some])

    @property
    def page(self) -> Page:
        """The rows as a page."""
        if self.re is None:
            return PointPage(self.le, None, self.payload, self.changed)
        if self.opened is not None:
            return self.opened.page(self.le, self.re, self.payload)
        return Page(self.le, self.re, self.payload, self.changed)

    @property
    def re_new(self) -> I64 | None:
        """The new ends; None where all rows are inserts."""
        return self.changed if self.opened is None else self.page.re_new

    def reasons(self, rows: I64) -> list[str]:
        """Why these rows make no event."""
        flaw = np.zeros(len(self.le), np.int8) if self.flaw is None else self.flaw
        return [REASONS[code] for code in flaw[rows].tolist()]


@dataclass(frozen=True)
class Shape:
    """Which columns carry lifetimes, and how."""

    form: Form
    time: str
    end: str | None = None
    kind: str | None = None
    new_end: str | None = None
    renamed: tuple[tuple[str, str], ...] = ()
    """(name in the data, name in the stream) of payload columns that get another name."""

    @staticmethod
    def of(
        *,
        time: str,
        end: str | None = None,
        kind: str | None = None,
        new_end: str | None = None,
        form: Form | None = None,
        rename: Mapping[str, str] | None = None,
    ) -> Shape:
        """The shape that these columns make; ``form`` says it where they leave a doubt."""
        if form is None:
            form = "point" if end is None else "interval"
            if kind is not None:
                form = "full" if new_end is not None else "edge"
        shape = Shape(form, time, end, kind, new_end, tuple((rename or {}).items()))
        shape._check()
        return shape

    def _check(self) -> None:
        if self.form not in ("point", "interval", "edge", "full"):
            raise PlanError(
                f"no shape is called {self.form!r}.",
                remedy=closest(str(self.form), ("point", "interval", "edge", "full")),
            )
        given = {"end": self.end, "kind": self.kind, "new_end": self.new_end}
        needed = {"point": (), "interval": ("end",), "edge": ("end", "kind"), "full": ("end", "kind")}[
            self.form
        ]
        allowed = (*needed, "new_end") if self.form == "full" else needed
        for what, column in given.items():
            if what in needed and column is None:
                raise PlanError(
                    f"events of the shape '{self.form}' need {what}=.",
                    remedy=f"Name the column: {what}='...'.",
                )
            if what not in allowed and column is not None:
                raise PlanError(
                    f"events of the shape '{self.form}' have no {what}= column, but '{column}' was given.",
                    remedy="Leave it out, or name another shape.",
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the shape reads; they leave the payload."""
        return tuple(c for c in (self.time, self.end, self.kind, self.new_end) if c is not None)

    @property
    def stamped(self) -> bool:
        """Whether the clock tells when events start, and not a column."""
        return False

    @property
    def insert_only(self) -> bool:
        """Whether no row can be a retract."""
        return self.form in ("point", "interval")

    def named(self, column: str) -> str:
        """What a column of the data is called in the stream."""
        return dict(self.renamed).get(column, column)

    def _check_names(self, schema: pa.Schema) -> None:
        for old, new in self.renamed:
            if old not in schema.names:
                raise PlanError(f"there is no column '{old}' to rename.", remedy=closest(old, schema.names))
            if old in self.columns:
                raise PlanError(
                    f"'{old}' is read as a time or kind, so it is no payload column to rename.",
                    remedy="Leave it out of rename=; start() and end() give an event's times.",
                )
            if not new:
                raise PlanError(f"'{old}' would have no name.", remedy="Give a name that is not empty.")

    def check(self, schema: pa.Schema) -> pa.DataType:
        """Refuses columns that are not there or cannot be times; gives the stream's time."""
        for column in self.columns:
            if column not in schema.names:
                raise PlanError(f"there is no column '{column}'.", remedy=closest(column, schema.names))
        self._check_names(schema)
        ends = [column for column in (self.end, self.new_end) if column is not None]
        times = [self.time, *(c for c in ends if not pa.types.is_null(schema.field(c).type))]
        for column in times:
            check_time(column, schema.field(column).type)
        if self.kind is not None and plain_type(schema.field(self.kind).type) != pa.string():
            wanted = ", ".join(repr(w) for w in (*STARTS[self.form], *ENDS[self.form]))
            raise PlanError(
                f"the kind column '{self.kind}' has the type {schema.field(self.kind).type}.",
                remedy=f"It must be text with the values {wanted}.",
            )
        time = stream_time(schema.field(self.time).type)
        plain = pa.types.is_integer(time)
        for column in times:
            if pa.types.is_integer(schema.field(column).type) != plain:
                raise PlanError(
                    f"'{self.time}' and '{column}' count time differently: "
                    f"{schema.field(self.time).type} and {schema.field(column).type}.",
                    remedy="Make both integers, or both timestamps.",
                )
        return time

    def cut(self, batch: pa.RecordBatch, schema: pa.Schema) -> Shaped:
        """A batch as rows with lifetimes and the payload of ``schema``; never raises for a row."""
        names = {new: old for old, new in self.renamed}
        payload, unkept = as_payload(batch, schema, names)
        shaped = self._cut(batch, payload)
        if unkept is None:
            return shaped
        flaw = np.where(unkept > 0, unkept, 0 if shaped.flaw is None else shaped.flaw).astype(np.int8)
        return shaped._replace(flaw=flaw, changed=shaped.re_new, span=None, opened=None)

    def _cut(self, batch: pa.RecordBatch, payload: pa.RecordBatch) -> Shaped:
        le = to_ticks(batch.column(self.time), MIN_TIME)
        if self.form == "point":
            return _points(le, payload)
        assert self.end is not None
        re = to_ticks(batch.column(self.end), INFINITY)
        if self.form == "interval":
            flaw = _flaws(len(le), (row_kernels.EMPTY, re <= le), (row_kernels.NO_TIME, le == MIN_TIME))
            return Shaped(le, re, None, payload, flaw, le)
        return self._changes(batch, le, re, payload)

    def _changes(self, batch: pa.RecordBatch, le: I64, end: I64, payload: pa.RecordBatch) -> Shaped:
        """Rows of a shape with a kind: inserts and retracts."""
        assert self.kind is not None
        codes = _codes(batch.column(self.kind), self.form)
        edge = self.form == "edge"
        re = np.full(len(le), INFINITY, np.int64) if edge else end
        new = end if edge else le
        if self.new_end is not None:
            new = to_ticks(batch.column(self.new_end), INFINITY)
        # An end edge happens at its end, so that is how far it says time has come.
        advance = np.where(codes == row_kernels.RETRACT, end, le) if edge else le
        times, opened = (frozen(le), frozen(re), frozen(new)), OpenedRows.room(codes)
        columns = (*times, frozen(advance), *opened)
        if len(le) == 0 or not read_changes(*columns):
            return _unsound(codes, times, payload, advance, edge=edge)
        opened.find(*times[:2])
        told = opened.told
        low, high, behind = (int(told[at]) for at in (LOW, LATEST, BEHIND))
        known = behind if high - low < WIDE else None
        return Shaped(le, re, None, payload, None, advance, (low, high), known, opened)


def _unsound(
    codes: row_kernels.I8,
    times: tuple[I64, I64, I64],
    payload: pa.RecordBatch,
    advance: I64,
    *,
    edge: bool,
) -> Shaped:
    """Rows of a shape with a kind, of which some may make no event."""
    flaw, re_new = np.empty(len(codes), np.int8), np.empty(len(codes), np.int64)
    bad = row_kernels.find_flaws(codes, *times, re_new, flaw, edge)
    changes = re_new if (codes == row_kernels.RETRACT).any() else None
    return Shaped(times[0], times[1], changes, payload, flaw if bad else None, advance)


_SPELLED = {form: row_kernels.spelled(STARTS[form], ENDS[form]) for form in STARTS}


def _codes(column: pa.Array, form: str) -> row_kernels.I8:
    """Whether each row is an insert, a retract, or neither."""
    if pa.types.is_dictionary(column.type):
        known = np.append(_codes(column.dictionary, form), np.int8(row_kernels.UNKNOWN))
        at: I64 = column.indices.fill_null(len(column.dictionary)).to_numpy(zero_copy_only=False)
        codes: row_kernels.I8 = known[at]
        return codes
    if column.type not in (pa.string(), pa.large_string()):
        column = column.cast(pa.string())
    offsets, data = raw_parts(column)
    out = np.empty(len(column), np.int8)
    row_kernels.kind_codes(offsets, frozen(data), validity(column), *_SPELLED[form], out)
    return out


def _points(le: I64, payload: pa.RecordBatch) -> Shaped:
    """Points; the first tick stands for none, and the last cannot end."""
    first, last, falls = row_kernels.span_points(frozen(le))
    if first > MIN_TIME and last < INFINITY:
        return Shaped(le, None, None, payload, None, le, (int(first), int(last)), None if falls else 0)
    flaw = _flaws(len(le), (row_kernels.NO_TIME, (le == MIN_TIME) | (le == INFINITY)))
    return Shaped(le, None, None, payload, flaw, le)


def _flaws(count: int, *found: tuple[int, Mask]) -> np.ndarray[tuple[int], np.dtype[np.int8]] | None:
    """Each row's flaw; where a row has several, the last one named."""
    some = [(code, mask) for code, mask in found if mask.any()]
    if not some:
        return None
    flaw = np.zeros(count, np.int8)
    for code, mask in some:
        flaw[mask] = code
    return flaw


def as_payload(
    batch: pa.RecordBatch, schema: pa.Schema, names: Mapping[str, str]
) -> tuple[pa.RecordBatch, row_kernels.I8 | None]:
    """The payload columns of a batch in the types that the stream keeps, and the flaws of rows with a value
    that these types cannot hold, if there are any; ``names`` in the batch.
    """
    if len(schema) == 0:
        return empty_rows(batch.num_rows), None
    columns: list[pa.Array] = []
    unkept: row_kernels.I8 | None = None
    for field in schema:
        made, lost = kept(batch.column(names.get(field.name, field.name)), field.type)
        columns.append(made)
        if lost is not None:
            unkept = lost if unkept is None else np.maximum(unkept, lost)
    return pa.RecordBatch.from_arrays(columns, schema=schema), unkept
