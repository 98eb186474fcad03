"""Python workers of one machine do each other's work: a bucket that Spark hands to another worker than before
is stepped where its live fragment is, instead of being restored from the store.

Spark gives a bucket to whichever of its workers is free, so buckets change hands often, and a large state
takes seconds to restore. Each worker listens at a socket in a folder that only its siblings under the same
daemon use, and notes there which fragments it holds, with their stamps. Siblings prove themselves with the
seal that their query's plan brought along (`sealed`). Where nobody answers, nobody has the stamp, or the
folder is not this user's own, the state store has everything.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from caesura.events.chunks import Chunks
from caesura.runtime.packets.packet import Row
from caesura.spark.loop_log.records import ByLabel, patterns_from_json, patterns_to_json
from caesura.spark.worker import sealed

BucketKey = tuple[str, int, int]
"""A query, a stage, a bucket."""


@dataclass(frozen=True)
class Worked:
    """What an epoch made of a bucket, wherever it was stepped."""

    rows: list[Row]
    """The packets that follow."""
    chunks: Chunks
    stamp: str
    ignored: ByLabel
    """What the bucket stops at its gates."""
    reached: dict[str, int]
    """How far the sources that enter here have come."""
    wanted: ByLabel
    """What is wanted first of what enters here."""
    suppressed: list[tuple[str, str]]
    """By step, what is kept back after a withdrawal."""

    def packed(self) -> list[bytes]:
        patterns = [patterns_to_json(self.ignored), patterns_to_json(self.wanted)]
        about = [self.stamp, *patterns, self.reached, self.suppressed]
        heads, bodies = _apart(self.rows)
        names = list(self.chunks)
        return sealed.packed([about, heads, names], [*bodies, *(self.chunks[name] for name in names)])

    @staticmethod
    def unpacked(data: bytes | memoryview) -> Worked:
        ((stamp, *some, reached, suppressed), heads, names), bodies = sealed.unpacked(data)
        ignored, wanted = map(patterns_from_json, some)
        chunks = dict(zip(names, bodies[len(heads) :], strict=True))
        pairs = [(step, what) for step, what in suppressed]
        return Worked(_together(heads, bodies), chunks, stamp, ignored, reached, wanted, pairs)


Step = Callable[[BucketKey, str, list[Row], bool, str], Worked | None]
"""Steps the live fragment of a place if it has the given stamp, and saves what leaves it as the text says;
None if it has not."""
_SEALS: dict[str, bytes] = {}
"""By query, what the siblings that ask for it must know."""


def know(query: str, seal: bytes) -> None:
    """Takes the seal of a query that this worker serves."""
    _SEALS[query] = seal


def ask(place: BucketKey, stamp: str, rows: list[Row], closes: bool, saving: str) -> Worked | None:
    """Has a sibling step its fragment of a place, if one has it with this stamp."""
    folder = _folder()
    if folder is None:
        return None
    try:
        owner, held = (folder / _note(place)).read_text().split()
        if held != stamp or int(owner) == os.getpid():
            return None
        with socket.socket(socket.AF_UNIX) as sibling:
            sibling.connect(str(folder / _socket_name(int(owner))))
            return _asked(sibling, place, stamp, rows, closes, saving)
    except (OSError, EOFError, ValueError):
        return None


def _asked(
    sibling: socket.socket, place: BucketKey, stamp: str, rows: list[Row], closes: bool, saving: str
) -> Worked | None:
    if not sealed.same_user(sibling):
        return None
    seal, challenge = _SEALS[place[0]], bytes(sealed.receive(sibling))
    heads, bodies = _apart(rows)
    question = sealed.packed([place, stamp, closes, saving, heads], bodies)
    sealed.send(sibling, place[0].encode())
    sealed.send(sibling, *sealed.sign(seal, challenge, sealed.ASK, question))
    answer = sealed.checked(seal, challenge, sealed.ANSWER, sealed.receive(sibling))
    return Worked.unpacked(answer) if answer else None


def tell(place: BucketKey, stamp: str, step: Step) -> None:
    """Lets siblings know that this worker holds a place with a stamp, and listens to them from now on."""
    if not _listens(os.getpid(), step):
        return
    folder = _folder()
    if folder is None:
        return
    note = folder / _note(place)
    partial = note.with_name(f".{note.name}-{os.getpid()}")
    partial.write_text(f"{os.getpid()} {stamp}")
    partial.replace(note)


@cache
def _listens(pid: int, step: Step) -> bool:
    """Opens this worker's socket, once; False where the machine has no such sockets."""
    try:
        folder = _folder()
        if folder is None:
            return False
        _sweep(folder.parent)
        (folder / _socket_name(pid)).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / _socket_name(pid)))
        listener.listen(16)
    except OSError:
        return False
    threading.Thread(target=_serve, args=(listener, step), daemon=True).start()
    return True


def _sweep(homes: Path) -> None:
    """Removes what workers of daemons that are gone have left."""
    for home in homes.glob("*"):
        if not Path("/proc", home.name).exists() and Path("/proc").exists():
            shutil.rmtree(home, ignore_errors=True)


def _serve(listener: socket.socket, step: Step) -> None:
    while True:
        visitor, _ = listener.accept()
        threading.Thread(target=_answer, args=(visitor, step), daemon=True).start()


def _answer(visitor: socket.socket, step: Step) -> None:
    """Does what a sibling asks. A step that fails is not answered: it fails again where it is told."""
    with visitor:
        if not sealed.same_user(visitor):
            return
        challenge = sealed.new_challenge()
        sealed.send(visitor, challenge)
        seal = _SEALS.get(sealed.receive(visitor).decode(errors="replace"))
        message = sealed.receive(visitor)
        body = None if seal is None else sealed.checked(seal, challenge, sealed.ASK, message)
        if seal is None or body is None:
            return
        ((query, stage, bucket), stamp, closes, saving, heads), bodies = sealed.unpacked(body)
        if _SEALS.get(query) != seal:
            return
        worked = step((query, stage, bucket), stamp, _together(heads, bodies), closes, saving)
        answer = [] if worked is None else worked.packed()
        sealed.send(visitor, *sealed.sign(seal, challenge, sealed.ANSWER, answer))


def _apart(rows: list[Row]) -> tuple[list[Any], list[bytes | None]]:
    """Packets without their bytes, and the bytes."""
    return [list(row[:5]) for row in rows], [bytes(row[5]) for row in rows]


def _together(heads: list[Any], bodies: list[bytes | None]) -> list[Row]:
    return [
        (stage, label, bucket, origin, seq, body or b"")
        for (stage, label, bucket, origin, seq), body in zip(heads, bodies, strict=False)
    ]


def _folder() -> Path | None:
    """Where the workers of one daemon meet; None where somebody else might have made it."""
    home = Path(tempfile.gettempdir()) / f"caesura-{os.getuid()}"
    folder = home / str(os.getppid())
    try:
        return folder if sealed.own_folder(home) and sealed.own_folder(folder) else None
    except OSError:
        return None


def _socket_name(pid: int) -> str:
    return f"{pid}.socket"


def _note(place: BucketKey) -> str:
    return hashlib.blake2s("/".join(map(str, place)).encode(), digest_size=12).hexdigest()
