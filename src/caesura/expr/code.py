"""What tells one user function from another, also in another process: its code and what it captures.

>>> def scaled(by):
...     return lambda x: x * by
>>> code_key(scaled(2)) == code_key(scaled(2)), code_key(scaled(2)) == code_key(scaled(3))
(True, False)
"""

from __future__ import annotations

import functools
import hashlib
import types
from typing import Any

PLAIN = (type(None), bool, int, float, complex, str, bytes)


def code_key(target: Any) -> str:
    """Equal for functions or classes with equal code and equal captured values.

    A captured object that is not a plain value counts as itself: then the key holds in this process only.
    """
    return hashlib.sha256(_text(target, set()).encode()).hexdigest()[:16]


def _text(value: Any, seen: set[int]) -> str:
    if isinstance(value, PLAIN):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, (tuple, list)):
        return f"({','.join(_text(v, seen) for v in value)})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(_text(v, seen) for v in value))}}}"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_text(k, seen)}={_text(v, seen)}' for k, v in value.items())}}}"
    if id(value) in seen:
        return "again"
    seen = seen | {id(value)}
    if isinstance(value, types.CodeType):
        parts = (value.co_code, value.co_names, value.co_varnames, value.co_consts)
        return f"code({','.join(_text(p, seen) for p in parts)})"
    if isinstance(value, types.FunctionType):
        return _function(value, seen)
    if isinstance(value, functools.partial):
        return f"partial({_text(value.func, seen)},{_text(value.args, seen)},{_text(value.keywords, seen)})"
    if isinstance(value, types.MethodType):
        return f"method({_text(value.__func__, seen)},{_text(value.__self__, seen)})"
    if isinstance(value, type) and value.__module__ != "builtins":
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
    return f"{type(value).__name__}@{id(value)}"


def _function(function: types.FunctionType, seen: set[int]) -> str:
    cells = tuple(cell.cell_contents for cell in function.__closure__ or () if not _empty(cell))
    used = {
        name: function.__globals__[name]
        for name in function.__code__.co_names
        if name in function.__globals__
    }
    parts = (function.__code__, function.__defaults__, function.__kwdefaults__, cells)
    return f"{function.__qualname__}({','.join(_text(p, seen) for p in parts)},{_globals(used, seen)})"


def _globals(used: dict[str, Any], seen: set[int]) -> str:
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
