"""Delta tables as a sink: workers write the files, the driver commits each epoch in one transaction.

The transaction carries the query's id and the epoch's number, so an epoch that runs again after a kill
finds itself in the table's log and adds nothing. Needs the package `deltalake`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from caesura.errors import StreamError
from caesura.io.sinks.protocol import Part
from caesura.plan import Node
from caesura.spark.sinks.parquet import ParquetSink


@dataclass
class DeltaSink(ParquetSink):
    """Writes every output as a Delta table ``<path>/<output>`` of kind, LE, RE, RE_new and the payload."""

    def open(self, outputs: Mapping[str, Node]) -> None:
        delta = _deltalake()
        super().open(outputs)
        for name, schema in self._schemas.items():
            place = Path(self.path) / name
            if not delta.DeltaTable.is_deltatable(str(place)):
                delta.DeltaTable.create(str(place), schema, name=name)

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
        found = _deltalake().DeltaTable(str(Path(self.path) / output)).transaction_version(self._query)
        return -1 if found is None else int(found)

    def read_back(self, output: str) -> pa.Table:
        return _deltalake().DeltaTable(str(Path(self.path) / output)).to_pyarrow_table()

    def _add(self, output: str, epoch: int, parts: list[Part]) -> None:
        from deltalake.transaction import AddAction

        delta = _deltalake()
        place = Path(self.path) / output
        table = delta.DeltaTable(str(place))
        added = []
        for part in parts:
            about = (place / part.file).stat()
            stats = json.dumps({"numRecords": part.rows})
            added.append(AddAction(part.file, about.st_size, {}, about.st_mtime_ns // 10**6, True, stats))
        mark = delta.CommitProperties(app_transactions=[delta.Transaction(self._query, epoch)])
        table.create_write_transaction(added, "append", table.schema(), commit_properties=mark)


def _deltalake() -> Any:
    try:
        import deltalake
    except ImportError as error:
        raise StreamError(
            "the package 'deltalake' is not installed.",
            remedy="Install it with: pip install 'caesura[delta]'; or write Parquet with sink='folder'.",
        ) from error
    return deltalake
