"""Spark's own logs in a checkpoint: which offsets an epoch reads, and which files they stand for.

Spark reads an epoch again after a kill from the files that its log names, and passes over those that are
gone. So an epoch is held against the log before it runs: a file that is not there stops the query.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple
from urllib.parse import unquote

from caesura.errors import CaesuraError, DataError, StreamError
from caesura.io.places import Place


class LoggedFile(NamedTuple):
    """A file, as Spark's log of a source has it."""

    batch: int
    path: str
    changed: int
    """When it was last written, in milliseconds, as it was when Spark listed it."""


def offsets_of(checkpoint: Place, epoch: int) -> list[str]:
    """What Spark's offset log says of each source in an epoch; nothing before the first."""
    file = checkpoint / "offsets" / str(epoch)
    return file.read_text().splitlines()[2:] if file.is_file() else []


def files_of(checkpoint: Place, source: int, batch: int) -> list[str]:
    """The files that Spark's own log names for a batch of a source."""
    return [path for _, path in files_between(checkpoint, source, batch, batch)]


def files_between(checkpoint: Place, source: int, first: int, last: int) -> list[tuple[int, str]]:
    """The files of some batches of a source, each with its batch, from Spark's own log."""
    return [(file.batch, file.path) for file in logged_between(checkpoint, source, first, last)]


def logged_between(checkpoint: Place, source: int, first: int, last: int) -> list[LoggedFile]:
    """All that Spark's own log says of the files of some batches of a source.

    A batch has a file of its own, or stands in one that Spark has made of all batches up to a later one.
    """
    there = {file.name: file for file in (checkpoint / "sources" / str(source)).files()}
    compact = sorted(int(name.removesuffix(".compact")) for name in there if name.endswith(".compact"))
    found: list[LoggedFile] = []
    batch = first
    while batch <= last:
        whole = next((number for number in compact if number >= batch), None)
        file = there.get(str(batch)) or there.get(f"{whole}.compact")
        if file is None:
            raise DataError(
                f"Spark's log of source {source} has lost batch {batch}.",
                remedy="Start with a new checkpoint and a new folder.",
            )
        end = batch if str(batch) in there or whole is None else min(whole, last)
        found += [entry for entry in _entries(file) if batch <= entry.batch <= end]
        batch = end + 1
    return found


def _entries(file: Place) -> list[LoggedFile]:
    try:
        entries = [json.loads(line) for line in file.read_text().splitlines()[1:] if line]
        return [LoggedFile(int(e["batchId"]), path_of(str(e["path"])), int(e["timestamp"])) for e in entries]
    except (ValueError, KeyError, TypeError):
        raise _damaged(file, PUT_BACK) from None


def path_of(logged: str) -> str:
    """A path as `Place` reads it: Spark's log has it with escapes, which a URI of a store does without."""
    return logged if logged.startswith("file:") else unquote(logged)


def reached(path: str) -> Place | None:
    """A file that Spark's log names; None of one in a store that only Spark knows."""
    try:
        return Place.of(path)
    except CaesuraError:
        return None


def check_logs(checkpoint: Place) -> None:
    """Refuses a checkpoint the end of whose logs Spark could not read, or would read as something else."""
    offsets, commits = (_numbers(checkpoint / name) for name in ("offsets", "commits"))
    for number in commits[-1:]:
        file = checkpoint / "commits" / str(number)
        if not _whole(file.read_text().splitlines(), 2):
            raise _damaged(file, "Take it away: its epoch runs again, and a sink that has it takes nothing.")
        if number not in offsets:
            raise StreamError(
                f"'{checkpoint / 'offsets' / str(number)}' is gone, so nothing tells how far was read.",
                remedy=PUT_BACK,
            )
    lines = [(checkpoint / "offsets" / str(n)).read_text().splitlines() for n in offsets[-2:]]
    if lines and not _whole(lines[-1], max(3, len(lines[0]))):
        raise _damaged(checkpoint / "offsets" / str(offsets[-1]), PUT_BACK)


PUT_BACK = "Put back the file as it was, or start with a new checkpoint and a new sink."


def _numbers(folder: Place) -> list[int]:
    return sorted(int(file.name) for file in folder.files() if file.name.isdigit())


def _whole(lines: list[str], wanted: int) -> bool:
    """Whether a log of Spark's has so many lines, the first its version, the others JSON or nothing."""
    if len(lines) < wanted or not re.fullmatch(r"v\d+", lines[0]):
        return False
    try:
        return all(line == "-" or json.loads(line) is not None for line in lines[1:])
    except ValueError:
        return False


def _damaged(file: Place, remedy: str) -> StreamError:
    return StreamError(f"'{file}', which Spark wrote, is not whole.", remedy=remedy)


def last_offsets(checkpoint: Place) -> int:
    """The last epoch whose offsets Spark has written down; -1 for none."""
    return max(_numbers(checkpoint / "offsets"), default=-1)


def last_commit(checkpoint: Place) -> int:
    """The last epoch that Spark has committed; -1 for none."""
    return max(_numbers(checkpoint / "commits"), default=-1)


def check_files(checkpoint: Place, epoch: int) -> None:
    """Refuses an epoch one of whose files is gone."""
    before = offsets_of(checkpoint, epoch - 1)
    for source, entry in enumerate(offsets_of(checkpoint, epoch)):
        end = last_batch(entry)
        start = last_batch(before[source]) if source < len(before) else None
        if end is not None:
            begin = 0 if start is None else start + 1
            _check([path for _, path in files_between(checkpoint, source, begin, end)], epoch)


def last_batch(entry: str) -> int | None:
    """The last batch of files that an entry of the offset log covers; None of another kind of source."""
    if entry == "-":
        return None
    offset = json.loads(entry)
    return int(offset["logOffset"]) if isinstance(offset, dict) and "logOffset" in offset else None


def _check(paths: list[str], epoch: int) -> None:
    for path in paths:
        file = reached(path)
        if file is not None and not file.exists():
            raise StreamError(
                f"the file '{file}', which belongs to epoch {epoch}, is gone.",
                remedy="Put it back and start again with the same checkpoint; or start with a new checkpoint "
                "to do without it.",
            )
