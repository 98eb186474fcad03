"""A lease: one process at a time goes on with a checkpoint, and shows that it lives.

The file names the holder, since when, and a fencing number that grows with each holder. A start that finds
a lease looks whether its holder lives: at once for a process that it can see, and else by watching whether
the file changes for a while, so that no two machines' clocks are compared. Within one process the later start
has it: what fences a sink and a manifest fences the earlier one there.

>>> import tempfile
>>> checkpoint = Place.of(tempfile.mkdtemp())
>>> with Lease.take(checkpoint) as lease:
...     lease.number
1
>>> Lease.take(checkpoint).number
2
"""

from __future__ import annotations

import atexit
import getpass
import json
import logging
import os
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.places.json_files import parsed

NAME = "lease.json"
BEAT, TERM = 3.0, 12.0
"""Seconds from beat to beat; and without one until a holder on another machine counts as dead."""
LOOK = 0.5
FIELDS = ("number", "host", "machine", "process", "began", "user", "since", "beat", "released")
DAMAGED = "Remove the file if no query runs on this checkpoint; it is made again."
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """What the file says."""

    number: int
    host: str
    machine: str
    """What sees the same processes: a boot of a machine, and a name space of processes on it."""
    process: int
    began: str
    """When the process began, which tells it from a later one with its number."""
    user: str
    since: str
    beat: int = 0
    released: bool = False

    @staticmethod
    def here(number: int) -> Holder:
        process = os.getpid()
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return Holder(number, socket.gethostname(), _machine(), process, _began(process), _user(), since)

    @staticmethod
    def read(data: bytes | None, file: Place) -> Holder | None:
        if data is None:
            return None
        told = parsed(data.decode(errors="replace"), file, DAMAGED, wants=FIELDS)
        return Holder(**{name: told[name] for name in FIELDS})

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()

    @property
    def visible(self) -> bool:
        """Whether its process can be looked at from here."""
        return self.machine == _machine()

    @property
    def own(self) -> bool:
        return self.visible and (self.process, self.began) == (os.getpid(), _began(os.getpid()))

    def __str__(self) -> str:
        return f"process {self.process} of {self.user} on {self.host}, since {self.since}"


class Lease:
    """A lease that this process holds; it beats until it is released, nobody needs it, or it is lost."""

    def __init__(self, checkpoint: Place, holder: Holder) -> None:
        self.checkpoint = checkpoint
        self.number = holder.number
        self.needed: Callable[[], bool] = lambda: True
        """Asked at each beat: a query that has ended gives its lease back."""
        self._file = checkpoint / NAME
        self._forgotten = weakref.finalize(self, BEATING.forgotten.append, (self._file, self.number))
        self._forgotten.atexit = False
        BEATING.add(self)

    @staticmethod
    def take(
        checkpoint: Place, *, take_over: bool = False, pause: Callable[[float], None] = time.sleep
    ) -> Lease:
        """Takes the checkpoint; refuses where a process that lives has it, unless it is taken over."""
        file = checkpoint / NAME
        held = _held(file)
        if held is not None and not take_over and _lives(held, file, pause):
            raise _refused(checkpoint, held)

        def change(data: bytes | None) -> bytes:
            now = Holder.read(data, file)
            if now is not None and not take_over and (held is None or now.number != held.number):
                raise _refused(checkpoint, now)
            return Holder.here(1 + (0 if now is None else now.number)).to_bytes()

        holder = Holder.read(file.update(change), file)
        assert holder is not None
        return Lease(checkpoint, holder)

    def check(self) -> None:
        """Refuses to go on where another start has taken the checkpoint over."""
        refuse_deposed(self.checkpoint, self.number)

    def beat(self) -> None:
        """Shows that the holder lives; ends where nobody needs the lease, or another has it."""
        if not self.needed():
            self.release()
            return
        if not _change(self._file, self.number, lambda held: replace(held, beat=held.beat + 1)):
            self._forgotten.detach()
            BEATING.discard(self)

    def release(self) -> None:
        """Gives the checkpoint back; a second time does nothing."""
        BEATING.discard(self)
        if self._forgotten.detach() is not None:
            _release(self._file, self.number)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def refuse_deposed(checkpoint: Place, number: int) -> None:
    """Refuses to go on under a number that another start has taken the checkpoint over from."""
    now = _held(checkpoint / NAME)
    if now is not None and now.number != number:
        raise StreamError(
            f"the checkpoint '{checkpoint}' was taken over by {now}.",
            remedy="Let that one run, or stop it and start this one again.",
        )


class Beats:
    """The leases of this process, and the one thread that beats for them."""

    def __init__(self) -> None:
        self.forgotten: deque[tuple[Place, int]] = deque()
        """Leases that nobody released. The garbage collector may find one in the middle of anything, also of
        a change of the same file, so that it only notes them here."""
        self._leases: weakref.WeakSet[Lease] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None

    def add(self, lease: Lease) -> None:
        with self._lock:
            self._leases.add(lease)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="caesura-leases", daemon=True)
                self._thread.start()

    def discard(self, lease: Lease) -> None:
        with self._lock:
            self._leases.discard(lease)

    def give_back(self) -> None:
        """Releases what was forgotten."""
        while self.forgotten:
            _release(*self.forgotten.popleft())

    def end(self) -> None:
        """Releases all, as the process ends."""
        for lease in list(self._leases):
            lease.release()
        self.give_back()

    def _run(self) -> None:
        while True:
            time.sleep(BEAT)
            self.give_back()
            with self._lock:
                leases = list(self._leases)
                if not leases and not self.forgotten:
                    self._thread = None
                    return
            for lease in leases:
                try:
                    lease.beat()
                except Exception as error:  # noqa: BLE001 - a store that is away for a moment ends no query
                    log.warning("the lease on '%s' was not renewed: %s", lease.checkpoint, error)
            del leases


BEATING = Beats()
atexit.register(BEATING.end)


def _release(file: Place, number: int) -> None:
    try:
        _change(file, number, lambda held: replace(held, released=True))
    except Exception as error:  # noqa: BLE001 - its store may be gone; it ends without beats
        log.info("'%s' was not given back, and ends in %s s: %s", file, TERM, error)


class _LostError(Exception):
    """The lease has another holder."""


def _change(file: Place, number: int, change: Callable[[Holder], Holder]) -> bool:
    """Changes what the file says if it is still of this number."""

    def made(data: bytes | None) -> bytes:
        held = Holder.read(data, file)
        if held is None or held.number != number:
            raise _LostError
        return change(held).to_bytes()

    if not file.exists():  # the folder is gone: nothing is to be made again
        return False
    try:
        file.update(made)
    except _LostError:
        return False
    return True


def _held(file: Place) -> Holder | None:
    try:
        return Holder.read(file.read_bytes(), file)
    except FileNotFoundError:
        return None


def is_held(checkpoint: Place) -> bool:
    """Whether somebody goes on with a checkpoint, as far as can be told at once."""
    held = _held(checkpoint / NAME)
    if held is None or held.released:
        return False
    return not held.visible or _began(held.process) == held.began


def _lives(held: Holder, file: Place, pause: Callable[[float], None]) -> bool:
    """Whether a lease's holder goes on with it, apart from this process."""
    if held.released or held.own:
        return False
    if held.visible:
        return _began(held.process) == held.began
    for _ in range(int(TERM / LOOK)):
        pause(LOOK)
        now = _held(file)
        if now is None or now.released:
            return False
        if now != held:
            return True
    return False


def _refused(checkpoint: Place, held: Holder) -> StreamError:
    return StreamError(
        f"the checkpoint '{checkpoint}' is in use by {held}.",
        remedy="Stop that query first: it goes on where it stood. If it cannot be stopped, take over with "
        "take_over=True (--take-over): that query can then write no more.",
    )


def _began(process: int) -> str:
    """When a process of this machine began, by the machine's own count; nothing where there is none."""
    stat = Path(f"/proc/{process}/stat")
    if Path("/proc/self/stat").exists():
        try:
            state, *rest = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if state in "ZX" else rest[18]  # killed, and not yet waited for
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "lives"


def _machine() -> str:
    parts: list[Any] = [socket.gethostname()]
    boot, names = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    if boot.exists():
        parts += [boot.read_text().strip(), names.readlink()]
    return " ".join(map(str, parts))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        return str(os.getuid())
