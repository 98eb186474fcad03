"""The files that a query on Spark has read, held against those that lie there now.

Spark knows a file by its path alone, and never looks again at one that it has read. Its log keeps with each
the time at which it was written: where a file has another one now, what it holds would be left out, or would
differ from what the state and the output were made of.

    sources/0/3    {"path": "file:///in/b.csv", "timestamp": 1700000000000, "batchId": 3}
    /in/b.csv      written at 1700000060000: refused

A file that is gone is missed by the epoch that reads it, see `check_files`. One that was set aside whole is
mended where it lies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.sources.passed import written_anew
from caesura.io.sources.source import Source
from caesura.spark.host.checkpoint import read_plan
from caesura.spark.host.frames import framed
from caesura.spark.host.part import SparkPart, of_ours
from caesura.spark.host.source_log import (
    files_between,
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
WILDCARD = re.compile(r"[*?\[{\\]")
"""Where a path begins to be a pattern, as Spark takes one."""
TIMESTAMP, PATH = "timestamp", "path"


def check_unchanged(part: SparkPart, job: Job) -> None:
    """Refuses to go on where a file that was read has been written anew since."""
    sources = _sources(part, job)
    for place, files in changed_files(part.folder):
        source = sources.get(place)
        aside = source.reader.as_files.set_aside if source is not None and _files(source) else set()
        root = str(files[0].parent)
        names = [str(file).removeprefix(root).lstrip("/") for file in files if file.name not in aside]
        if not names:
            continue
        error = StreamError(
            f"in '{root}' {written_anew(names)}: rows would be left out or read twice.",
            remedy=_remedy(part.checkpoint, source),
        )
        raise error if source is None else error.at(source.step, source.place)


def check_folders(part: SparkPart, job: Job) -> None:
    """Refuses a DataFrame that reads the files of another folder than those that were read."""
    sources = _sources(part, job)
    frames = [s for s in job.stages.sources if isinstance(s, Source) and s.reader.spark_form == "frame"]
    own = [s.reader.as_files.folder for s in job.stages.sources if isinstance(s, Source) and _files(s)]
    folders = {source.fingerprint: framed(source.reader).folders for source in frames}
    for place, entry in enumerate(offsets_of(part.folder, last_offsets(part.folder))):
        end, source = last_batch(entry), sources.get(place)
        if end is None or not frames or (source is not None and source not in frames):
            continue
        mine = [source] if source is not None else frames
        there = [folder for frame in mine for folder in folders[frame.fingerprint]]
        some = [path for _, path in files_between(part.folder, place, end, end)]
        stray = next((path for path in some if not lies_below(path, there + own * (source is None))), "")
        if stray and there:
            raise StreamError(
                f"it has read files of '{Place.of(stray).parent}', and its DataFrame reads "
                f"'{there[0]}': the rows of another folder would be added to them.",
                remedy="Let it read the folder that was read, or start with a new checkpoint and a new sink.",
            ).at(mine[0].step, mine[0].place)


def _files(source: Source) -> bool:
    return source.reader.spark_form == "files"


def lies_below(path: str, folders: Sequence[str]) -> bool:
    """Whether a file may be one of some folders, as Spark is given them: with wildcards, or without a store.

    >>> lies_below("file:///in/2024/a.csv", ["/in"]), lies_below("file:///inner/a.csv", ["/in"])
    (True, False)
    >>> lies_below("file:///in/2024/a.csv", ["/in/20*/"]), lies_below("file:///in/a.csv", ["/in/a.csv"])
    (True, True)
    >>> lies_below("s3a://data/in/a.csv", ["/in"]), lies_below("s3a://data/in/a.csv", ["s3://other/in"])
    (True, False)
    """
    file = reached(path)
    for folder in folders:
        plain = WILDCARD.split(folder)[0]
        place = reached(plain if plain == folder else plain.rpartition("/")[0] or "/")
        if file is None or place is None or (place.local is not None and file.local is None):
            return True
        if f"{file.identity}/".startswith(f"{place.identity.rstrip('/')}/"):
            return True
    return False


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
