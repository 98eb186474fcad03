"""Python workers of one machine do each other's work: a bucket that Spark hands to another worker than before
is stepped where its live fragment is, instead of being restored from the store.

Spark gives a bucket to whichever of its workers is free, so buckets change hands often, and a large state
takes seconds to restore. Each worker listens at a socket in a folder that only its siblings under the same
daemon use, and notes there which fragments it holds, with their stamps. Where nobody answers, or nobody has
the stamp, the state store has everything.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from caesura.events.rows import Chunks
from caesura.runtime.packet import Row

Place = tuple[str, int, int]
"""A query, a stage, a bucket."""


@dataclass(frozen=True)
class Worked:
    """What an epoch made of a bucket, wherever it was stepped."""

    rows: list[Row]
    """The packets that follow."""
    chunks: Chunks
    stamp: str
    ignored: dict[str, Any]
    """What the bucket stops at its gates."""
    reached: dict[str, int]
    """How far the sources that enter here have come."""
    wanted: dict[str, Any]
    """What is wanted first of what enters here."""
    suppressed: list[tuple[str, str]]
    """By step, what is kept back after a withdrawal."""


Step = Callable[[Place, str, list[Row], bool], Worked | None]
"""Steps the live fragment of a place if it has the given stamp; None if it has not."""


def ask(place: Place, stamp: str, rows: list[Row], closes: bool) -> Worked | None:
    """Has a sibling step its fragment of a place, if one has it with this stamp."""
    try:
        owner, held = _note(place).read_text().split()
    except (OSError, ValueError):
        return None
    if held != stamp or int(owner) == os.getpid():
        return None
    try:
        with Client(str(_address(int(owner))), "AF_UNIX") as sibling:
            sibling.send((place, stamp, rows, closes))
            answer = sibling.recv()
    except (OSError, EOFError):
        return None
    assert answer is None or isinstance(answer, Worked)
    return answer


def tell(place: Place, stamp: str, step: Step) -> None:
    """Lets siblings know that this worker holds a place with a stamp, and listens to them from now on."""
    if not _listens(os.getpid(), step):
        return
    note = _note(place)
    partial = note.with_name(f".{note.name}-{os.getpid()}")
    partial.write_text(f"{os.getpid()} {stamp}")
    partial.replace(note)


@cache
def _listens(pid: int, step: Step) -> bool:
    """Opens this worker's door, once; False where the machine has no such doors."""
    folder = _folder()
    try:
        _sweep(folder.parent)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _address(pid).unlink(missing_ok=True)
        door = Listener(str(_address(pid)), "AF_UNIX", backlog=16)
    except OSError:
        return False
    threading.Thread(target=_serve, args=(door, step), daemon=True).start()
    return True


def _sweep(homes: Path) -> None:
    """Removes what workers of daemons that are gone have left."""
    for home in homes.glob("*"):
        if not Path("/proc", home.name).exists() and Path("/proc").exists():
            shutil.rmtree(home, ignore_errors=True)


def _serve(door: Listener, step: Step) -> None:
    while True:
        visitor = door.accept()
        threading.Thread(target=_answer, args=(visitor, step), daemon=True).start()


def _answer(visitor: Connection, step: Step) -> None:
    """Does what a sibling asks. A step that fails is not answered: it fails again where it is told."""
    with visitor:
        place, stamp, rows, closes = visitor.recv()
        visitor.send(step(place, stamp, rows, closes))


def _folder() -> Path:
    """Where the workers of one daemon meet."""
    return Path(tempfile.gettempdir()) / f"caesura-{os.getuid()}" / str(os.getppid())


def _address(pid: int) -> Path:
    return _folder() / f"{pid}.door"


def _note(place: Place) -> Path:
    name = hashlib.blake2s("/".join(map(str, place)).encode(), digest_size=12).hexdigest()
    return _folder() / name
