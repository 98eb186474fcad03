"""Compiled loops, each with the plain-Python function it was compiled from as its twin.

A kernel is written as ordinary Python over NumPy arrays. Numba compiles it when it has work to do
(never at import: numba alone takes 0.4 s; a few rows are left to the twin) and keeps the machine code
on disk. ``CAESURA_KERNELS=python``
runs every twin instead, and the tests hold the two against each other.

>>> @kernel
... def double(values, out):
...     for i in range(len(values)):
...         out[i] = 2 * values[i]
>>> import numpy as np
>>> out = np.zeros(3, np.int64)
>>> double.twin(np.arange(3), out); out.tolist()
[0, 2, 4]
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FunctionType
from typing import ClassVar, Generic, ParamSpec, TypeVar, cast

import numpy as np

from caesura.waiting import waiting

P = ParamSpec("P")
R = TypeVar("R")
INTERPRET_UP_TO = 20_000
"""So many elements a kernel's twin may see before numba is loaded for it."""

__all__ = ["Kernel", "kernel", "small_kernel"]


class Kernel(Generic[P, R]):
    """A function over arrays that compiles itself when it is first called."""

    _compiles: ClassVar[bool] = False
    """Whether any has been compiled: the compiler, once it is at work, takes less than a twin."""

    def __init__(self, twin: Callable[P, R], *, written_in: bool = False) -> None:
        self.twin = twin
        self.written_in = written_in
        """Whether its text takes the place of calls to it from other kernels."""
        self.__doc__ = twin.__doc__
        self._run: Callable[P, R] | None = None
        self._machine: Callable[P, R] | None = None
        self._interpreted = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        run = self._run
        if run is not None:
            return run(*args, **kwargs)
        if self._stays_small(args):
            with np.errstate(over="ignore"):
                return self.twin(*args, **kwargs)
        if interpreted():
            self._run = self.twin
            return self.twin(*args, **kwargs)
        with waiting("compiling, once for this machine"):
            run = self.compiled()
            result = run(*args, **kwargs)
        self._run = run
        return result

    def _stays_small(self, args: tuple[object, ...]) -> bool:
        """Whether the twin will do: a few rows do not pay for loading the compiler."""
        if Kernel._compiles or interpreted():
            return False
        self._interpreted += max((len(a) for a in args if isinstance(a, np.ndarray)), default=0)
        return self._interpreted < INTERPRET_UP_TO

    def compiled(self) -> Callable[P, R]:
        """The machine-code form; kernels that it calls are compiled along with it."""
        if self._machine is not None:
            return self._machine
        import numba

        Kernel._compiles = True
        from caesura.kernels.cache import keyed

        source = self._source()
        known = {
            name: value.compiled() if isinstance(value, Kernel) else value
            for name, value in source.__globals__.items()
            if name in source.__code__.co_names or name.startswith("__")
        }
        function = FunctionType(source.__code__, known, source.__name__, source.__defaults__)
        function.__module__ = source.__module__
        function.__qualname__ = source.__qualname__
        machine = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
        keyed(machine, self._modules())
        self._machine = cast("Callable[P, R]", machine)
        return self._machine

    def _modules(self) -> set[str]:
        """Where its text is, and that of the kernels that it calls."""
        plain = cast(FunctionType, self.twin)
        called = [plain.__globals__.get(name) for name in plain.__code__.co_names]
        others = (one._modules() for one in called if isinstance(one, Kernel) and one is not self)
        return {plain.__module__}.union(*others)

    def _source(self) -> FunctionType:
        """The function to compile: the twin, with the text of small kernels in the place of their calls."""
        plain = cast(FunctionType, self.twin)
        given = {n: plain.__globals__.get(n) for n in plain.__code__.co_names}
        small = {
            n: cast(FunctionType, k.twin) for n, k in given.items() if isinstance(k, Kernel) and k.written_in
        }
        if not small:
            return plain
        from caesura.kernels.inlining import written_in

        return written_in(plain, small)


def compiling() -> bool:
    """Whether kernels are compiled in this process by now, so that another one costs little."""
    return Kernel._compiles and not interpreted()


def interpreted() -> bool:
    """Whether kernels run as plain Python, as the environment asks."""
    return os.environ.get("CAESURA_KERNELS", "").lower() == "python"


def kernel(twin: Callable[P, R]) -> Kernel[P, R]:
    """Marks a function over arrays as a kernel."""
    return Kernel(twin)


def small_kernel(twin: Callable[P, None]) -> Kernel[P, None]:
    """Marks a kernel that gives nothing back, and is written into the kernels that call it."""
    return Kernel(twin, written_in=True)
