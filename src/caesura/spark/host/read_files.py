"""The files that a query on Spark has read, held against those that lie there now.

Spark knows a file by its path alone, and never looks again at one that it has read. Its log keeps with each
the time at which it was written: where a file has another one now, what it holds would be left out, or would
differ from what the state and the output were made of.

    sources/0/3    {"path": "file:///in/b.csv", "timestamp": 1700000000000, "batchId": 3}
    /in/b.csv      written at 1700000060000: refused

A file that is gone is missed by the epoch that reads it, see `check_files`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.sources.passed import written_anew
from caesura.io.sources.source import Source
from caesura.spark.host.checkpoint import read_plan
from caesura.spark.host.part import SparkPart, of_ours
from caesura.spark.host.source_log import (
    last_batch,
    last_offsets,
    logged_between,
    offsets_of,
    path_of,
    reached,
)
from caesura.spark.worker.job import Job

TOLERANCE = 1000
"""Times that are so many milliseconds apart are one: some stores keep whole seconds."""
TIMESTAMP, PATH = "timestamp", "path"


def check_unchanged(part: SparkPart, job: Job) -> None:
    """Refuses to go on where a file that was read has been written anew since."""
    sources = _sources(part, job)
    for place, files in changed_files(part.folder):
        source = sources.get(place)
        root = str(files[0].parent)
        names = [str(file).removeprefix(root).lstrip("/") for file in files]
        error = StreamError(
            f"in '{root}' {written_anew(names)}: rows would be left out or read twice.",
            remedy=_remedy(part.checkpoint, source),
        )
        raise error if source is None else error.at(source.step, source.place)


def _remedy(checkpoint: Place, source: Source | None) -> str:
    anew = "" if source is None or source.reader.spark_form != "files" else ", or take on_change='rebuild'"
    return (
        "Put the files back as they were, with the times at which they were written (cp -p), and give new "
        f"rows in files of new names{anew}. Where they hold what they held, and were only copied or touched, "
        f"say so: `caesura move {checkpoint} --files`."
    )


def _sources(part: SparkPart, job: Job) -> dict[int, Source]:
    """The sources by the place in which Spark has them, where each of ours is one of Spark's."""
    order = list((read_plan(part.checkpoint) or {}).get("sources", ()))
    known = {source.fingerprint: source for source in job.stages.sources if isinstance(source, Source)}
    entries = [e for e in offsets_of(part.folder, last_offsets(part.folder)) if not of_ours(e)]
    if len(order) != len(entries):
        return {}
    return {place: known[name] for place, name in enumerate(order) if name in known}


def changed_files(folder: Place) -> Iterator[tuple[int, list[Place]]]:
    """By the place of a source, the files that were read and have another time now."""
    for place, entry in enumerate(offsets_of(folder, last_offsets(folder))):
        end = last_batch(entry)
        if end is None:
            continue
        known = {file.path: file.changed for file in logged_between(folder, place, 0, end)}
        there = _times(known)
        changed = [Place.of(path) for path, time in there.items() if abs(time - known[path]) >= TOLERANCE]
        if changed:
            yield place, sorted(changed, key=str)


def take_times(folder: Place) -> int:
    """Lets Spark's logs have the times that files have now; says how many had others."""
    count = 0
    for source in (folder / "sources").entries():
        for log in source_logs(folder, source.name):
            data, changed = with_times_of_now(log)
            if changed:
                (log.parent / f".{log.name}.crc").remove()  # Hadoop's sum of the log as it was
                log.put(data)
            count += changed
    return count


def source_logs(folder: Place, source: str) -> list[Place]:
    """Spark's logs of a source, without Hadoop's sums of them."""
    logs = (folder / "sources" / source).files()
    return [log for log in logs if log.name.removesuffix(".compact").isdigit()]


def with_times_of_now(log: Place) -> tuple[bytes, int]:
    """A log of Spark's with the times that its files have now, and how many had others."""
    version, *lines = log.read_text().splitlines() or [""]
    if not all(_names_file(line) for line in lines):
        return log.read_bytes(), 0
    entries = [json.loads(line) for line in lines]
    there, changed = _times(path_of(entry[PATH]) for entry in entries), 0
    for entry in entries:
        now = there.get(path_of(entry[PATH]), entry[TIMESTAMP])
        if abs(now - entry[TIMESTAMP]) >= TOLERANCE:
            entry[TIMESTAMP], changed = now, changed + 1
    text = "\n".join([version, *(json.dumps(entry, separators=(",", ":")) for entry in entries)])
    return (text.encode(), changed) if changed else (log.read_bytes(), 0)


def _names_file(line: str) -> bool:
    """Whether a line is of the log of a source of files: others keep their first offsets there."""
    try:
        entry = json.loads(line)
    except ValueError:
        return False
    return isinstance(entry, dict) and {PATH, TIMESTAMP} <= set(entry)


def _times(paths: Iterable[str]) -> dict[str, int]:
    """When files were last written, in milliseconds, of those that are there: a listing of each folder."""
    found: dict[str, int] = {}
    named = [(file, path) for path in paths if (file := reached(path)) is not None]
    named.sort(key=_folder)
    for _, some in groupby(named, key=_folder):
        files = list(some)
        there = {entry.name: entry.changed for entry in files[0][0].parent.entries() if entry.is_file}
        found |= {path: there[file.name] // 1_000_000 for file, path in files if file.name in there}
    return found


def _folder(named: tuple[Place, str]) -> str:
    return str(named[0].parent)
