"""What tells one user function from another, also in another process: its code and what it captures.

>>> def scaled(by):
...     return lambda x: x * by
>>> code_key(scaled(2)) == code_key(scaled(2)), code_key(scaled(2)) == code_key(scaled(3))
(True, False)
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import Any

from caesura.errors import ExprError

PLAIN = (type(None), bool, int, float, complex, str, bytes)
LONG = 4096
"""Longer bytes count by their hash."""
Seen = tuple[object, ...]
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class OpaqueError(Exception):
    """Something that shows nothing of what it is made of."""


def code_key(target: Any) -> str:
    """Equal for functions or classes with equal code and equal captured values.

    A captured object counts by its class and what it is made of; one that is made of nothing that can be
    told, such as a lock or an open file, is refused.
    """
    try:
        text = _text(target, ())
    except OpaqueError as error:
        name = getattr(target, "__qualname__", type(target).__name__)
        raise ExprError(
            f"'{name}' holds {error}, which nothing tells from another, so that its state could not be found "
            "again after a restart.",
            remedy="Make it inside the function, or keep it in a global variable, which counts by its name.",
        ) from None
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _text(value: Any, seen: Seen) -> str:
    if isinstance(value, (bytes, bytearray)) and len(value) > LONG:
        return f"{type(value).__name__}:{hashlib.blake2b(value, digest_size=16).hexdigest()}"
    if isinstance(value, PLAIN):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, (tuple, list)):
        return f"({','.join(_text(v, seen) for v in value)})"
    if isinstance(value, (set, frozenset)):
        return f"{{{','.join(sorted(_text(v, seen) for v in value))}}}"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_text(k, seen)}={_text(v, seen)}' for k, v in value.items())}}}"
    if any(value is known for known in seen):
        return "again"
    return _made(value, (*seen, value))


def _made(value: Any, seen: Seen) -> str:
    """What has parts of its own; ``seen`` are the things that it is a part of."""
    if isinstance(value, types.CodeType):
        parts = (value.co_code, value.co_names, value.co_varnames, value.co_consts)
        return f"code({','.join(_text(p, seen) for p in parts)})"
    if isinstance(value, types.FunctionType):
        return _function(value, seen)
    if isinstance(value, functools.partial):
        return f"partial({_text(value.func, seen)},{_text(value.args, seen)},{_text(value.keywords, seen)})"
    if isinstance(value, types.MethodType):
        return f"method({_text(value.__func__, seen)},{_text(value.__self__, seen)})"
    if isinstance(value, type) and not _installed(value):
        own = {k: v for k, v in sorted(vars(value).items()) if k not in ("__dict__", "__weakref__")}
        return f"class {value.__qualname__}{_text(own, seen)}"
    if isinstance(value, (property, staticmethod, classmethod)):
        inner = value.fget if isinstance(value, property) else value.__func__
        return f"{type(value).__name__}({_text(inner, seen)})"
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if name is not None and not hasattr(value, "__dict__"):
        return f"{getattr(value, '__module__', '')}.{name}"
    if isinstance(value, (types.ModuleType, types.BuiltinFunctionType, type)):
        return f"{getattr(value, '__module__', '')}.{name}"
    return _object(value, seen)


def _object(value: Any, seen: Seen) -> str:
    """An object by its class and by what would make another that is equal to it."""
    inner = getattr(value, "__wrapped__", None) or getattr(value, "py_func", None)
    if isinstance(inner, types.FunctionType):
        return f"{type(value).__qualname__}({_text(inner, seen)})"
    key = getattr(value, "key", None) if type(value).__module__.startswith("caesura.") else None
    if key is not None and not callable(key):
        return f"{type(value).__qualname__}:{key}"
    reduce = copyreg.dispatch_table.get(type(value))
    try:
        made = value.__reduce_ex__(2) if reduce is None else reduce(value)
    except TypeError:
        raise OpaqueError(f"a '{type(value).__qualname__}'") from None
    if isinstance(made, str):
        return f"{type(value).__qualname__}:{made}"
    maker, args, *rest = made
    parts = [list(part) if isinstance(part, Iterator) else part for part in rest]
    return f"{_text(type(value), seen)}{getattr(maker, '__qualname__', '')}{_text((args, parts), seen)}"


def _installed(kind: type) -> bool:
    """Whether a class is of Python or of an installed package, so that its name tells enough."""
    place = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return (place is None and kind.__module__ != "__main__") or str(place).startswith(_LIBRARIES)


def _function(function: types.FunctionType, seen: Seen) -> str:
    cells = tuple(cell.cell_contents for cell in function.__closure__ or () if not _empty(cell))
    used = {
        name: function.__globals__[name]
        for name in function.__code__.co_names
        if name in function.__globals__
    }
    parts = (function.__code__, function.__defaults__, function.__kwdefaults__, cells)
    return f"{function.__qualname__}({','.join(_text(p, seen) for p in parts)},{_globals(used, seen)})"


def _globals(used: dict[str, Any], seen: Seen) -> str:
    """Global values that the code reads; functions and plain values count, modules and classes by name."""
    return ",".join(
        f"{name}={_text(value, seen)}"
        for name, value in sorted(used.items())
        if isinstance(value, (*PLAIN, tuple, types.FunctionType))
    )


def _empty(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is cell
    except ValueError:
        return True
