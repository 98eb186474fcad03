"""Delta tables as a sink: workers write the files, the driver commits each epoch in one transaction.

The transaction carries the query's id and the epoch's number, so an epoch that runs again after a kill
finds itself in the table's log and adds nothing. Needs the package `deltalake`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from caesura.io.sinks.delta_table import delta_options
from caesura.io.sinks.packages import package
from caesura.io.sinks.partitions import folder_values, refuse_empty
from caesura.io.sinks.protocol import Part
from caesura.plan import Node
from caesura.runtime.sinks.parquet import ParquetSink, ParquetWriter


class DeltaWriter(ParquetWriter):
    """Writes the files of a Delta table, of which none is in the name of an empty text."""

    def __call__(self, output: str, worker: int, table: pa.Table) -> Part | list[Part]:
        if "/" not in output:
            refuse_empty(table, self.partition_by)
        return super().__call__(output, worker, table)


@dataclass
class DeltaSink(ParquetSink):
    """All changes as a Delta table ``<path>/<output>`` of kind, LE, RE, RE_new and the payload.

    Parameters
    ----------
    path
        The folder, on this machine or in an object store.
    late_epochs
        For how many epochs late rows are kept beside the output.
    partition_by
        Columns by whose values a table that is made is laid out.

    Notes
    -----
    An epoch is one transaction: exactly once. Needs the extra ``delta``.

    Examples
    --------
    >>> import tempfile
    >>> import caesura as cz
    >>> from caesura.spark import DeltaSink
    >>> folder = tempfile.mkdtemp()
    >>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts")
    >>> query = clicks.query(sink=DeltaSink(f"{folder}/out"), checkpoint=f"{folder}/state")
    >>> query.run()
    >>> query.table().to_pylist()
    [{'LE': 1, 'RE': 2, 'id': 7}]
    """

    def open(self, outputs: Mapping[str, Node]) -> None:
        delta = _deltalake()
        super().open(outputs)
        for name, schema in self._schemas.items():
            place, options = str(self._place / name), self._options
            if not delta.DeltaTable.is_deltatable(place, options):
                delta.DeltaTable.create(
                    place,
                    schema,
                    name=name,
                    partition_by=list(self.partition_by) or None,
                    storage_options=options,
                )

    def writer(self, epoch: int) -> ParquetWriter:
        return DeltaWriter(self.path, epoch, tuple(self.partition_by))

    def attach(self, query: str) -> None:
        super().attach(query)
        self._query = query or "batch"

    def pending(self, epoch: int, outputs: Sequence[str]) -> Sequence[str]:
        """A kill may come between the transactions of two tables."""
        return [name for name in outputs if self._version(name) < epoch]

    def commit(self, epoch: int, parts: Sequence[Part]) -> None:
        behind = self.pending(epoch, list(self._schemas))
        super().commit(epoch, parts)
        for name in behind:
            self._add(name, epoch, [part for part in parts if part.output == name])

    def abort(self, epoch: int) -> None:
        """Files that no transaction names do not count; those of the same name are replaced."""
        return

    def _version(self, output: str) -> int:
        """The last epoch of the query that the table has; -1 for none."""
        found = self._table(output).transaction_version(self._query)
        return -1 if found is None else int(found)

    def read_back(self, output: str) -> pa.Table:
        return self._table(output).to_pyarrow_table()

    def _table(self, output: str) -> Any:
        return _deltalake().DeltaTable(str(self._place / output), storage_options=self._options)

    @property
    def _options(self) -> dict[str, str] | None:
        return delta_options(self._place)

    def _add(self, output: str, epoch: int, parts: list[Part]) -> None:
        from deltalake.transaction import AddAction

        delta = _deltalake()
        table = self._table(output)
        added = []
        for part in parts:
            about = (self._place / output / part.file).entry()
            assert about is not None, "a part is there before it is committed"
            stats = json.dumps({"numRecords": part.rows})
            values = folder_values(part.file.rpartition("/")[0])
            added.append(
                AddAction(
                    quote(part.file, safe="/="), about.size, values, about.changed // 10**6, True, stats
                )
            )
        mark = delta.CommitProperties(app_transactions=[delta.Transaction(self._query, epoch)])
        table.create_write_transaction(
            added, "append", table.schema(), list(self.partition_by) or None, commit_properties=mark
        )


def _deltalake() -> Any:
    return package("deltalake", "delta")
