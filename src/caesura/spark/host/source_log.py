"""Spark's own logs in a checkpoint: which offsets an epoch reads, and which files they stand for.

Spark reads an epoch again after a kill from the files that its log names, and passes over those that are
gone. So an epoch is held against the log before it runs: a file that is not there stops the query.
"""

from __future__ import annotations

import json

from caesura.errors import DataError, StreamError
from caesura.io.places import Place


def offsets_of(checkpoint: Place, epoch: int) -> list[str]:
    """What Spark's offset log says of each source in an epoch; nothing before the first."""
    file = checkpoint / "offsets" / str(epoch)
    return file.read_text().splitlines()[2:] if file.is_file() else []


def files_of(checkpoint: Place, source: int, batch: int) -> list[str]:
    """The files that Spark's own log names for a batch of a source."""
    folder = checkpoint / "sources" / str(source)
    file = next((f for f in (folder / str(batch), folder / f"{batch}.compact") if f.exists()), None)
    if file is None:
        raise DataError(
            f"Spark's log of source {source} has lost batch {batch}.",
            remedy="Start with a new checkpoint and a new folder.",
        )
    entries = [json.loads(line) for line in file.read_text().splitlines()[1:] if line]
    return [e["path"] for e in entries if e["batchId"] == batch]


def check_files(checkpoint: Place, epoch: int) -> None:
    """Refuses an epoch one of whose files is gone."""
    before = offsets_of(checkpoint, epoch - 1)
    for source, entry in enumerate(offsets_of(checkpoint, epoch)):
        end = _batch(entry)
        start = _batch(before[source]) if source < len(before) else None
        for batch in range(0 if start is None else start + 1, 0 if end is None else end + 1):
            _check(files_of(checkpoint, source, batch), epoch)


def _batch(entry: str) -> int | None:
    """The last batch of files that an entry of the offset log covers; None of another kind of source."""
    if entry == "-":
        return None
    offset = json.loads(entry)
    return int(offset["logOffset"]) if isinstance(offset, dict) and "logOffset" in offset else None


def _check(paths: list[str], epoch: int) -> None:
    for path in paths:
        if not (file := Place.of(path)).exists():
            raise StreamError(
                f"the file '{file}', which belongs to epoch {epoch}, is gone.",
                remedy="Put it back and start again with the same checkpoint; or start with a new checkpoint "
                "to do without it.",
            )
