"""Delta tables as a sink: workers write the files, the driver commits each epoch in one transaction.

The transaction carries the query's id and the epoch's number, so an epoch that runs again after a kill
finds itself in the table's log and adds nothing. Needs the package `deltalake`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caesura.errors import StreamError
from caesura.io.sinks.rows import row_schema
from caesura.plan import Node
from caesura.spark.sinks.sinks import ParquetSink, make_again, query_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class DeltaSink(ParquetSink):
    """Writes every output as a Delta table ``<path>/<output>`` of kind, LE, RE, RE_new and the payload."""

    def open(self, outputs: Mapping[str, Node], buckets: int) -> None:
        delta = _deltalake()
        super().open(outputs, buckets)
        for name, node in outputs.items():
            place = Path(self.path) / name
            if not delta.DeltaTable.is_deltatable(str(place)):
                delta.DeltaTable.create(str(place), row_schema(node.schema, node.time), name=name)

    def write(self, epoch: int, packets: DataFrame) -> None:
        query = query_of(packets) or "batch"
        behind = [name for name in self._tables if self._version(name, query) < epoch]
        if not behind:
            make_again(packets)
            return
        self._own(query)
        self._put(epoch, packets, {name: self._tables[name] for name in behind})
        made = json.loads((Path(self.path) / "_commits" / f"{epoch:06d}.json").read_text())
        for name in behind:
            self._add(name, query, epoch, [f for f in made["files"] if f["output"] == name])

    def _version(self, output: str, query: str) -> int:
        """The last epoch of the query that the table has; -1 for none."""
        found = _deltalake().DeltaTable(str(Path(self.path) / output)).transaction_version(query)
        return -1 if found is None else int(found)

    def _add(self, output: str, query: str, epoch: int, files: list[dict[str, Any]]) -> None:
        from deltalake.transaction import AddAction

        delta = _deltalake()
        place = Path(self.path) / output
        table = delta.DeltaTable(str(place))
        added = []
        for one in files:
            about = (place / one["file"]).stat()
            stats = json.dumps({"numRecords": one["rows"]})
            added.append(AddAction(one["file"], about.st_size, {}, about.st_mtime_ns // 10**6, True, stats))
        mark = delta.CommitProperties(app_transactions=[delta.Transaction(query, epoch)])
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
