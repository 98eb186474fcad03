"""Gives back what was set aside of a folder, once it can be read: as new files, behind all that are there.

Each comes back once, whatever is cut off: the record says first which file it will be, then that it is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from caesura.errors import DataError, StreamError
from caesura.io.places import Place
from caesura.io.sources.files import CSV, JSON, PARQUET
from caesura.io.sources.lenient import LenientFileReader
from caesura.io.sources.quarantine import FOLDER, Quarantine, SetAside

FORMATS = {format.name: format for format in (PARQUET, CSV, JSON)}


class GivenBack(NamedTuple):
    """What became of something that was set aside."""

    some: SetAside
    rows: int = 0
    problem: str = ""
    """Why it still cannot be read."""


def set_aside(folder: Place) -> list[SetAside]:
    """What is set aside in a folder and was not given back."""
    return [some for some in Quarantine(folder).entries() if not some.done]


def give_back(folder: Place) -> Iterator[GivenBack]:
    """Gives back what can be read now."""
    quarantine = Quarantine(folder)
    if not quarantine.place.is_folder():
        raise StreamError(
            f"nothing of '{folder}' is set aside: it has no folder '{FOLDER}'.",
            remedy="Give the folder that is read with on_bad='quarantine'.",
        )
    for some in set_aside(folder):
        file = quarantine.text(some) if some.lines else folder / some.file
        try:
            reader = LenientFileReader(file, FORMATS[some.format], schema=some.columns, on_bad="late")
            rows, problem = reader.tried(file)
        except DataError as error:
            rows, problem = 0, error.problem
        if problem:
            yield GivenBack(some, problem=problem)
        else:
            yield GivenBack(_given(quarantine, some, file) if rows else _done(quarantine, some), rows)


def _given(quarantine: Quarantine, some: SetAside, file: Place) -> SetAside:
    """Puts the rows of a file back as another."""
    data = file.read_bytes()
    made = some
    while True:
        target = quarantine.folder / made.given_back if made.given_back else quarantine.behind(_ending(some))
        made = replace(made, given_back=target.name)
        quarantine.record(made.name).put(made.to_bytes())
        if target.create(data) or some.given_back:  # made before it was cut off
            return _done(quarantine, made)
        made = some


def _done(quarantine: Quarantine, some: SetAside) -> SetAside:
    done = replace(some, done=True)
    quarantine.record(done.name).put(done.to_bytes())
    return done


def _ending(some: SetAside) -> str:
    """How the names of files like this end."""
    endings = FORMATS[some.format].endings
    return some.ending or max((e for e in endings if some.file.endswith(e)), key=len, default=endings[0])
