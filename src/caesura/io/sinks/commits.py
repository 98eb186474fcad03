"""The commits of a folder of Parquet files: each names the files of an epoch, which lie below the folder."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from caesura.errors import StreamError
from caesura.events.chunks import later as later_format
from caesura.io.places import Place
from caesura.io.places.json_files import read_json
from caesura.io.sinks.protocol import Part

COMMIT_FORMAT = 1
"""The number of the form of commits; those of 0.1.0 had none, and no hashes."""
COMMIT_REMEDY = "Put back the commit as it was, or write into a new folder with a new checkpoint."
GENERATION = "_generation-"


def generation_folder(root: Place, generation: int) -> Place:
    """Where a generation of an output lies: the first in the folder itself, a later one below it."""
    return root if generation == 1 else root / f"{GENERATION}{generation}"


def generation_numbers(root: Place) -> list[int]:
    """The generations of an output that have a folder, whatever is in it, and the first."""
    later = [e.name.removeprefix(GENERATION) for e in root.entries() if e.name.startswith(GENERATION)]
    return [1, *sorted(int(number) for number in later if number.isdigit())]


def read_commit(file: Place) -> dict[str, Any]:
    """What a commit says."""
    content: dict[str, Any] = read_json(file, COMMIT_REMEDY, wants=("epoch", "files"))
    number = content.get("format", 0)
    if isinstance(number, int) and number > COMMIT_FORMAT:
        raise later_format(f"'{file}'", number, COMMIT_FORMAT)
    if not isinstance(content["files"], list) or not all(map(_is_part, content["files"])):
        raise StreamError(f"'{file}' is not whole: it names what no sink writes.", remedy=COMMIT_REMEDY)
    return content


def _is_part(told: Any) -> bool:
    """Whether an entry of a commit is a file below the output: whoever reads it opens what it names."""
    if not isinstance(told, dict) or not set(told) <= {field.name for field in fields(Part)}:
        return False
    names = [told.get("output"), told.get("file")]
    return all(map(_is_below, names)) and isinstance(told.get("rows"), int)


def _is_below(name: Any) -> bool:
    return isinstance(name, str) and name != "" and not name.startswith("/") and ".." not in name.split("/")
