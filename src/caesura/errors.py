"""Errors that say the step, the user's own line, what was got, what was wanted, what to write.

A diagnostic names the line of the step that it is about; without one, the line that called us.

>>> print(PlanError("a window of 0 ticks can hold no event.", remedy="Give a positive size."))
a window of 0 ticks can hold no event.
Give a positive size.
>>> print(PlanError("no column 'spede'.", remedy="Did you mean 'speed'?", step="where", place="flow.py:31"))
step 'where' (flow.py:31): no column 'spede'.
Did you mean 'speed'?
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TypeVar

from caesura.printable import printable

T = TypeVar("T")
E = TypeVar("E", bound="CaesuraError")

_OURS = str(Path(__file__).resolve().parent)
_COMMANDS = str(Path(_OURS) / "cli")
_LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")}
)
_NOT_THEIRS = ("<", _OURS, *_LIBRARIES)
_SPARKS = re.compile(r"pyspark\.zip[/\\]|[/\\]pyspark[/\\](worker|daemon)\.py$")
"""Spark brings its Python with it, wherever it lies."""


def here() -> str:
    """``file.py:31`` of the nearest caller outside this package and installed ones; a command has no line."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_COMMANDS):
            return ""
        if not file.startswith(_NOT_THEIRS) and not _SPARKS.search(file):
            return f"{_name(file)}:{frame.f_lineno}"
        if file.startswith("<") and not file.startswith(("<string>", "<frozen")):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@cache
def _name(file: str) -> str:
    return Path(file).name


def of_the_user(file: str) -> bool:
    """Whether code in a file is neither this package's nor an installed one's."""
    if file.endswith((".pyx", ".pxi")) or _made_up(file) or _SPARKS.search(file):
        return False
    return not file.startswith(("<frozen", "<string>", _OURS, *_LIBRARIES))


def _made_up(file: str) -> bool:
    """Whether compiled code of a library names a file that never was, as in ``EnumTypeToPy``."""
    return not file.startswith("<") and not {".", "/", "\\"} & set(file) and not Path(file).exists()


RAISED = (Exception, GeneratorExit)
"""What a function of the user's may raise to fail; that the process is to end is not among it."""


STOPS = (StopIteration, StopAsyncIteration)


def users_line(error: BaseException) -> str:
    """``file.py:31`` of the user's innermost line that an error came through; empty if there is none.

    A generator that raises StopIteration ends in a RuntimeError, which knows nothing of its lines.
    """
    stopped = isinstance(error, RuntimeError) and isinstance(error.__cause__, STOPS)
    cause = error.__cause__ if stopped else None
    line, trace = "" if cause is None else users_line(cause), error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        line = f"{Path(file).name}:{trace.tb_lineno}" if of_the_user(file) else line
        trace = trace.tb_next
    return line


class CaesuraError(Exception):
    """A diagnostic: problem and remedy, and, once a plan knows them, step and place."""

    witness: list[dict[str, object]] | None = None
    """A shortest stream that shows the problem, as rows, where there is one."""
    missing: str = ""
    """The column that is not there, where that is the problem."""

    def __init__(self, problem: str, *, remedy: str, step: str = "", place: str = "") -> None:
        self.problem = problem
        self.remedy = remedy
        self.step = step
        self.place = place
        self.called = "" if place else _line()
        super().__init__(problem)

    def __str__(self) -> str:
        where = f"step '{self.step}'" if self.step else ""
        if place := self.place or self.called:
            where = f"{where} ({place})" if where else place
        head = f"{where}: {self.problem}" if where else self.problem
        return printable(f"{head}\n{self.remedy}", lines=True)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.remedy, self.step, self.place or self.called)

    def to_json(self) -> dict[str, str]:
        """The diagnostic in its parts.

        Returns
        -------
        dict
            ``error``, ``step``, ``place``, ``problem`` and ``remedy``.

        Examples
        --------
        >>> import caesura as cz
        >>> cz.PlanError("no column 'a'.", remedy="Did you mean 'b'?", step="where").to_json()["problem"]
        "no column 'a'."
        """
        where = {"step": self.step, "place": self.place or self.called}
        return {"error": type(self).__name__, **where, "problem": self.problem, "remedy": self.remedy}

    def at(self, step: str, place: str) -> CaesuraError:
        """The same diagnostic, naming a step and a line unless it names them already.

        Parameters
        ----------
        step
            The step's name.
        place
            The file and line: ``flow.py:3``.

        Returns
        -------
        CaesuraError
            This error.

        Examples
        --------
        >>> import caesura as cz
        >>> print(cz.PlanError("no column 'a'.", remedy="Did you mean 'b'?").at("where", "flow.py:3"))
        step 'where' (flow.py:3): no column 'a'.
        Did you mean 'b'?
        """
        self.step = self.step or step
        self.place = self.place or place
        return self


def _line() -> str:
    """The line in a file that called us; Python's own prompt needs none."""
    line = here()
    return "" if line.startswith("<") else line


def _rebuild(kind: type[CaesuraError], problem: str, remedy: str, step: str, place: str) -> CaesuraError:
    return kind(problem, remedy=remedy, step=step, place=place)


def lacking(error: E, name: str) -> E:
    """The same error, which knows the column that is not there."""
    error.missing = name
    return error


class PatternError(CaesuraError):
    """A punctuation pattern that does not fit its stream."""


class ExprError(CaesuraError):
    """An expression that is ill-typed or names what is not there."""


class PlanError(CaesuraError):
    """A plan that cannot mean anything, refused when it is built."""


class NoSuchNameError(PlanError, AttributeError):
    """A method or function that there is not, with the one that was meant."""


class DataError(CaesuraError):
    """Input that cannot be read as what it was declared to be."""


class StreamError(CaesuraError):
    """A running query that met something it may not answer."""


MORE_ROOM = (
    "Give the process more memory, spread the query over more buckets, or let texts and other wide columns "
    "go to the disk with state_memory=, less than half of what the process may take."
)


REFUSALS = (
    (
        {errno.ENOSPC, errno.EDQUOT, errno.EFBIG},
        "Make room there, or give a place on another disk. A checkpoint there is whole: a query that has "
        "one goes on from it.",
    ),
    (
        {errno.EACCES, errno.EPERM, errno.EROFS},
        "Let this process read it, and write it where something is written, or give another path.",
    ),
    ({errno.ENOENT}, "Give a path that is there."),
    ({errno.EISDIR, errno.ENOTDIR, errno.EEXIST}, "Give another path, or move away what lies there."),
    ({errno.EMFILE, errno.ENFILE}, "Let the process hold more files open: ulimit -n."),
)
"""What to do about what a machine refuses, by the numbers of its errors."""


def failure(error: BaseException) -> StreamError:
    """What a step, or a function of the user's in it, did not expect, as a diagnostic."""
    text = first_words(error)
    line = users_line(error)
    if isinstance(error, MemoryError) and not line:
        return StreamError(f"there is not enough memory ({text}).", remedy=MORE_ROOM)
    if isinstance(error, OSError) and not line:
        return refused_by_machine(error)
    whose = f"It was raised at {line}" if line else "It is a fault of ours"
    return StreamError(f"{text}.", remedy=f"{whose}; the whole trace is in this error's cause.")


def refused_by_machine(error: OSError) -> StreamError:
    """What the disk, the network or the rights of the process do not allow, as a diagnostic.

    >>> print(refused_by_machine(PermissionError(13, "Permission denied", "/out/1.parquet")))
    '/out/1.parquet': Permission denied.
    Let this process read it, and write it where something is written, or give another path.
    """
    what = (error.strerror or str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")
    paths = [os.fsdecode(p) for p in (error.filename, error.filename2) if isinstance(p, str | bytes)]
    who = " and ".join(f"'{path}'" for path in paths) or type(error).__name__
    text = f"{who}: {what}."
    known = next((remedy for numbers, remedy in REFUSALS if error.errno in numbers), "")
    if not known and isinstance(error, ConnectionError | TimeoutError):
        known = "See that the other side runs and can be reached from here, and start again."
    return StreamError(text, remedy=known or "The whole trace is in this error's cause.")


def first_words(error: BaseException) -> str:
    """The kind of an error and the first line of what it says."""
    return " ".join([type(error).__name__ + ":", *str(error).strip().splitlines()[:1]]).rstrip(": .")


def our_module(error: BaseException) -> str:
    """The innermost module of this package that an error came through; empty if there is none."""
    found, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        name = trace.tb_frame.f_globals.get("__name__", "")
        found = name if file.startswith(_OURS) and name != "caesura.misuse" else found
        trace = trace.tb_next
    return found


def closest(name: object, among: Iterable[str]) -> str:
    """A remedy for a wrong name: the nearest right one, or the list of all there are.

    >>> closest("spede", ["speed", "segment"])
    "Did you mean 'speed'? There are: segment, speed."
    """
    known = sorted(among)
    listing = f"There are: {', '.join(known)}." if known else "There are none."
    near = difflib.get_close_matches(name, known, n=1) if isinstance(name, str) else []
    return f"Did you mean '{near[0]}'? {listing}" if near else listing


def looked_up(known: Mapping[str, T], name: object, what: str, step: str = "") -> T:
    """What is known by a name; refuses any other name, with those there are.

    >>> looked_up({"speeds": 1}, "speeds", "view")
    1
    """
    if isinstance(name, str) and name in known:
        return known[name]
    raise StreamError(f"there is no {what} {name!r}.", remedy=closest(name, known), step=step, place=here())
