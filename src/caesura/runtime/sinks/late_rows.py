"""Late rows as Parquet files, an epoch at a time: where a sink keeps none, beside the checkpoint.

>>> import tempfile
>>> kept = LateRows(Place.of(tempfile.mkdtemp()))
>>> kept.put(7, {"clicks": pa.table({"reason": ["came late"], "id": [3]})})
>>> kept.read()["clicks"].to_pylist()
[{'reason': 'came late', 'id': 3}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from caesura.events import Item
from caesura.io.places import Place
from caesura.io.sinks.parquet_bytes import parquet_bytes
from caesura.io.sinks.protocol import BucketWriter, Sink
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.graph.rejected import late_tables, together

FOLDER = "late"
"""Where they lie in a checkpoint."""
KEPT_EPOCHS = 10_000
"""For how many epochs they are kept."""
LOOKED_THROUGH_EVERY = 100
"""They are looked through once in so many epochs."""
Forget = Callable[[str, int], None]
"""Is told of so many rows of a source that are no longer kept."""


@dataclass(frozen=True)
class LateRows:
    """A folder of late rows; an epoch that is written again replaces its files."""

    folder: Place

    @staticmethod
    def beside(checkpoint: Place) -> LateRows:
        """Those of a query with this checkpoint."""
        return LateRows(checkpoint / FOLDER)

    def put(self, epoch: int, tables: Mapping[str, pa.Table], *, writer: int = 0) -> None:
        """Keeps what one writer has of an epoch."""
        for source, rows in tables.items():
            if rows.num_rows:
                (self.folder / f"{source}-epoch-{epoch:06d}-{writer}.parquet").put(parquet_bytes(rows))

    def keep(self, sink: Sink, epoch: Epoch) -> None:
        """Keeps the late rows of an epoch that its sink would let go of."""
        if not sink.keeps_late:
            self.put(epoch.number, epoch.late_tables())
            self.forget(epoch.number - KEPT_EPOCHS, sink.board.forget)

    def files(self) -> Iterator[tuple[str, int, Place]]:
        """Each file, with its source and its epoch."""
        for file in self.folder.files(".parquet"):
            source, _, rest = file.stem.rpartition("-epoch-")
            yield source, int(rest.partition("-")[0]), file

    def forget(self, last: int, told: Forget) -> None:
        """Removes the rows of epochs up to one, now and then."""
        if last < 0 or last % LOOKED_THROUGH_EVERY:
            return
        for source, epoch, file in self.files():
            if epoch <= last:
                told(source, pq.read_metadata(file.open()).num_rows)
                file.remove()

    def read(self, counts: Callable[[int], bool] = lambda _: True) -> dict[str, pa.Table]:
        """The rows by source, of the epochs that count; where columns differ, each by itself."""
        found: dict[str, list[pa.Table]] = {}
        for source, epoch, file in self.files():
            if counts(epoch):
                found.setdefault(source, []).append(pq.read_table(file.open()))
        return {name: table for source, some in found.items() for name, table in together(source, some)}


@dataclass(frozen=True)
class LateAside:
    """Writes what buckets give in one epoch, and keeps their late rows."""

    writer: BucketWriter
    kept: LateRows
    epoch: int

    def prepare(self, buckets: Sequence[int]) -> None:
        """Opens what these buckets are written with."""
        self.writer.prepare(buckets)

    def __call__(
        self, bucket: int, items: Sequence[Item], late: Mapping[str, Sequence[pa.RecordBatch]]
    ) -> None:
        """Takes what a bucket gives."""
        for source, batches in late.items():
            self.kept.put(self.epoch, dict(late_tables(source, list(batches))), writer=bucket)
        self.writer(bucket, items, late)
