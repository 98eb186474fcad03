"""State beyond a budget of memory: arrays that a step holds lie on the local disk until somebody looks.

The oldest arrays go first. Each is written once, as a file of Arrow in a folder of the process's own, and is
mapped from there: what is looked at comes back page by page, and the system may let it go again. Where the
address space of the process is limited, mapping would count, so the file is read when somebody looks.

>>> pages = StatePages(1000, smallest=0)
>>> held = [HeldArray(pa.array(["text " * 100])) for _ in range(4)]
>>> pages.watch(held)
>>> [array.paged for array in held], held[0].values.to_pylist() == ["text " * 100]
([True, True, True, False], True)
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path, PurePosixPath
from time import monotonic

import pyarrow as pa

from caesura.errors import MORE_ROOM, PlanError, StreamError

SMALLEST = 1 << 16
"""Arrays of fewer bytes stay."""
UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


class HeldArray:
    """An array that columns share, in memory or on the disk."""

    def __init__(self, values: pa.Array) -> None:
        self._values: pa.Array | None = values
        self._count = len(values)
        self._file: Path | None = None
        self.nbytes = int(values.nbytes)
        self.watched = self.paged = False

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> pa.Array:
        if self._values is not None:
            return self._values
        assert self._file is not None
        with pa.OSFile(str(self._file)) as file:
            return pa.ipc.open_file(file).get_batch(0).column(0)

    def page_to(self, file: Path, *, mapped: bool) -> None:
        """Writes the array to a file, which goes with it."""
        batch = pa.record_batch([self.values], names=["values"])
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        self.paged = True
        if mapped:
            self._values = pa.ipc.open_file(pa.memory_map(str(file))).get_batch(0).column(0)
            file.unlink()  # it lasts as long as it is mapped
        else:
            self._values, self._file = None, file
            weakref.finalize(self, file.unlink, missing_ok=True)


class StatePages:
    """How much of the state of a query, or of a bucket of it, may lie in memory, and where the rest lies."""

    def __init__(self, budget: int, *, mapped: bool | None = None, smallest: int = SMALLEST) -> None:
        self.budget, self.smallest = budget, smallest
        self.mapped = not limited_addresses() if mapped is None else mapped
        self.written = 0
        """How many bytes went to the disk."""
        self._arrays: list[weakref.ref[HeldArray]] = []
        self._held = 0
        """At least as many bytes as lie in memory."""
        self._files = 0
        self._folder: Path | None = None

    def watch(self, arrays: Iterable[HeldArray]) -> None:
        """Takes note of arrays that are held; the oldest of all go to the disk where they are too many."""
        for array in arrays:
            if not array.watched:
                array.watched = True
                self._arrays.append(weakref.ref(array))
                self._held += array.nbytes
        if self._held > self.budget:
            self._page_out()

    def _page_out(self) -> None:
        alive = [array for array in (some() for some in self._arrays) if array is not None]
        alive = [array for array in alive if not array.paged]
        self._held = sum(array.nbytes for array in alive)
        for array in alive:
            if self._held <= self.budget:
                break
            if array.nbytes >= self.smallest:
                self._write(array)
                self._held -= array.nbytes
        self._arrays = [weakref.ref(array) for array in alive if not array.paged]

    def _write(self, array: HeldArray) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="caesura-state-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._files += 1
        try:
            array.page_to(self._folder / f"{self._files}.arrow", mapped=self.mapped)
        except OSError as error:
            raise StreamError(
                f"state beyond {self.budget} bytes goes to '{self._folder}', which cannot be written: "
                f"{error}.",
                remedy="Make room there, set TMPDIR to a larger disk, or give a larger state_memory=.",
            ) from error
        self.written += array.nbytes


def limited_addresses() -> bool:
    """Whether the address space of this process has a limit."""
    return address_limit() is not None


def address_limit() -> int | None:
    """How many bytes of addresses this process may have, where the system can limit them."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def memory_size(given: int | str) -> int:
    """Bytes, given as a number or as a text.

    >>> memory_size("1.5 GB"), memory_size(100)
    (1500000000, 100)
    """
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?b)?\s*", str(given).lower())
    if isinstance(given, str) and found and (found[2] or "") != "b":
        return int(float(found[1]) * UNITS[found[2] or ""])
    raise PlanError(f"{given!r} is no size of memory.", remedy="Give bytes, or a text like '500 MB'.")


def memory_limit() -> int | None:
    """The bytes that this process, or the group of processes it is confined with, may take; None for all."""
    limits = [limit for limit in (*_of_groups(int(monotonic())), address_limit()) if limit is not None]
    least = min((limit for limit in limits if limit < UNLIMITED), default=None)
    return least if least is None or STATUS.is_file() else None


STATUS = Path("/proc/self/status")
UNLIMITED = 1 << 60
"""What the system says where there is no limit is more than this."""
GROUPS = "/proc/self/cgroup"
FULL = 0.9
"""The share of its limit that a process may take before it stops by itself."""
BETWEEN_LOOKS = 0.001
"""Seconds; to look takes less than a tenth of that."""


@lru_cache(maxsize=1)
def _of_groups(second: int) -> tuple[int, ...]:
    """The limits of the groups that this process is in; many small queries ask once a second."""
    return tuple(int(text) for text in map(_content, _present(_content(GROUPS))) if text.isdigit())


@lru_cache(maxsize=1)
def _present(groups: str) -> list[str]:
    """The files of limits that there are; the same for as long as a process stays in its groups."""
    return [file for file in limit_files(groups) if Path(file).is_file()]


def limit_files(groups: str) -> list[str]:
    """Where limits of memory are written for the groups that a process says it is in, and those around them.

    In a container its own group is the outermost one, whatever it is called outside.

    >>> limit_files("0::/user/job")[:2]
    ['/sys/fs/cgroup/user/job/memory.max', '/sys/fs/cgroup/user/memory.max']
    """
    old = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
    roots = {"": ("/sys/fs/cgroup", "memory.max"), "memory": old}
    found = []
    for line in [*groups.splitlines(), "0::/", "1:memory:/"]:
        _, kinds, group = line.split(":", 2)
        for kind in set(kinds.split(",")) & set(roots):
            root, name = roots[kind]
            around = (PurePosixPath(group), *PurePosixPath(group).parents)
            found += [f"{root}{str(folder).rstrip('/')}/{name}" for folder in around]
    return list(dict.fromkeys(found))


def refuse_full(limit: int | None, taken: int) -> None:
    """Stops before the system does, which says nothing."""
    if limit is not None and taken > FULL * limit:
        raise StreamError(
            f"this process takes {taken // 10**6} MB of the {limit // 10**6} MB that it may: its state is "
            "too large for it.",
            remedy=MORE_ROOM,
        )


class MemoryWatch:
    """Looks between the steps of a query whether its process may go on, at most once in a while.

    So a step that takes in much is followed by a look, and many small ones are not held up.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._looked = limit, 0.0

    def look(self) -> None:
        now = monotonic()
        if now - self._looked >= BETWEEN_LOOKS:
            refuse_full(self._limit, memory_taken())
            self._looked = now

    def update(self) -> None:
        """What is done is not refused."""


def memory_taken() -> int:
    """The bytes that this process holds and the system cannot let go of by itself."""
    wanted = "VmSize" if limited_addresses() else "RssAnon"
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(wanted))


def _content(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except FileNotFoundError:
        return ""
