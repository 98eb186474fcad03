"""Parquet files as a sink: workers write them, the driver commits each epoch by a file that names them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.sinks.commits import COMMIT_FORMAT, generation_folder, generation_numbers, read_commit
from caesura.io.sinks.parquet_bytes import parquet_bytes
from caesura.io.sinks.partitions import check_partition, partitions, with_partition
from caesura.io.sinks.protocol import LATE, Part, TableSink
from caesura.io.sinks.rows import row_schema
from caesura.plan import Node
from caesura.runtime.metrics.status import Board
from caesura.runtime.sinks.late_rows import KEPT_EPOCHS, LateRows

LAST, OWNER, FENCE = "last", "query", "fence"
OWNER_REMEDY = "Write the 'id' of 'metadata' of the checkpoint into it; every commit has it as 'query'."


@dataclass(frozen=True)
class ParquetWriter:
    """Writes the parts of an epoch into a folder."""

    path: str
    epoch: int
    partition_by: tuple[str, ...] = ()

    def __call__(self, output: str, worker: int, table: pa.Table) -> Part | list[Part]:
        """A file of an output, or of the late rows of a source, or one in each folder; each appears whole."""
        name = f"epoch-{self.epoch:06d}-{worker}.parquet"
        folder, _, source = output.partition("/")
        if source or not self.partition_by:
            return self._put(folder, f"{source}-{name}" if source else name, table)
        parts = partitions(table, self.partition_by)
        return [self._put(folder, f"{part.folder}/{name}", part.rows) for part in parts]

    def _put(self, folder: str, file: str, table: pa.Table) -> Part:
        data = parquet_bytes(table)
        (Place.of(self.path) / folder / file).put(data)
        return Part(folder, file, table.num_rows, len(data), hashlib.sha256(data).hexdigest())


@dataclass
class ParquetSink(TableSink):
    """All changes as Parquet files, one per epoch, bucket and output. What a path alone means.

    ``<path>/<output>/epoch-000007-1.parquet`` holds kind, LE, RE, RE_new and the payload;
    ``<path>/_commits/000007.json`` names the epoch's files and appears when all are complete. A later
    generation of the output has the same in ``<path>/_generation-2``.

    Parameters
    ----------
    path
        The folder, on this machine or in an object store.
    late_epochs
        For how many epochs late rows are kept beside the output.
    partition_by
        Columns whose values name folders, ``day=2026-01-01/``, in place of standing in the files.

    Notes
    -----
    Exactly once: an epoch that runs again writes the same files.

    Examples
    --------
    >>> import tempfile
    >>> import caesura as cz
    >>> from caesura.spark import ParquetSink
    >>> folder = tempfile.mkdtemp()
    >>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts")
    >>> query = clicks.query(sink=ParquetSink(f"{folder}/out"), checkpoint=f"{folder}/state")
    >>> query.run()
    >>> query.table().to_pylist()
    [{'LE': 1, 'RE': 2, 'id': 7}]
    """

    path: str
    board: Board = field(default_factory=Board)
    late_epochs: int = KEPT_EPOCHS
    """For how many epochs late rows are kept beside the output."""
    partition_by: Sequence[str] = ()
    """Columns whose values name folders, ``day=2026-01-01/``, in place of standing in the files."""
    _last: int | None = field(default=None, init=False, repr=False)
    """The last epoch that was committed; None until the commits were looked at, or if there is none."""
    _fence: int = field(default=0, init=False, repr=False)
    """The fencing number of this start, which its commits carry; 0 for a batch."""
    _owner: str = field(default="", init=False, repr=False)
    """The id of the query that the folder belongs to; empty for a batch."""

    _schemas: dict[str, pa.Schema] = field(default_factory=dict, init=False, repr=False)
    _begun: bool = field(default=False, init=False, repr=False)
    _generation: int = field(default=1, init=False, repr=False)
    """The generation of the output that epochs belong to; a later one lies in a folder of its own."""
    _plan: int = field(default=1, init=False, repr=False)
    """The number of the plan that makes them."""

    @property
    def folder(self) -> str:  # type: ignore[override]
        return str(self._place.absolute())

    @property
    def _place(self) -> Place:
        return generation_folder(Place.of(self.path), self._generation)

    @property
    def _commits(self) -> Place:
        return self._place / "_commits"

    @property
    def _ownership(self) -> Place:
        """Where it says whose the folder is, whichever generation is written."""
        return Place.of(self.path) / "_commits"

    def reach(self) -> None:
        Place.of(self.path).reach()

    def open(self, outputs: Mapping[str, Node]) -> None:
        self._schemas = {name: row_schema(node.schema, node.time) for name, node in outputs.items()}
        for schema in self._schemas.values():
            check_partition(self.partition_by, schema)
        root = Place.of(self.path).reach()
        (root / "_commits").make_folder()
        self._generation = generations(root)[-1]
        self._make_folders()

    def _make_folders(self) -> None:
        for name in [*self._schemas, "_commits", LATE]:
            (self._place / name).make_folder()

    def enter(self, generation: int, plan: int) -> None:
        self._plan = plan
        if generation != self._generation:
            self._generation, self._last, self._begun = generation, None, False
            self._make_folders()

    def attach(self, query: str) -> None:
        """A folder goes with one checkpoint: another query's epochs would replace those that are there."""
        if not query:
            return
        owner, fence = self._ownership / OWNER, self._ownership / FENCE
        known = owner.read_text() if owner.is_file() else self._last_commit().get("query") or query
        if known == query and not owner.create(query.encode()):
            known = owner.read_text()
        if known != query and query.startswith(known):
            raise StreamError(f"'{owner}' is not whole: it says '{known}'.", remedy=OWNER_REMEDY)
        if known != query:
            raise StreamError(
                f"'{self.path}' was written from another checkpoint, and this query's epochs would replace "
                "what is there.",
                remedy="Go on with that checkpoint, or write into a new folder.",
            )
        before = _number(fence) or int(self._last_commit().get("fence", 0))
        self._fence = int(fence.update(lambda held: str(1 + int(held or before)).encode()))
        self._owner = query

    def _last_commit(self) -> dict[str, Any]:
        last = self._commits.files(".json")[-1:]
        return read_commit(last[0]) if last else {}

    def last_epoch(self) -> int | None:
        if self._last is None:
            self._last = checked_commits(self._commits)
        return self._last

    def begin(self, epoch: int) -> None:
        """A try that failed ended its start: there is partial work before the first epoch only."""
        if not self._begun:
            self.abort(epoch)
            self._begun = True

    def writer(self, epoch: int) -> ParquetWriter:
        return ParquetWriter(str(self._place), epoch, tuple(self.partition_by))

    def commit(self, epoch: int, parts: Sequence[Part]) -> None:
        self._refuse_deposed(_number(self._ownership / FENCE))
        own = {"format": COMMIT_FORMAT, "query": self._owner, "fence": self._fence}
        own |= {"generation": self._generation, "plan": self._plan}
        content = {**own, "epoch": epoch, "before": self._before(epoch), "files": list(map(vars, parts))}
        file, data = self._commits / f"{epoch:06d}.json", json.dumps(content).encode()
        if not file.create(data):  # by another start, or by this one for another table
            self._refuse_deposed(max(self._fence, int(read_commit(file).get("fence", 0))))
            file.put(data)
        (self._commits / LAST).put(json.dumps(epoch).encode())
        self._last = epoch
        LateRows(self._place / LATE).forget(epoch - self.late_epochs, self.board.forget)

    def _refuse_deposed(self, latest: int) -> None:
        """Refuses to write behind a start that has taken over, however late it is found out."""
        if self._fence and latest != self._fence:
            raise StreamError(
                f"another start of this query writes to '{self.path}': its number is {latest}, and this "
                f"one's {self._fence}.",
                remedy="Let the later one run, or stop it and start this one again.",
            )

    def abort(self, epoch: int) -> None:
        if (self._commits / f"{epoch:06d}.json").exists():
            return
        for folder in [*self._schemas, LATE]:
            for file in (self._place / folder).files_below(".parquet"):
                if f"epoch-{epoch:06d}-" in file.name:
                    file.remove()

    def read_back(self, output: str) -> pa.Table:
        tables = [self._read(part) for part in self._parts() if part.output == output]
        return pa.concat_tables(tables) if tables else self._schemas[output].empty_table()

    def _read(self, part: Part) -> pa.Table:
        """The rows of a part; a file that is not what was committed is not looked into."""
        place = self._place / part.output / part.file
        try:
            data = place.read_bytes()
            if part.sha256 and hashlib.sha256(data).hexdigest() != part.sha256:
                raise ValueError("its hash is not the one of its commit")
            table = pq.ParquetFile(pa.BufferReader(data)).read()
        except (OSError, ValueError, pa.ArrowException) as error:
            raise StreamError(
                f"'{place}' cannot be read: {error}.",
                remedy=f"Put it back as it was; `caesura audit {self.path}` lists what was changed.",
            ) from error
        return with_partition(table, part.file.rpartition("/")[0], self._schemas[part.output])

    def _parts(self) -> list[Part]:
        """The parts that count, epoch after epoch."""
        commits = map(read_commit, self._commits.files(".json"))
        return [Part(**part) for commit in commits for part in commit["files"]]

    def _before(self, epoch: int) -> int | None:
        """The epoch that was committed before this one; a commit that is gone stops the query."""
        last = self.last_epoch()
        if last is None or last < epoch:
            return last
        there = (int(file.stem) for file in self._commits.files(".json"))
        return max((number for number in there if number < epoch), default=None)


def generations(root: Place) -> list[int]:
    """The generations of an output of which anything is committed, and the first; the last one counts."""
    later = generation_numbers(root)[1:]
    return [1, *(n for n in later if (generation_folder(root, n) / "_commits").files(".json"))]


def checked_commits(commits: Place) -> int | None:
    """The last epoch that was committed; refuses commits of which one has been taken away.

    Each names the one before it, so only those behind a gap have to be opened.
    """
    there = sorted(int(file.stem) for file in commits.files(".json"))
    for earlier, later in pairwise([-1, *there]):
        if later != earlier + 1:
            before = read_commit(commits / f"{later:06d}.json").get("before", earlier)
            if before is not None and before != earlier:
                raise _no_commit(commits, before)
    if (number := _number(commits / LAST, -1)) > (there[-1] if there else -1):
        raise _no_commit(commits, number)
    return there[-1] if there else None


def _no_commit(commits: Place, epoch: int) -> StreamError:
    return StreamError(
        f"'{commits / f'{epoch:06d}.json'}' is gone, so whoever reads the output has lost that epoch's rows.",
        remedy="Put it back and start again, or write into a new folder with a new checkpoint.",
    )


def _number(file: Place, nothing: int = 0) -> int:
    """The number in a file; another where there is no file."""
    if not file.is_file():
        return nothing
    try:
        return int(file.read_text())
    except ValueError:
        raise StreamError(
            f"'{file}' is not whole: it holds no number.",
            remedy="Put it back as it was: 'fence' is at least as large as in any commit, 'last' is the "
            "number of the last commit. Or write into a new folder with a new checkpoint.",
        ) from None
