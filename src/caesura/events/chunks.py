"""Pieces of saved state: each has a kind, a format number and a declared shape. Nothing is unpickled.

State of numbers and columns is a dataclass, and its chunk an Arrow IPC stream of one row: arrays, tables
and chunks inside lie in columns, everything else is JSON in the schema's metadata. Little state is JSON.
Either way a chunk says what it is, so one that is damaged, of another kind or of a later version is
refused by name; one of an earlier format is brought up by the functions in ``older``, one per number.

>>> @dataclass
... class Counted:
...     seen: int
...     sums: np.ndarray[Any, np.dtype[np.float64]]
>>> COUNTED = ChunkFormat("counted", Counted)
>>> COUNTED.read(COUNTED.write(Counted(3, np.array([1.5, 2.0]))))
Counted(seen=3, sums=array([1.5, 2. ]))

What changes seldom is written when it differs from what was written last:

>>> note = SavedJson("note")
>>> note.changed({"n": 1}), note.changed({"n": 1}), note.changed(None)
({'note': b'{"format": 1, "state": {"n": 1}}'}, {}, {'note': None})
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.arrow_bytes import first_batch

Chunks: TypeAlias = dict[str, bytes | None]
"""State by name; None for a chunk that is gone."""
Parts = dict[str, Any]
Older = Mapping[int, Callable[[Any], Any]]
"""By format number, what makes the parts of the next format of those of this one."""
State = TypeVar("State")
STATE_FORMAT = 1
"""The number of the format of everything that a query saves; 0.1.0 saved without one."""
PICKLED = b"\x80"
"""How everything begins that 0.1.0 pickled."""
_KIND, _FORMAT, _PARTS, _SHAPE = b"caesura.kind", b"caesura.format", b"caesura.parts", b"caesura.shape"


@dataclass(frozen=True)
class ChunkFormat(Generic[State]):
    """How one kind of state, a dataclass, is written and read."""

    kind: str
    shape: type[State]
    number: int = 1
    older: Older = field(default_factory=dict)

    def write(self, state: State) -> bytes:
        """The state as bytes."""
        columns: list[pa.Array] = []
        named: list[pa.Field] = []
        parts: Parts = {}
        for name in self._types:
            value = getattr(state, name)
            column = _column(value)
            if column is None:
                parts[name] = value
                continue
            shape = {_SHAPE: json.dumps(value.shape)} if isinstance(value, np.ndarray) else None
            columns.append(column)
            named.append(pa.field(name, column.type, metadata=shape))
        head = {_KIND: self.kind, _FORMAT: str(self.number), _PARTS: json.dumps(parts)}
        return ipc_bytes(pa.RecordBatch.from_arrays(columns, schema=pa.schema(named, metadata=head)))

    def read(self, data: bytes) -> State:
        """The state that `write` was given, perhaps by an earlier version."""
        parts = upgraded(self.kind, *self._parts(data), self.number, self.older)
        if set(parts) != set(self._types):
            raise damaged(self.kind)
        for name, wanted in self._types.items():
            if not any(_is(parts[name], one) for one in wanted):
                raise damaged(self.kind)
        return self.shape(**parts)

    @cached_property
    def _types(self) -> dict[str, tuple[Any, ...]]:
        """The types that each field may have."""
        hints = get_type_hints(self.shape)
        own = {f.name: hints[f.name] for f in fields(self.shape)}  # type: ignore[arg-type]
        return {n: get_args(t) if isinstance(t, UnionType) else (t,) for n, t in own.items()}

    def _parts(self, data: bytes) -> tuple[Parts, int]:
        if data.startswith(PICKLED):
            raise of_0_1_0(f"the saved state of {self.kind}")
        try:
            batch = first_batch(data)
            head = batch.schema.metadata or {}
            kind, number = head[_KIND].decode(), int(head[_FORMAT])
            parts: Parts = json.loads(head[_PARTS])
            columns = {f.name: _value(batch.column(i), f) for i, f in enumerate(batch.schema)}
        except (ValueError, LookupError, TypeError, RecursionError, pa.ArrowException) as error:
            raise damaged(self.kind) from error
        if kind != self.kind:
            raise StreamError(
                f"the saved state of {self.kind} is wanted, and this is that of {kind}.",
                remedy="Give all that was saved, of a query with the same plan.",
            )
        return parts | columns, number


class SavedJson:
    """One chunk of JSON, written when it differs from what was written last."""

    def __init__(self, name: str, *, number: int = 1, older: Older | None = None) -> None:
        self.name, self.number, self.older = name, number, older or {}
        self.last = b""

    def changed(self, state: Any) -> Chunks:
        """The chunk, if it is news; None is no state, and the chunk is gone if there was one."""
        return self.changed_bytes(b"" if state is None else json_chunk(state, self.number))

    def changed_bytes(self, data: bytes) -> Chunks:
        """The same for a chunk that has its own form; b"" is none."""
        if data == self.last:
            return {}
        self.last = data
        return {self.name: data or None}

    def read(self, chunks: Mapping[str, bytes]) -> Any:
        """What was written last into these chunks; None where there is nothing."""
        data = self.read_bytes(chunks)
        if not data:
            return None
        if data.startswith(PICKLED):
            raise of_0_1_0(f"the saved state '{self.name}'")
        try:
            content = json.loads(data)
            number, state = content["format"], content["state"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise damaged(self.name) from error
        return upgraded(self.name, state, number, self.number, self.older)

    def read_bytes(self, chunks: Mapping[str, bytes]) -> bytes:
        """The same for a chunk that has its own form."""
        self.last = chunks.get(self.name, b"")
        return self.last


def under(prefix: str, chunks: Mapping[str, bytes]) -> dict[str, bytes]:
    """The chunks whose names begin so, by the rest of their names."""
    return {name[len(prefix) :]: data for name, data in chunks.items() if name.startswith(prefix)}


def json_chunk(state: Any, number: int = 1) -> bytes:
    """State as a chunk of JSON with the number of its format."""
    return json.dumps({"format": number, "state": state}).encode()


def upgraded(kind: str, parts: Any, number: int, wanted: int, older: Older) -> Any:
    """The parts in the wanted format; refuses a later one, and one that nobody reads any more."""
    if number > wanted:
        raise later(f"the saved state of {kind}", number, wanted)
    while number < wanted:
        if number not in older:
            raise StreamError(
                f"the saved state of {kind} has format {number}, which this version reads no longer.",
                remedy="Let a version in between go on from it and save it, or start anew.",
            )
        parts, number = older[number](parts), number + 1
    return parts


def later(what: str, number: int, known: int) -> StreamError:
    """State of a version that is not written yet."""
    return StreamError(
        f"{what} has format {number}; this version reads formats up to {known}.",
        remedy="A later version of Caesura saved it: go on with that one, or start anew.",
    )


def of_0_1_0(what: str) -> StreamError:
    """State of the version that pickled."""
    return StreamError(
        f"{what} is of Caesura 0.1.0, which pickled it; no later version unpickles state.",
        remedy="Finish with 0.1.0, or start anew: with a new checkpoint, from the sources.",
    )


def damaged(kind: str) -> StreamError:
    """State that is not what was written."""
    return StreamError(
        f"the saved state of {kind} cannot be read: it is cut off or was changed.",
        remedy="Go on from an earlier snapshot or a copy of it, or start anew.",
    )


def ipc_bytes(batch: pa.RecordBatch) -> bytes:
    """A batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _column(value: Any) -> pa.Array | None:
    """One row of a column that holds the value; None for what is JSON."""
    if isinstance(value, np.ndarray):
        return _row(pa.array(np.ascontiguousarray(value).reshape(-1)))
    if isinstance(value, pa.RecordBatch):
        return _row(pa.StructArray.from_arrays(value.columns, fields=list(value.schema)))
    if isinstance(value, bytes):
        return pa.array([value], pa.large_binary())
    if isinstance(value, list) and value and all(isinstance(v, bytes) for v in value):
        return _row(pa.array(value, pa.large_binary()))
    return None


def _row(values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _value(column: pa.Array, name: pa.Field) -> Any:
    """What `_column` was given; arrays can be written to."""
    if pa.types.is_large_binary(column.type):
        return column[0].as_py()
    inner = column.flatten()
    if pa.types.is_struct(inner.type):
        return pa.RecordBatch.from_arrays(inner.flatten(), schema=pa.schema(list(inner.type)))
    if pa.types.is_large_binary(inner.type):
        return inner.to_pylist()
    return np.array(inner.to_numpy(zero_copy_only=False)).reshape(json.loads(name.metadata[_SHAPE]))


def _is(value: Any, wanted: Any) -> bool:
    """Whether a value is of a field's type; of arrays the element type counts, if one is said."""
    if wanted is Any:
        return True
    origin = get_origin(wanted) or wanted
    if origin is np.ndarray:
        dtype = (*get_args(wanted), Any, Any)[1]
        kinds = get_args(dtype) if dtype is not Any else ()
        return isinstance(value, np.ndarray) and (not kinds or kinds[0] is Any or value.dtype == kinds[0])
    if origin is list and get_args(wanted) == (bytes,):
        return isinstance(value, list) and all(isinstance(v, bytes) for v in value)
    if origin in (int, bool, NoneType):
        return type(value) is origin
    return isinstance(value, origin)
