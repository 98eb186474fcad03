"""Which machine code on disk a kernel may take: what was compiled from the same texts, and can be read.

Numba asks whether the file of a function has changed, after it has read what lies on disk. It does not ask
for the files of the functions that are called, and cannot read what names a class that was renamed since.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

UNREADABLE = (AttributeError, ImportError, EOFError, pickle.UnpicklingError)


@cache
def _text(module: str) -> bytes:
    """The source of a module; its name where there is no file."""
    path = getattr(sys.modules.get(module), "__file__", None)
    return Path(path).read_bytes() if path and Path(path).exists() else module.encode()


def digest(modules: Iterable[str]) -> str:
    """A short name for the sources of these modules.

    >>> digest(["caesura.kernels.sums"]) == digest(["caesura.kernels.keys"])
    False
    """
    made = hashlib.sha256()
    for module in sorted(set(modules)):
        made.update(_text(module))
    return made.hexdigest()[:16]


def keyed(dispatcher: Any, modules: Iterable[str]) -> None:
    """Lets a compiled function take from disk only what was made from the sources of these modules."""
    held = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if held is None or not hasattr(held, "_version") or not hasattr(held, "_load_index"):
        return  # another numba, which keeps its files in another way
    held._version = f"{held._version} {digest(modules)}"
    load = held._load_index

    def readable() -> Any:
        try:
            return load()
        except UNREADABLE:
            return {}

    held._load_index = readable
