"""What fills missing values: a table of them by key, or a slow function of the user's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.events.identity import LOCAL, Secret, identity
from caesura.expr.code import code_key
from caesura.kernels.hashing import I64
from caesura.kernels.keys import KeyTable
from caesura.misuse import checked_methods

Fill = Callable[[pa.RecordBatch], Any]
Take = Literal["last", "first", "min", "max", "mean", "sum"]


class HashingSink:
    """A file that keeps nothing of what is written but its hash."""

    closed = False

    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=16)

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, eq=False)
class Slow:
    """A function of the user's that fills values, known by its code wherever the plan is made."""

    function: Fill

    @property
    def key(self) -> object:
        """Equal for functions that do the same, also in another process."""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"{getattr(self.function, '__module__', '')}.{name}#{code_key(self.function)}"

    def __call__(self, batch: pa.RecordBatch) -> Any:
        return self.function(batch)


@checked_methods
@dataclass(frozen=True, eq=False)
class Archive:
    """A table that says the value for each key; what it does not know stays missing. For ``impute``.

    Parameters
    ----------
    table
        An Arrow table.
    on
        Its key columns; rows that are filled have columns of these names.
    value
        Its column of values.
    take
        Which of several values of a key counts: ``"last"``, ``"first"``, ``"min"``, ``"max"``, ``"mean"``,
        ``"sum"``; without it, a key has one row.

    Examples
    --------
    >>> import caesura as cz
    >>> import pyarrow as pa
    >>> archive = cz.Archive(pa.table({"id": [3, 4], "mph": [48, 51]}), ("id",), "mph")
    >>> archive(pa.record_batch({"id": [4, 9]})).to_pylist()
    [51, None]
    """

    table: pa.Table
    on: tuple[str, ...]
    value: str
    take: Take | None = None
    """Which of several values of a key counts; without it, a key has one row."""
    _known: list[Any] = field(default_factory=list, repr=False)
    _hash: list[str] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        for name in (*self.on, self.value):
            if name not in self.table.schema.names:
                raise PlanError(
                    f"the archive has no column '{name}'.", remedy=closest(name, self.table.schema.names)
                )
        if self.take not in (None, *get_args(Take)):
            raise PlanError(
                f"take={self.take!r} is no way to choose among values.",
                remedy=closest(str(self.take), get_args(Take)),
            )
        one = self._one_each("last" if self.take is None else self.take)
        if self.take is None and len(one) < len(self.table):
            raise PlanError(
                f"the archive has several rows for a key ({', '.join(self.on)}): {len(self.table)} for "
                f"{len(one)} in all.",
                remedy="Say which counts: take='last', 'first', 'min', 'max', 'mean', 'sum'; or give one row "
                "for each key.",
            )
        object.__setattr__(self, "table", one)

    def _one_each(self, take: str) -> pa.Table:
        """One row for each key, in the order of the table."""
        grouped = self.table.group_by(list(self.on), use_threads=False).aggregate([(self.value, take)])
        return grouped.rename_columns([*self.on, self.value])

    @property
    def key(self) -> object:
        """Equal for archives that answer alike, also in another process: by their rows."""
        if not self._hash:
            whole = self.table.select([*self.on, self.value]).replace_schema_metadata(None)
            sink = HashingSink()
            with pa.ipc.new_stream(pa.PythonFile(sink, "w"), whole.schema) as writer:
                writer.write_table(whole.combine_chunks())
            self._hash.append(sink.digest.hexdigest())
        return f"archive:{self._hash[0]}:{self.on}:{self.value}"

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        table, values, last, secret = self._index()
        at = table.find(*identity([batch.column(name) for name in self.on], batch.num_rows, secret))
        rows = pa.array(np.where(at < 0, 0, last[at]), mask=at < 0)
        return values.take(rows)

    def _index(self) -> tuple[KeyTable, pa.Array, I64, Secret]:
        if not self._known:
            batch = self.table.combine_chunks()
            columns = [batch.column(name).combine_chunks() for name in self.on]
            table = KeyTable()
            number, _ = table.encode(*identity(columns, len(batch), LOCAL))
            last = np.zeros(table.count, np.int64)
            last[number] = np.arange(len(number))  # the latest row of a key counts
            self._known.extend([table, batch.column(self.value).combine_chunks(), last, LOCAL.copied()])
        return tuple(self._known)
