"""What somebody who waits at a terminal sees: what is done, of how much, and how long it still takes.

Nothing is shown where there is no terminal, nor to whoever waits for less than two seconds.

>>> TaskProgress("restoring the state", 300_000_000, "bytes", done=120_000_000).text(10.0)
'restoring the state: 120 of 300 MB (40 %), 12 a second, about 15 s to go'
>>> TaskProgress("running", 6_000_000, "rows", done=1_500_000).text(10.0)
'running: 1,500,000 of 6,000,000 rows (25 %), 150,000 a second, about 30 s to go'
>>> TaskProgress("running", None, "rows", done=1_500_000).text(10.0)
'running: 1,500,000 rows, 150,000 a second, 10 s so far'
>>> TaskProgress("compiling").text(3.0)
'compiling: 3 s so far'
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TextIO

FIRST = 2.0
"""Seconds after which something is shown: whoever waits for less needs nothing."""
EVERY = 0.25
"""Seconds from one text to the next."""
MEGABYTE = 1_000_000
Tell = Callable[[str], None]
"""Shows a text in the place of the one before; an empty one goes."""


@dataclass
class TaskProgress:
    """How far something is that takes its time."""

    what: str
    total: int | None = None
    unit: str = ""
    """What is counted: rows, files, claims, bytes; empty where nothing is."""
    done: int = 0
    began: float = field(default_factory=time.monotonic)

    def text(self, seconds: float | None = None) -> str:
        """What is said, after so many seconds."""
        seconds = time.monotonic() - self.began if seconds is None else seconds
        if not self.unit:
            return f"{self.what}: {seconds:.0f} s so far"
        scale, unit = (MEGABYTE, "MB") if self.unit == "bytes" else (1, self.unit)
        done, rate = self.done / scale, self.done / scale / max(seconds, 1e-9)
        if not self.total or not 0 < self.done <= self.total:
            return f"{self.what}: {done:,.0f} {unit}, {rate:,.0f} a second, {seconds:.0f} s so far"
        left = (self.total - self.done) / scale / rate
        share = f"{done:,.0f} of {self.total / scale:,.0f} {unit} ({100 * self.done // self.total} %)"
        return f"{self.what}: {share}, {rate:,.0f} a second, about {left:.0f} s to go"


def pauses() -> tuple[float, float]:
    """Seconds before the first text, and from one to the next."""
    return FIRST, EVERY


_elsewhere: ContextVar[Tell | None] = ContextVar("caesura_progress_elsewhere", default=None)


@contextmanager
def shown_elsewhere(tell: Tell = lambda text: None) -> Iterator[None]:
    """Within, whoever called shows what is said by other means, or not at all."""
    before = _elsewhere.set(tell)
    try:
        yield
    finally:
        _elsewhere.reset(before)


def teller(screen: TextIO | None = None) -> Tell | None:
    """What shows a text to whoever waits; None where nobody looks."""
    chosen = _elsewhere.get()
    screen = screen or sys.stderr
    if chosen is not None or screen is None or not screen.isatty():
        return chosen

    def line(text: str) -> None:
        screen.write(f"\r\x1b[K{text}")
        screen.flush()

    return line


@contextmanager
def waiting(
    what: str, total: int | None = None, unit: str = "", *, screen: TextIO | None = None
) -> Iterator[TaskProgress]:
    """Within, a line says how far ``done`` of what is given has come; it goes at the end."""
    progress, tell = TaskProgress(what, total, unit), teller(screen)
    if tell is None:
        yield progress
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(progress, tell, ended), name="caesura-waiting", daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        ended.set()
        thread.join()


def _show(progress: TaskProgress, tell: Tell, ended: threading.Event) -> None:
    pause = FIRST
    while not ended.wait(pause):
        tell(progress.text())
        pause = EVERY
    if time.monotonic() - progress.began >= FIRST:
        tell(progress.text())
        tell("")
