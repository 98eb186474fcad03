"""Python values as JSON, exactly: what JSON lacks carries a tag, and a part that is shared is written once.

A value is a list of nodes, parts before wholes, so neither depth nor sharing costs anything. Known are
numbers, texts, bytes, times, NumPy arrays, Python's containers, and the dataclasses and named tuples that
the reader expects: a name in saved state never leads to code. Everything else is refused by name.

>>> PLAIN.to_json(("a", [1, None], {2: 0.5}))
[['dict', 2, 0.5], ['list', 1, None], ['tuple', 'a', [1], [0]]]
>>> PLAIN.from_json(_)
('a', [1, None], {2: 0.5})
"""

from __future__ import annotations

import gc
from base64 import b64decode, b64encode
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import chain
from typing import Any, get_args, get_type_hints
from uuid import UUID

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.arrow_bytes import first_batch
from caesura.events.chunks import SavedJson, damaged, ipc_bytes, json_chunk

SCALARS = frozenset([type(None), bool, int, float, str])
"""The types that JSON has."""
REMEDY = "Hold it as numbers, texts, lists, tuples, dicts, arrays, or dataclasses of them."
Pairs = Iterable[tuple[Any, Any]]


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _span(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


_LEAVES: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    bytes: ("bytes", _text, b64decode),
    Decimal: ("decimal", str, Decimal),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    timedelta: ("timedelta", _span, lambda parts: timedelta(*parts)),
    UUID: ("uuid", str, UUID),
}
_LISTS: dict[type, str] = {tuple: "tuple", list: "list", set: "set", frozenset: "frozenset"}
_DICTS: dict[type, str] = {dict: "dict", Counter: "counter", OrderedDict: "ordered"}
_MADE: dict[str, Callable[[Any], Any]] = {name: t for t, name in (_LISTS | _DICTS).items()}
_READ = {name: read for name, _, read in _LEAVES.values()}
_FACTORIES = {t.__name__: t for t in (int, float, str, bool, list, dict, set, tuple)}


@contextmanager
def collector_paused() -> Iterator[None]:
    """Many objects are made at once, none in a cycle: looking for cycles would take most of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Codec:
    """Writes and reads values; ``classes`` are those that may be among them."""

    def __init__(self, classes: Iterable[type] = (), *, remedy: str = REMEDY) -> None:
        self.classes = {c.__qualname__: c for c in classes}
        self._fields = {c: _names(c) for c in self.classes.values()}
        self.remedy = remedy

    def write(self, value: Any) -> bytes:
        """A value as a chunk."""
        with collector_paused():
            return json_chunk(self.to_json(value))

    def read(self, data: bytes) -> Any:
        """The value that `write` took."""
        with collector_paused():
            return self.from_json(SavedJson("a Python value").read({"a Python value": data}))

    def to_json(self, value: Any) -> list[Any]:
        """The nodes of a value; the last is the value itself."""
        nodes: list[list[Any]] = []
        places: dict[int, list[int]] = {}
        open_: dict[int, tuple[str, list[Any]]] = {}
        """What was taken apart, so that nobody else gets its address."""
        todo = [value]
        while todo:
            one = todo.pop()
            key = id(one)
            if key in places:
                continue
            known = open_.get(key) or self._parts(one)
            node, missing = [known[0]], []
            for part in known[1]:
                if type(part) in SCALARS:
                    node.append(part)
                elif (place := places.get(id(part))) is not None:
                    node.append(place)  # type: ignore[arg-type]
                else:
                    missing.append(part)
            if not missing:
                places[key] = [len(nodes)]
                nodes.append(node)
                continue
            if any(id(part) in open_ for part in missing):
                raise self._refused(one, "it holds itself")
            open_[key] = known
            todo += [one, *missing]
        return nodes

    def from_json(self, nodes: list[Any]) -> Any:
        """The value that `to_json` took."""
        made: list[Any] = []
        try:
            for tag, *parts in nodes:
                made.append(self._made(tag, [made[p[0]] if type(p) is list else p for p in parts]))
            return made[-1]
        except (IndexError, KeyError, TypeError, ValueError, ArithmeticError, pa.ArrowInvalid) as error:
            raise damaged("a Python value") from error

    def _parts(self, value: Any) -> tuple[str, list[Any]]:
        """What kind of value it is, and what it is made of."""
        t = type(value)
        if t in _LISTS:
            return _LISTS[t], list(value)
        if t in _DICTS:
            return _DICTS[t], list(chain.from_iterable(value.items()))
        if t in SCALARS:
            return "scalar", [value]
        if t in _LEAVES and (t is not datetime or type(value.tzinfo) in (type(None), timezone)):
            tag, written, _ = _LEAVES[t]
            made = written(value)
            return tag, made if isinstance(made, list) else [made]
        if t is deque:
            return "deque", [value.maxlen, *value]
        if t is defaultdict and value.default_factory in _FACTORIES.values():
            return "defaultdict", [value.default_factory.__name__, *chain.from_iterable(value.items())]
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "OV":
            return "array", [
                value.dtype.str,
                _text(value.tobytes()),
                isinstance(value, np.generic),
                *value.shape,
            ]
        if t in self._fields:
            return "class", [t.__qualname__, *(getattr(value, name) for name in self._fields[t])]
        return "arrow", [_text(self._as_arrow(value))]

    def _as_arrow(self, value: Any) -> bytes:
        """What Arrow gives back as it was: times in a zone, or of nanoseconds."""
        try:
            column = pa.array([value])
            back = column[0].as_py()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise self._refused(value, "it is no plain data") from None
        if type(back) is not type(value) or back != value:
            raise self._refused(value, "it is no plain data")
        return ipc_bytes(pa.record_batch({"value": column}))

    def _made(self, tag: str, parts: list[Any]) -> Any:
        if tag in _MADE:
            return _MADE[tag](parts if tag in _LISTS.values() else _paired(parts))
        if tag == "scalar":
            return parts[0]
        if tag in _READ:
            return _READ[tag](parts if tag == "timedelta" else parts[0])
        if tag == "deque":
            return deque(parts[1:], parts[0])
        if tag == "defaultdict":
            return defaultdict(_FACTORIES[parts[0]], _paired(parts[1:]))
        if tag == "array":
            dtype, data, single, *shape = parts
            whole = np.frombuffer(b64decode(data), np.dtype(dtype)).reshape(shape)
            return whole[()] if single else whole.copy()
        if tag == "class":
            return self._instance(*parts)
        if tag != "arrow":
            raise KeyError(tag)
        return first_batch(b64decode(parts[0])).column(0)[0].as_py()

    def _instance(self, name: str, *parts: Any) -> Any:
        """An instance with these fields; its class does not get to check or change them again."""
        made = self.classes[name]
        if issubclass(made, tuple):
            return made(*parts)
        one = object.__new__(made)
        for field, value in zip(self._fields[made], parts, strict=True):
            object.__setattr__(one, field, value)
        return one

    def _refused(self, value: Any, why: str) -> StreamError:
        t = type(value)
        name = t.__qualname__ if t.__module__ == "builtins" else f"{t.__module__}.{t.__qualname__}"
        return StreamError(f"a value of type {name} cannot be saved: {why}.", remedy=self.remedy)


PLAIN = Codec()


def classes_of(*given: Any) -> set[type]:
    """The dataclasses and named tuples that values, or types, are made of, by their fields' types too."""
    found: set[type] = set()
    todo = list(given)
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        t = one if isinstance(one, type) else type(one)
        if is_dataclass(t) or (issubclass(t, tuple) and hasattr(t, "_fields")):
            if t not in found:
                found.add(t)
                todo += _hints(t).values()
            if not isinstance(one, type):
                todo += [getattr(one, name, None) for name in _names(t)]
        elif isinstance(one, (list, tuple, set, frozenset)):
            todo += one
        elif isinstance(one, dict):
            todo += [*one.keys(), *one.values()]
        else:
            todo += get_args(one)
    return found


def _hints(t: type) -> dict[str, Any]:
    try:
        return get_type_hints(t)
    except NameError:  # a type that only checkers know
        return {}


def weight(value: Any) -> int:
    """About how many bytes of memory a value takes; what is shared counts once."""
    total, seen, todo = 0, set[int](), [value]
    while todo:
        one = todo.pop()
        if type(one) in SCALARS:
            total += 8 + (len(one) if type(one) is str else 0)
            continue
        if id(one) in seen:
            continue
        seen.add(id(one))
        total += 16
        if isinstance(one, dict):
            todo += one.keys()
            todo += one.values()
        elif isinstance(one, (list, tuple, set, frozenset, deque)):
            todo += one
        elif isinstance(one, (np.ndarray, np.generic)):
            total += one.nbytes
        elif isinstance(one, bytes):
            total += len(one)
        else:
            todo += getattr(one, "__dict__", {}).values()
    return total


def _paired(parts: list[Any]) -> dict[Any, Any]:
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _names(t: type) -> tuple[str, ...]:
    """The fields of a dataclass or a named tuple."""
    return tuple(f.name for f in fields(t)) if is_dataclass(t) else t._fields  # type: ignore[attr-defined]
