"""Messages between processes of one user that share a seal: JSON and bytes, never pickled, never believed
without proof.

Whoever is called sends a fresh challenge; question and answer are each signed over it with the seal. A
message that does not prove itself is none. The folder in which they meet must be the user's own, shut to
others.

>>> seal, challenge = b"s" * 32, new_challenge()
>>> signed = sign(seal, challenge, ASK, packed({"n": 1}, [b"rows", None]))
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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ASK, ANSWER = b"ask", b"answer"
SIGNATURE = 32
CHALLENGE = 16
SEAL = 32


def new_seal() -> bytes:
    """A seal for the workers of one query."""
    return secrets.token_bytes(SEAL)


def new_challenge() -> bytes:
    """What a question must be signed over: nobody has seen it before."""
    return secrets.token_bytes(CHALLENGE)


def sign(seal: bytes, challenge: bytes, kind: bytes, body: bytes) -> bytes:
    """A message with its proof in front."""
    return _proof(seal, challenge, kind, body) + body


def checked(seal: bytes, challenge: bytes, kind: bytes, message: bytes) -> bytes | None:
    """The body of a message that proves itself; None of any other."""
    proof, body = message[:SIGNATURE], message[SIGNATURE:]
    return body if hmac.compare_digest(proof, _proof(seal, challenge, kind, body)) else None


def _proof(seal: bytes, challenge: bytes, kind: bytes, body: bytes) -> bytes:
    made = hashlib.blake2b(key=seal, digest_size=SIGNATURE, person=kind)
    made.update(challenge)
    made.update(body)
    return made.digest()


def packed(head: Any, bodies: Sequence[bytes | None]) -> bytes:
    """Something that JSON can say, and some bytes beside it."""
    sizes = [None if body is None else len(body) for body in bodies]
    text = json.dumps([head, sizes]).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *(body for body in bodies if body is not None)])


def unpacked(data: bytes) -> tuple[Any, list[bytes | None]]:
    """What `packed` took."""
    at = 8 + struct.unpack_from("<Q", data)[0]
    head, sizes = json.loads(data[8:at])
    bodies: list[bytes | None] = []
    for size in sizes:
        bodies.append(None if size is None else data[at : at + size])
        at += size or 0
    return head, bodies


def send(to: socket.socket, message: bytes) -> None:
    """Sends a message, with its length in front."""
    to.sendall(struct.pack("<Q", len(message)))
    if message:
        to.sendall(message)


def receive(of: socket.socket) -> bytes:
    """A message as it was sent; EOFError if it breaks off."""
    return _exactly(of, struct.unpack("<Q", _exactly(of, 8))[0])


def _exactly(of: socket.socket, size: int) -> bytes:
    parts, left = [], size
    while left:
        part = of.recv(min(left, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


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
