"""Where an epoch's output goes; every sink is idempotent by epoch.

An epoch is evaluated once: by collecting its packets (memory, callback, console), or by writing files
in the workers and collecting what was written (Parquet). A re-run of an epoch replaces what the first
run left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from caesura.errors import StreamError
from caesura.events import Item, Page, draw
from caesura.io.sinks.rows import rows_table
from caesura.plan import Node
from caesura.runtime.buckets.aligner import Aligner, Epoch
from caesura.runtime.buckets.labels import COUNTS, LATE, OUT, UNREAD
from caesura.runtime.buckets.status import Board
from caesura.runtime.graph.rejected import together
from caesura.runtime.packets.packet import Packet, decode
from caesura.spark.json_files import read_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Sink(Protocol):
    """Takes the packets of an epoch."""

    board: Board
    """How the query stands, as of the last epoch."""

    def open(self, outputs: Mapping[str, Node], buckets: int) -> None: ...
    def write(self, epoch: int, packets: DataFrame) -> None: ...


class CallbackSink:
    """Hands every epoch to a function on the driver."""

    def __init__(self, function: Callable[[Epoch], object]) -> None:
        self._function = function
        self._last = -1
        self.board = Board()

    def open(self, outputs: Mapping[str, Node], buckets: int) -> None:
        """Called once, with the views that will come."""
        self._aligner = Aligner(buckets)

    def write(self, epoch: int, packets: DataFrame) -> None:
        """Gives an epoch to the function."""
        rows = packets.filter("stage = 0").collect()
        if epoch <= self._last:
            return
        self._last = epoch
        some = [Packet.from_row((r.stage, r.label, r.bucket, r.origin, r.seq, bytes(r.data))) for r in rows]
        made = self._aligner.epoch(epoch, some)
        for origin, report in made.reports.items():
            self.board.take(origin, report)
        for told in made.unread:
            self.board.spare(told)
        self._function(made)


class MemorySink(CallbackSink):
    """Keeps everything on the driver: for tests and notebooks."""

    def __init__(self) -> None:
        self.epochs: list[Epoch] = []
        super().__init__(self.epochs.append)

    def items(self, output: str = "out") -> list[Item]:
        """The items of an output, epoch after epoch."""
        return [item for epoch in self.epochs for item in epoch.items.get(output, [])]

    def late(self) -> dict[str, pa.Table]:
        """The late rows by source."""
        found: dict[str, list[pa.RecordBatch]] = {}
        for epoch in self.epochs:
            for source, batches in epoch.late.items():
                found.setdefault(source, []).extend(batches)
        return {name: table for source, some in found.items() for name, table in _tables(source, some)}


class ConsoleSink(CallbackSink):
    """Draws every epoch in the terminal."""

    def __init__(self) -> None:
        super().__init__(self._show)
        self._times: dict[str, pa.DataType] = {}

    def open(self, outputs: Mapping[str, Node], buckets: int) -> None:
        """Learns how each output counts time."""
        super().open(outputs, buckets)
        self._times = {name: node.time for name, node in outputs.items()}

    def _show(self, epoch: Epoch) -> None:
        import sys

        for name, items in epoch.items.items():
            if items:
                drawn = draw(items, time=self._times.get(name))
                sys.stdout.write(f"epoch {epoch.number}, {name}\n{drawn}\n")


@dataclass
class ParquetSink:
    """Writes Parquet files in the workers, one per epoch, bucket and output; the driver commits.

    ``<path>/<output>/epoch-000007-1.parquet`` holds kind, LE, RE, RE_new and the payload;
    ``<path>/_commits/000007.json`` names the epoch's files and appears when all are complete.
    """

    path: str
    board: Board = field(default_factory=Board)
    late_epochs: int = 10_000
    """For how many epochs late rows are kept beside the output."""
    _last: int | None = field(default=None, init=False, repr=False)
    """The last epoch that was committed; None until the commits were looked at, or if there is none."""

    def open(self, outputs: Mapping[str, Node], buckets: int) -> None:
        """Called once, with the views that will come."""
        self._tables = {name: (node.schema, node.time) for name, node in outputs.items()}
        folder = Path(self.path)
        for name in [*outputs, "_commits", "_late"]:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def write(self, epoch: int, packets: DataFrame) -> None:
        """Writes an epoch's files and commits them."""
        self._own(query_of(packets))
        self._put(epoch, packets, self._tables)

    def _put(self, epoch: int, packets: DataFrame, tables: dict[str, Any]) -> None:
        """Writes the given outputs of an epoch, late rows too, and commits."""
        path = self.path

        def save(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            part = context.partitionId() if context is not None else 0
            for line in _save(path, tables, epoch, part, batches):
                yield pa.RecordBatch.from_pylist([line], WRITTEN)

        done = packets.filter("stage = 0").mapInArrow(save, "output string, file string, rows long").collect()
        for report in (json.loads(r.file) for r in done if r.output == COUNTS):
            self.board.take(report["origin"], report)
        for told in (json.loads(r.file) for r in done if r.output == UNREAD):
            self.board.spare(told)
        files = [{"output": r.output, "file": r.file, "rows": r.rows} for r in done if r.output not in TOLD]
        commits = Path(self.path) / "_commits"
        before = self._before(epoch)
        _commit(commits / f"{epoch:06d}.json", {"epoch": epoch, "before": before, "files": files})
        _commit(commits / LAST, epoch)
        self._last = epoch
        self._forget_late(epoch - self.late_epochs)

    def _before(self, epoch: int) -> int | None:
        """The epoch that was committed before this one; a commit that is gone stops the query."""
        if self._last is None:
            self._last = _checked_commits(Path(self.path) / "_commits")
        return self._last if self._last is None or self._last < epoch else _earlier(self.path, epoch)

    def _own(self, query: str) -> None:
        """A folder goes with one checkpoint: another query's epochs would replace those that are there."""
        file = Path(self.path) / "_commits" / "query"
        if not query:
            return
        if not file.exists():
            file.write_text(query)
        elif file.read_text() != query:
            raise StreamError(
                f"'{self.path}' was written from another checkpoint, and this query's epochs would replace "
                "what is there.",
                remedy="Go on with that checkpoint, or write into a new folder.",
            )

    def _forget_late(self, last: int) -> None:
        """Removes the late rows of epochs up to one, and has the status tell."""
        if last < 0 or last % FORGETS_EVERY:
            return
        for file in (Path(self.path) / "_late").glob("*.parquet"):
            source, _, rest = file.stem.rpartition("-epoch-")
            if int(rest.partition("-")[0]) <= last:
                self.board.forget(source, pq.read_metadata(file).num_rows)
                file.unlink(missing_ok=True)


def make_again(packets: DataFrame) -> None:
    """Runs an epoch whose output is there already, for the state that it leaves."""
    packets.select("label").collect()


def query_of(packets: DataFrame) -> str:
    """The id of the streaming query whose epoch this is; none for a batch."""
    return packets.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or ""


FORGETS_EVERY = 100
"""Late rows are looked through once in so many epochs."""
TOLD = (COUNTS, UNREAD)
"""What is for the driver's eyes, not for files."""
WRITTEN = pa.schema([("output", pa.string()), ("file", pa.string()), ("rows", pa.int64())])


def _save(
    path: str, tables: dict[str, Any], epoch: int, part: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[dict[str, Any]]:
    """Writes one worker's share of an epoch."""
    items: dict[str, list[Item]] = {}
    late: dict[str, list[pa.RecordBatch]] = {}
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("label", "origin", "data"))
        for label, origin, data in zip(*columns, strict=True):
            header, some = decode(data)
            if label in TOLD:
                yield {"output": label, "file": json.dumps({"origin": origin, **header}), "rows": 0}
                continue
            if label == LATE:
                rows = [i.payload for i in some if isinstance(i, Page)]
                late.setdefault(header["source"], []).extend(rows)
            elif label.removeprefix(OUT) in tables:
                items.setdefault(label.removeprefix(OUT), []).extend(some)
    name = f"epoch-{epoch:06d}-{part}.parquet"
    for output, came in items.items():
        schema, time = tables[output]
        table = rows_table([i for i in came if isinstance(i, Page)], schema, time)
        if table.num_rows:
            yield _written(Path(path) / output / name, output, table)
    for source, rows in late.items():
        for step, table in _tables(source, rows):
            yield _written(Path(path) / "_late" / f"{step}-{name}", "_late", table)


def _tables(name: str, batches: list[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    return together(name, [pa.Table.from_batches([batch]) for batch in batches])


def _written(file: Path, output: str, table: pa.Table) -> dict[str, Any]:
    partial = file.with_name("." + file.name)
    pq.write_table(table, partial)
    partial.rename(file)
    return {"output": output, "file": str(file.name), "rows": table.num_rows}


def _checked_commits(commits: Path) -> int | None:
    """The last epoch that was committed; refuses commits of which one has been taken away.

    Each names the one before it, so only those behind a gap have to be opened.
    """
    there = sorted(int(file.stem) for file in commits.glob("*.json"))
    for earlier, later in pairwise([-1, *there]):
        if later != earlier + 1:
            before = read_json(commits / f"{later:06d}.json", COMMIT_REMEDY).get("before", earlier)
            if before is not None and before != earlier:
                raise _no_commit(commits, before)
    last = commits / LAST
    if last.is_file() and (number := int(last.read_text() or -1)) > (there[-1] if there else -1):
        raise _no_commit(commits, number)
    return there[-1] if there else None


def _earlier(path: str, epoch: int) -> int | None:
    """What an epoch that is written again says of the one before it."""
    there = (int(file.stem) for file in (Path(path) / "_commits").glob("*.json"))
    return max((number for number in there if number < epoch), default=None)


def _no_commit(commits: Path, epoch: int) -> StreamError:
    return StreamError(
        f"'{commits / f'{epoch:06d}.json'}' is gone, so whoever reads the output has lost that epoch's rows.",
        remedy="Put it back and start again, or write into a new folder with a new checkpoint.",
    )


LAST = "last"
COMMIT_REMEDY = "Put back the commit as it was, or write into a new folder with a new checkpoint."


def _commit(file: Path, content: Any) -> None:
    partial = file.with_suffix(".tmp")
    partial.write_text(json.dumps(content))
    partial.rename(file)
