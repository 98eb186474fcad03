"""Functions on lists, maps and structs in plain Python, value by value.

>>> NESTED["array_sort"]([[2, None, 1]], False, "last"), NESTED["array_contains"]([[1, None], 2])
([1, 2, None], None)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from caesura.audit.functions import NoValueError, fitted
from caesura.testing.oracles.rows import canonical, place

Args = list[Any]


def fitted_nested(value: Any, t: pa.DataType) -> Any:
    """A value of a type, with everything in it of its type."""
    if value is None or not pt.is_nested(t):
        return fitted(value, t)
    if pt.is_struct(t):
        return {field.name: fitted_nested(value[field.name], field.type) for field in t}
    if pt.is_map(t):
        return [(fitted_nested(k, t.key_type), fitted_nested(v, t.item_type)) for k, v in value]
    return [fitted_nested(each, t.value_type) for each in value]


def with_dicts(value: Any, t: pa.DataType) -> Any:
    """A value as users' functions are given it: maps are dicts."""
    if value is None or not pt.is_nested(t):
        return value
    if pt.is_struct(t):
        return {field.name: with_dicts(value[field.name], field.type) for field in t}
    if pt.is_map(t):
        return {with_dicts(k, t.key_type): with_dicts(v, t.item_type) for k, v in value}
    return [with_dicts(each, t.value_type) for each in value]


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal; null equals null."""
    return bool(canonical(a) == canonical(b))


def item(value: Any, key: Any, t: pa.DataType) -> Any:
    """What stands in brackets behind a struct, a map or a list."""
    if pt.is_struct(t):
        return value[key]
    if pt.is_map(t):
        return next((v for k, v in value if same(k, key)), None)
    if isinstance(key, str):
        return [None if each is None else each[key] for each in value]
    if not 0 <= key < len(value):
        raise NoValueError
    return value[key]


def element_at(value: Any, key: Any, t: pa.DataType) -> Any:
    """The element at a place that counts from 1, or from the end; the value of a key."""
    if pt.is_map(t):
        return item(value, key, t)
    if key == 0 or abs(key) > len(value):
        raise NoValueError
    return value[key - 1 if key > 0 else key]


def _contains(args: Args) -> bool | None:
    value, wanted = args
    if any(each is not None and same(each, wanted) for each in value):
        return True
    return None if None in value else False


def _by_key(value: Any) -> Any:
    return sorted(value, key=lambda entry: place(entry[0]))


def _distinct(args: Args) -> Any:
    found: dict[Any, Any] = {}
    for each in args[0]:
        found.setdefault(canonical(each), each)
    return list(found.values())


def _ordered(args: Args, down: bool, nulls: str) -> Any:
    some = sorted((v for v in args[0] if v is not None), key=place, reverse=down)
    none = [None] * (len(args[0]) - len(some))
    return [*none, *some] if nulls == "first" else [*some, *none]


def _extreme(pick: Callable[..., Any]) -> Callable[[Args], Any]:
    return lambda args: pick((v for v in args[0] if v is not None), key=place, default=None)


def _slice(args: Args) -> Any:
    value, start, length = args
    if start == 0 or length < 0:
        raise NoValueError
    first = start - 1 if start > 0 else len(value) + start
    return value[first : first + length] if first >= 0 else []


def _position(args: Args) -> int:
    return next((n for n, v in enumerate(args[0], 1) if v is not None and same(v, args[1])), 0)


def _joined(args: Args, separator: str, null: str | None) -> str:
    return separator.join(null if v is None else v for v in args[0] if v is not None or null is not None)  # type: ignore[misc]


NESTED: dict[str, Callable[..., Any]] = {
    "size": lambda args: len(args[0]),
    "get": lambda args: args[0][args[1]] if 0 <= args[1] < len(args[0]) else None,
    "map_contains_key": lambda args: any(same(k, args[1]) for k, _ in args[0]),
    "array_contains": _contains,
    "array_position": _position,
    "map_keys": lambda args: [k for k, _ in _by_key(args[0])],
    "map_values": lambda args: [v for _, v in _by_key(args[0])],
    "map_entries": lambda args: [{"key": k, "value": v} for k, v in _by_key(args[0])],
    "array_sort": _ordered,
    "sort_array": _ordered,
    "array_distinct": _distinct,
    "array_min": _extreme(min),
    "array_max": _extreme(max),
    "flatten": lambda args: None if None in args[0] else [v for each in args[0] for v in each],
    "slice": _slice,
    "array_join": _joined,
}
"""By name, from the arguments, none of which is null, and the options."""


def made(name: str, args: Args, options: tuple[Any, ...]) -> Any:
    """A list, a struct or a map of values, which may be null."""
    if name == "array":
        return args
    if name == "struct":
        return dict(zip(options, args, strict=True))
    keys, values = args[::2], args[1::2]
    if None in keys or len({canonical(k) for k in keys}) < len(keys):
        raise NoValueError
    return _by_key(list(zip(keys, values, strict=True)))


def each(verb: str, value: Any, body: Callable[[Any, int], Any]) -> Any:
    """What is said of each element, together."""
    if value is None:
        return None
    found = [body(one, at) for at, one in enumerate(value)]
    if verb == "transform":
        return found
    if verb == "filter":
        return [one for one, holds in zip(value, found, strict=True) if holds is True]
    decisive = verb == "exists"
    if any(holds is decisive for holds in found):
        return decisive
    return None if None in found else not decisive
