"""A checkpoint that lies elsewhere than where it was written: copied, restored, in another bucket.

Spark notes where the schemas of its state lie as whole paths, beside the state. Where such a note names
another folder, it is written anew with this one; all other notes of a checkpoint go by names below it.

>>> note = {"stateStoreInfo": [{"stateSchemaFilePaths": ["file:/old/cp/state/0/_stateSchema/default/0_a"]}]}
>>> _moved(note, Place.of("/new/cp"))["stateStoreInfo"][0]["stateSchemaFilePaths"]
['file:/new/cp/state/0/_stateSchema/default/0_a']
>>> _moved(note, Place.of("/old/cp")) == note
True
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from caesura.errors import CaesuraError, StreamError
from caesura.io.places import Place
from caesura.io.places.json_files import parsed

STORES, PATHS = "stateStoreInfo", "stateSchemaFilePaths"
BELOW = re.compile(r"(.*)/(state/\d+/_stateSchema/.+)")


def follow_move(folder: Place) -> int:
    """Lets Spark's notes name files of the folder that they lie in; gives how many named another."""
    moved = list(_elsewhere(folder))
    for file, text in moved:
        (file.parent / f".{file.name}.crc").remove()  # Hadoop's sum of the note as it was
        file.put(text.encode())
    return len(moved)


def refuse_moved(folder: Place, checkpoint: Place) -> None:
    """Refuses to read a checkpoint whose notes name another folder: nothing is written by who only reads."""
    if next(_elsewhere(folder), None) is not None:
        raise StreamError(
            f"the checkpoint '{checkpoint}' was written in another place, and Spark's notes still name it.",
            remedy=f"Let them name this one: `caesura move {checkpoint}`. A start of its query does so too.",
        )


def _elsewhere(folder: Place) -> Iterator[tuple[Place, str]]:
    """The notes that name another folder, and what they are to say."""
    state = folder / "state"
    for operator in (entry.name for entry in state.entries() if entry.name.isdigit()):
        for file in (state / operator / "_metadata" / "v2").files():
            if not file.name.isdigit():
                continue
            version, *lines = file.read_text().splitlines() or [""]
            note = parsed("\n".join(lines), file, wants=(STORES,))
            now = _moved(note, folder)
            if now != note:
                yield file, f"{version}\n{json.dumps(now, separators=(',', ':'))}"


def _moved(note: dict[str, Any], folder: Place) -> dict[str, Any]:
    stores = [{**s, PATHS: [_path(p, folder) for p in s.get(PATHS, [])]} for s in note[STORES]]
    return {
        **note,
        STORES: [now if was.get(PATHS) else was for was, now in zip(note[STORES], stores, strict=True)],
    }


def _path(path: str, folder: Place) -> str:
    found = BELOW.fullmatch(path)
    if found is None or _same(found[1], folder):
        return path
    here = folder.hadoop if folder.local is None else f"file:{folder.absolute()}"
    return f"{here}/{found[2]}"


def _same(path: str, folder: Place) -> bool:
    try:
        return Place.of(path).identity == folder.identity
    except CaesuraError:  # a store that only Spark knows
        return False
