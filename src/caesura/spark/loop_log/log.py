"""The loop log: what goes backwards leaves an epoch as files and enters the next one as a source.

The tasks of the last stage write a file per epoch and bucket, whole or not at all; an epoch that runs
again writes the same file again. It lies beside the checkpoint, so it must be where driver and
executors both reach it, as the checkpoint must.

>>> import tempfile
>>> log = LoopLog(tempfile.mkdtemp())
>>> log.write(3, 0, pa.record_batch({"n": [1]})); log.write(4, 0, None)
>>> log.latest(), [name for name in log.between(-1, 3)]
(3, ['000000000003-0000.arrow'])
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.chunks import later
from caesura.io.places import Place
from caesura.io.places.json_files import FRESH, parsed
from caesura.io.places.lease import NAME as LEASE
from caesura.io.places.lease import refuse_deposed
from caesura.spark.loop_log.records import LogRecord

SUFFIX = ".arrow"
FEEDBACK = ".feedback"
OWNER = "owner"
REBUILT = "plan-"
"""How the folders of a checkpoint begin in which Spark's part of rebuilt plans lies."""
LOCK = "lock"
SENT = "sent.json"
"""The files that there were when the last epoch was through."""
SENT_REMEDY = (
    "Put back the file as it was; or take it away, if you know that no file of the loop log is gone."
)
FORMAT, LOOP_FORMAT = b"caesura.format", 1
"""What the files of epochs say of their form; those of 0.1.0 say nothing."""
NO_END = 10**12
R = TypeVar("R", bound=LogRecord)


class LoopLog:
    """A folder of packets by epoch and bucket, of feedback by number, and of the records beside them."""

    def __init__(self, place: str, fence: int = 0) -> None:
        self.place = place
        self._folder = Place.of(place)
        self._fence = fence
        """The number of the lease that it is written under, on the checkpoint around it; 0 for none."""

    def write(self, epoch: int, bucket: int, rows: pa.RecordBatch | None) -> None:
        """Puts what a bucket sends back in an epoch; None takes away what an earlier try left."""
        name = f"{epoch:012d}-{bucket:04d}{SUFFIX}"
        if rows is None:
            self._refuse_deposed()
            self.remove(name)
        else:
            self._put(name, ipc_bytes(rows.replace_schema_metadata({FORMAT: str(LOOP_FORMAT)})))

    # -- feedback of consumers ------------------------------------------------------------------------

    def add_feedback(self, rows: pa.RecordBatch) -> int:
        """Puts the packets of a consumer's feedback, for the next epoch; gives its number."""
        number, data = self.last_feedback() + 1, ipc_bytes(rows)
        while not self._put(f"{number:012d}{FEEDBACK}", data, fresh=True):
            number += 1
        return number

    def last_feedback(self) -> int:
        """The number of the last feedback; -1 when there was none."""
        names = self._names(FEEDBACK)
        return int(names[-1].split(".")[0]) if names else -1

    def feedback(self, start: int, end: int) -> list[str]:
        """The files of feedback behind start, up to end, that are there."""
        return [name for name in self._names(FEEDBACK) if start < int(name.split(".")[0]) <= end]

    # -- records --------------------------------------------------------------------------------------

    def save(self, name: str, record: LogRecord) -> None:
        """Writes a record, unless it is there as it is."""
        text = json.dumps(record.to_json())
        if self._text(name) != text:
            self._put(name, text.encode())

    def load(self, name: str, kind: type[R], remedy: str = FRESH) -> R | None:
        """The record under a name, if there is one."""
        text = self._text(name)
        return None if text is None else self._record(text, name, kind, remedy)

    def update(self, name: str, kind: type[R], change: Callable[[R | None], R], remedy: str = FRESH) -> None:
        """Replaces a record by what is made of it; no other update comes between, wherever it is from."""

        def changed(held: bytes | None) -> bytes:
            before = None if held is None else self._record(held.decode(), name, kind, remedy)
            return json.dumps(change(before).to_json()).encode()

        with self._writing():
            (self._folder / name).update(changed)

    def _record(self, text: str, name: str, kind: type[R], remedy: str) -> R:
        return kind.from_json(parsed(text, f"{self.place}/{name}", remedy, wants=kind.wants))

    def records(self, suffix: str) -> list[str]:
        """The names of the records that end so."""
        return self._names(suffix)

    def _text(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While it lasts nobody else on this machine who asks for it is in; elsewhere see `update`."""
        folder = self._folder.local
        if folder is None:
            yield
            return
        self._folder.make_folder()
        with (folder / LOCK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def remove(self, name: str) -> None:
        """Takes away the record under a name, if there is one."""
        (self._folder / name).remove()

    def own(self, query: str) -> None:
        """Takes the log for a query; one that another query has written to is refused."""
        if self._put(OWNER, query.encode(), fresh=True):
            return
        owner = self._text(OWNER) or ""
        if owner != query and query.startswith(owner):
            raise StreamError(
                f"'{self.place}/{OWNER}' is not whole: it says '{owner}'.",
                remedy="Write the 'id' of the file 'metadata' of the checkpoint into it.",
            )
        if owner != query:
            raise StreamError(
                f"the loop log in '{self.place}' belongs to another query ({owner}).",
                remedy="Give each query a loop log of its own, beside its checkpoint.",
            )

    def _put(self, name: str, data: bytes, *, fresh: bool = False) -> bool:
        """Writes a whole file; False where it must be fresh and is there."""
        file = self._folder / name
        with self._writing():
            self._refuse_deposed()
            if fresh:
                return file.create(data)
            file.put(data)
            return True

    def _refuse_deposed(self) -> None:
        """Refuses to write, once for what it is used for, where another start has taken over."""
        if self._fence:
            refuse_deposed(_checkpoint_of(self._folder), self._fence)
            self._fence = 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StreamError(
                f"the loop log in '{self.place}' cannot be written: {error}.",
                remedy="Make room there, or make it writable; the epoch runs again from the checkpoint.",
            ) from error

    def names(self) -> list[str]:
        """The files of epochs, in order of epoch and bucket."""
        return self._names(SUFFIX)

    def _names(self, suffix: str) -> list[str]:
        return [file.name for file in self._folder.files(suffix)]

    def latest(self) -> int:
        """The last epoch that sent anything back; -1 when none has."""
        names = self.names()
        return _epoch(names[-1]) if names else -1

    def between(self, start: int, end: int) -> list[str]:
        """The files of the epochs behind start, up to end."""
        return [name for name in self.names() if start < _epoch(name) <= end]

    def note_sent(self) -> None:
        """Writes down, on the driver, which files there are once an epoch is through."""
        text = json.dumps(self.names())
        if self._text(SENT) != text:
            self._put(SENT, text.encode())

    def sent(self, start: int) -> list[str]:
        """The files of the epochs behind start; one that was written and is gone is an error."""
        there = self.between(start, NO_END)
        sent = self._text(SENT)
        for name in [] if sent is None else parsed(sent, f"{self.place}/{SENT}", SENT_REMEDY):
            if _epoch(name) > start and name not in there:
                raise self._gone(name)
        return there

    def all_feedback(self, start: int, end: int) -> list[str]:
        """The files of feedback behind start, up to end, numbered without gaps: each must be there."""
        return [f"{number:012d}{FEEDBACK}" for number in range(start + 1, end + 1)]

    def read(self, name: str) -> pa.Table:
        """The rows of a file."""
        try:
            table = pa.ipc.open_stream((self._folder / name).read_bytes()).read_all()
            table.validate(full=True)
        except FileNotFoundError:
            raise self._gone(name) from None
        except (pa.ArrowException, OSError) as error:
            raise StreamError(
                f"the file '{self.place}/{name}' of the loop log cannot be read: {error}.",
                remedy="Put back the file as it was, or start with a new checkpoint.",
            ) from None
        number = int((table.schema.metadata or {}).get(FORMAT, 0))
        if number > LOOP_FORMAT:
            raise later(f"the file '{self.place}/{name}' of the loop log", number, LOOP_FORMAT)
        return table.replace_schema_metadata(None)

    def _gone(self, name: str) -> StreamError:
        return StreamError(
            f"the file '{self.place}/{name}' of the loop log is gone, and rows with it.",
            remedy="Put it back and start again, or start with a new checkpoint.",
        )

    def forget(self, epoch: int, number: int) -> None:
        """Removes the files of epochs and of feedback up to these; the last feedback keeps its number."""
        for name in (*self.between(-1, epoch), *self.feedback(-1, min(number, self.last_feedback() - 1))):
            self.remove(name)


def _epoch(name: str) -> int:
    return int(name.split("-")[0])


def ipc_bytes(rows: pa.RecordBatch) -> bytes:
    """A batch in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _checkpoint_of(folder: Place) -> Place:
    """The checkpoint around a loop log; the log of a rebuilt plan lies a folder deeper."""
    around = folder.parent
    deeper = around.name.startswith(REBUILT) and not (around / LEASE).is_file()
    return around.parent if deeper else around
