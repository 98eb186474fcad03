"""Whether what a sink of files wrote is there as it was: each file that a commit names, by size and hash.

>>> import tempfile
>>> committed_flaws(Place.of(tempfile.mkdtemp()))
(0, [])
"""

from __future__ import annotations

import hashlib

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.sinks.commits import generation_folder, read_commit
from caesura.io.sinks.protocol import LATE, Part
from caesura.runtime.sinks.parquet import checked_commits, generations
from caesura.waiting import waiting


def committed_flaws(root: Place) -> tuple[int, list[str]]:
    """How many files the commits of all generations of an output name, and what is wrong with them."""
    found = [_committed_flaws(generation_folder(root, number)) for number in generations(root)]
    return sum(count for count, _ in found), [flaw for _, flaws in found for flaw in flaws]


def _committed_flaws(folder: Place) -> tuple[int, list[str]]:
    commits = folder / "_commits"
    try:
        last = checked_commits(commits)
        parts = [
            (Part(**part), int(commit["epoch"]))
            for commit in map(read_commit, commits.files(".json"))
            for part in commit["files"]
        ]
    except StreamError as error:
        return 0, [error.problem]
    flaws: list[str] = []
    with waiting("comparing files", sum(part.size for part, _ in parts), "bytes") as progress:
        for part, epoch in parts:
            flaws += _flaws(folder, part, epoch)
            progress.done += part.size
    return len(parts), flaws + _unnamed(folder, {(part.output, part.file) for part, _ in parts}, last)


def _flaws(folder: Place, part: Part, epoch: int) -> list[str]:
    file = folder / part.output / part.file
    where = f"'{part.output}/{part.file}' of epoch {epoch}"
    if not file.is_file():
        return [] if part.output == LATE else [f"{where} is gone"]  # late rows are kept for a while
    if not part.sha256:
        return []
    data = file.read_bytes()
    if len(data) != part.size or hashlib.sha256(data).hexdigest() != part.sha256:
        return [f"{where} was changed after it was committed"]
    return []


def _unnamed(folder: Place, named: set[tuple[str, str]], last: int | None) -> list[str]:
    """Files that no commit names, of epochs that were committed: whoever lists the folder reads them too."""
    found = []
    for output in sorted({output for output, _ in named} - {LATE}):
        root = folder / output
        for file in root.files_below(".parquet"):
            name = str(file).removeprefix(str(root)).lstrip("/")
            _, own, number = file.stem.rpartition("epoch-")
            epoch = number.partition("-")[0]
            if (output, name) not in named and not (own and epoch.isdigit() and int(epoch) > (last or 0)):
                found.append(f"'{output}/{name}' is named by no commit: it was written by hand")
    return found
