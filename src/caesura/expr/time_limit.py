"""A function that has so long for an answer; then it is left, and the rows it was called for have none.

In the main thread, as in Spark's workers, a timer breaks in, also where the function sleeps or waits. In
another thread it breaks in between two steps of the function's own code. Compiled code that never comes back
is beyond both.

>>> TimeLimited(lambda a: a + 1, 1.0)(4)
5
"""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from caesura.expr.code import code_key

AGAIN = 0.05
"""Seconds until a function is told once more: the first time may have hit where errors are not passed on."""


class OutOfTime(BaseException):
    """The time is over."""


@dataclass(frozen=True)
class TimeLimited:
    """A function with a limit, in seconds, on each call."""

    function: Callable[..., Any]
    seconds: float

    @property
    def key(self) -> str:
        """Equal for functions that answer the same; how long they may take for it does not count."""
        return code_key(self.function)

    def __call__(self, *args: Any) -> Any:
        alone = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
        try:
            return self._by_signal(args) if alone else self._by_thread(args)
        except OutOfTime:
            raise TimeoutError(f"no answer within {self.seconds:g} s") from None

    def _by_signal(self, args: tuple[Any, ...]) -> Any:
        running = True

        def ring(*_: object) -> None:
            if running:
                raise OutOfTime

        before, began = signal.signal(signal.SIGALRM, ring), time.monotonic()
        left, interval = signal.setitimer(signal.ITIMER_REAL, self.seconds, AGAIN)
        try:
            try:
                return self.function(*args)
            finally:
                running = False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            if left:  # somebody else's timer goes on
                rest = max(1e-3, left - (time.monotonic() - began))
                signal.setitimer(signal.ITIMER_REAL, rest, interval)

    def _by_thread(self, args: tuple[Any, ...]) -> Any:
        thread, lock, over = threading.get_ident(), threading.Lock(), threading.Event()

        def watch() -> None:
            wait = self.seconds
            while not over.wait(wait):
                wait = AGAIN
                with lock:
                    if not over.is_set():
                        _break_into(thread)

        def end() -> None:
            with lock:
                over.set()
            for _ in range(3):  # what has not arrived yet arrives here, and no further out
                pass

        threading.Thread(target=watch, daemon=True).start()
        try:
            try:
                return self.function(*args)
            finally:
                end()
        finally:
            end()  # the first may have been broken into


def _break_into(thread: int) -> None:
    """Raises in another thread. It is never taken back: Python 3.11 would look for it for ever after, and
    hang as soon as somebody traces or profiles."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTime))
