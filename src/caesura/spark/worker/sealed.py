"""Messages between processes of one user that share a seal: JSON and bytes, never pickled, never believed
without proof.

Whoever is called sends a fresh challenge; question and answer are each signed over it with the seal. A
message that does not prove itself is none. The folder in which they meet must be the user's own, shut to
others.

>>> seal, challenge = b"s" * 32, new_challenge()
>>> signed = b"".join(sign(seal, challenge, ASK, packed({"n": 1}, [b"rows", None])))
>>> unpacked(checked(seal, challenge, ASK, signed))
({'n': 1}, [b'rows', None])
>>> checked(b"another", challenge, ASK, signed) is None
True
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import socket
import stat
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ASK, ANSWER = b"ask", b"answer"
SIGNATURE = 32
CHALLENGE = 16
SEAL = 32
PIECE = 1 << 24
"""How many bytes of a message are awaited at a time."""
Buffer = bytes | bytearray


def new_seal() -> bytes:
    """A seal for the workers of one query."""
    return secrets.token_bytes(SEAL)


def new_challenge() -> bytes:
    """What a question must be signed over: nobody has seen it before."""
    return secrets.token_bytes(CHALLENGE)


def sign(seal: bytes, challenge: bytes, kind: bytes, body: Sequence[bytes]) -> list[bytes]:
    """A message with its proof in front, in parts."""
    return [_proof(seal, challenge, kind, body), *body]


def checked(seal: bytes, challenge: bytes, kind: bytes, message: Buffer) -> memoryview | None:
    """The body of a message that proves itself; None of any other."""
    proof, body = message[:SIGNATURE], memoryview(message)[SIGNATURE:]
    return body if hmac.compare_digest(proof, _proof(seal, challenge, kind, [body])) else None


def _proof(seal: bytes, challenge: bytes, kind: bytes, body: Iterable[bytes | memoryview]) -> bytes:
    made = hmac.new(seal, kind + b"/" + challenge, hashlib.sha256)
    for part in body:
        made.update(part)
    return made.digest()


def packed(head: Any, bodies: Sequence[bytes | None]) -> list[bytes]:
    """Something that JSON can say, and some bytes beside it, in parts: bytes are not copied."""
    sizes = [None if body is None else len(body) for body in bodies]
    text = json.dumps([head, sizes]).encode()
    return [struct.pack("<Q", len(text)), text, *(body for body in bodies if body is not None)]


def unpacked(data: bytes | memoryview) -> tuple[Any, list[bytes | None]]:
    """What `packed` took."""
    at = 8 + struct.unpack_from("<Q", data)[0]
    head, sizes = json.loads(bytes(data[8:at]))
    bodies: list[bytes | None] = []
    for size in sizes:
        bodies.append(None if size is None else bytes(data[at : at + size]))
        at += size or 0
    return head, bodies


def send(to: socket.socket, *message: bytes) -> None:
    """Sends the parts of a message, with its length in front."""
    to.sendall(struct.pack("<Q", sum(map(len, message))))
    for part in filter(None, message):
        to.sendall(part)


def receive(of: socket.socket) -> Buffer:
    """A message as it was sent; EOFError if it breaks off."""
    return _exactly(of, struct.unpack("<Q", _exactly(of, 8))[0])


def _exactly(of: socket.socket, size: int) -> Buffer:
    """So many bytes, in pieces: whoever says a length need not have them."""
    pieces = []
    for start in range(0, size, PIECE):
        piece = bytearray(min(size - start, PIECE))
        view = memoryview(piece)
        while view:
            came = of.recv_into(view)
            if not came:
                raise EOFError
            view = view[came:]
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else bytearray().join(pieces)


def own_folder(folder: Path) -> bool:
    """Makes a folder, where there is none, and says whether it is this user's alone.

    A link, another's folder, or one that others may enter is not: whoever made it could be anybody.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    about = os.lstat(folder)
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077


def same_user(visitor: socket.socket) -> bool:
    """Whether the process at the other end is this user's, where the system can tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.getuid())
