"""Functions on lists, maps and structs, as Spark SQL has them.

`a[i]` counts from 0 and refuses a place that is not there, as Spark does; `get` gives null there.
`element_at` counts from 1, or from the end. A key that a map does not have gives null. Elements are compared
as rows are: null equals null, NaN equals NaN, -0.0 equals 0.0.

>>> from caesura.expr.nodes import col, lit
>>> plan = RULES["array_distinct"](col("a"), [pa.list_(pa.int64())])
>>> plan.kernel(pa.array([[2, None, 2, None], None])).to_pylist()
[[2, None], None]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from caesura.errors import ExprError, closest
from caesura.expr import nested
from caesura.expr.faults import Attempt
from caesura.expr.nodes import Apply, Constant, Expr
from caesura.expr.rewrite import strip
from caesura.expr.rules import Rule, TypedNode, Types, checking, shared_type, want, wrong
from caesura.expr.types import common_type, describe, kind

_INT, _LONG, _BOOLEAN = pa.int32(), pa.int64(), pa.bool_()
LIST = "Make a list with array(...), or take map_keys, map_values of a map."


def _list(node: Apply, types: Types, place: int = 0) -> pa.DataType:
    """The type of the elements of an argument; refuses what is no list."""
    if kind(types[place]) != "list":
        raise wrong(node, "a list", types, remedy=LIST)
    return types[place].value_type


def _map(node: Apply, types: Types) -> pa.DataType:
    if kind(types[0]) != "map":
        raise wrong(node, "a map", types, remedy="Make a map with create_map(key, value, ...).")
    return types[0]


def _size(node: Apply, types: Types) -> TypedNode:
    if kind(types[0]) != "map":
        _list(node, types)
    return TypedNode(_INT, tuple(types), nested.size)


def _whole(node: Apply, types: Types, place: int = 1) -> None:
    if kind(types[place]) not in ("integer", "null"):
        raise wrong(node, "a whole number for a place", types, remedy="Cast it: .cast('int').")


def _item(node: Apply, types: Types) -> TypedNode:
    """`a[0]`, `m["k"]`, `st["a"]`: what the brackets mean depends on what they stand behind."""
    match kind(types[0]):
        case "struct":
            return _field(node, types)
        case "map":
            return _key(node, types)
        case "list" if kind(types[1]) == "string" and kind(types[0].value_type) == "struct":
            return _fields(node, types)
        case "list":
            _whole(node, types)
            return checking(types[0].value_type, (types[0], _LONG), nested.ElementAt(nested.from_zero))
    raise wrong(node, "a list, map or struct", types, remedy="Write col('a').substring(1, 1) for a text.")


def _named(node: Apply, types: Types, struct: pa.DataType) -> int:
    name = node.args[1]
    if not isinstance(name, Constant) or not isinstance(name.value, str):
        raise wrong(node, "the name of a field", types, remedy="Write it as text, as in col('st')['a'].")
    index: int = struct.get_field_index(name.value)
    if index < 0:
        known = [f.name for f in struct]
        raise ExprError(f"in '{node}': no field '{name.value}'.", remedy=closest(name.value, known))
    return index


def _field(node: Apply, types: Types) -> TypedNode:
    index = _named(node, types, types[0])
    return TypedNode(types[0].field(index).type, tuple(types), lambda a, _: nested.field(a, index))


def _fields(node: Apply, types: Types) -> TypedNode:
    """A field of every struct in a list."""
    index = _named(node, types, types[0].value_type)
    made = pa.list_(types[0].value_type.field(index).type)
    return TypedNode(
        made, tuple(types), lambda a, _: nested.of_elements(a, lambda v: nested.field(v, index), made)
    )


def _key(node: Apply, types: Types) -> TypedNode:
    held = _map(node, types)
    if common_type(held.key_type, types[1]) != held.key_type and kind(types[1]) != "null":
        wanted = f"a key of type {describe(held.key_type)}"
        raise wrong(node, wanted, types, remedy=f"Cast the key: .cast('{describe(held.key_type)}').")
    if node.name == "map_contains_key":
        return TypedNode(_BOOLEAN, (held, held.key_type), nested.has_key)
    return TypedNode(held.item_type, (held, held.key_type), nested.value_of)


def _get(node: Apply, types: Types) -> TypedNode:
    _whole(node, types)
    return TypedNode(_list(node, types), (types[0], _LONG), nested.ElementAt(nested.from_zero))


def _element_at(node: Apply, types: Types) -> TypedNode:
    if kind(types[0]) == "map":
        return _key(node, types)
    found = _list(node, types)
    _whole(node, types)
    if isinstance(node.args[1], Constant) and node.args[1].value == 0:
        raise ExprError(
            f"in '{node}': places count from 1.", remedy="Write [0], or get(a, 0), for the first."
        )
    place = nested.ElementAt(nested.from_one)
    if node.name.startswith("try_"):
        return TypedNode(found, (types[0], _LONG), place)
    return checking(found, (types[0], _LONG), place)


def _searched(node: Apply, types: Types) -> TypedNode:
    """`array_contains` and `array_position`."""
    element = _list(node, types)
    shared = common_type(element, types[1])
    if shared is None or kind(types[1]) == "null":
        raise wrong(node, f"a value of type {describe(element)}", types, remedy="Cast one side.")
    contains = node.name == "array_contains"
    kernel = nested.contains if contains else nested.position
    return TypedNode(_BOOLEAN if contains else _LONG, (pa.list_(shared), shared), kernel)


def or_array(rule: Rule) -> Rule:
    """A rule for texts that is `array_contains` for lists."""

    def contains(node: Apply, types: Types) -> TypedNode:
        if kind(types[0]) != "list":
            return rule(node, types)
        if not node.options:
            return _searched(replace(node, name="array_contains"), types)
        want(
            node, [types[0].value_type], ("string",), "a list of texts", remedy="Write array_contains(a, 3)."
        )
        part = pa.scalar(node.options[0], pa.string())
        return TypedNode(_BOOLEAN, (types[0],), lambda a: nested.contains(a, part))

    return contains


def _array(node: Apply, types: Types) -> TypedNode:
    shared = shared_type(node, types) if types else pa.string()
    shared = pa.string() if pa.types.is_null(shared) else shared
    return TypedNode(pa.list_(shared), (shared,) * len(types), lambda *args: nested.array(args, shared))


def _struct(node: Apply, types: Types) -> TypedNode:
    plain = [pa.string() if pa.types.is_null(t) else t for t in types]
    made = pa.struct(list(zip(node.options, plain, strict=True)))
    if len(set(node.options)) < len(node.options):
        raise ExprError(f"in '{node}': two fields have one name.", remedy="Give one an alias.")
    return TypedNode(made, tuple(plain), lambda *args: nested.struct(args, made))


def _create_map(node: Apply, types: Types) -> TypedNode:
    keys = shared_type(node, types[::2])
    items = shared_type(node, types[1::2])
    items = pa.string() if pa.types.is_null(items) else items
    if kind(keys) in ("null", "map"):
        raise wrong(node, "keys that are neither null nor maps", types, remedy="Give other keys.")
    made = pa.map_(keys, items)
    attempt = _EveryRow(lambda *args: nested.create_map(args, made))
    return checking(made, (keys, items) * (len(types) // 2), attempt)


class _EveryRow(Attempt):
    """An attempt with a value for all rows, unless one is refused: nulls among its arguments are values."""

    def refused(self, made: Any, args: Any) -> Any:
        return made.is_null()


def _of_map(node: Apply, types: Types) -> TypedNode:
    held = _map(node, types)
    entries = pa.struct([("key", held.key_type), ("value", held.item_type)])
    found = {"map_keys": held.key_type, "map_values": held.item_type, "map_entries": entries}[node.name]
    part = {"map_keys": 0, "map_values": 1, "map_entries": None}[node.name]
    return TypedNode(pa.list_(found), (held,), lambda a: nested.entries(a, part, pa.list_(found)))


def _sorted(node: Apply, types: Types) -> TypedNode:
    _list(node, types)
    down, nulls = node.options
    return TypedNode(types[0], (types[0],), lambda a: nested.in_order(a, down=down, nulls=nulls))


def _distinct(node: Apply, types: Types) -> TypedNode:
    _list(node, types)
    return TypedNode(types[0], (types[0],), nested.distinct)


def _extreme(node: Apply, types: Types) -> TypedNode:
    greatest = node.name == "array_max"
    return TypedNode(_list(node, types), (types[0],), lambda a: nested.extreme(a, greatest=greatest))


def _flatten(node: Apply, types: Types) -> TypedNode:
    if kind(_list(node, types)) != "list":
        raise wrong(node, "a list of lists", types, remedy="It is flat already: leave flatten out.")
    return TypedNode(types[0].value_type, (types[0],), nested.flatten)


def _slice(node: Apply, types: Types) -> TypedNode:
    _list(node, types)
    _whole(node, types)
    _whole(node, types, 2)
    return checking(types[0], (types[0], _LONG, _LONG), Attempt(nested.slices))


def _joined(node: Apply, types: Types) -> TypedNode:
    want(node, [_list(node, types)], ("string",), "a list of texts", remedy="Cast its elements: transform.")
    separator, null = node.options
    return TypedNode(pa.string(), (types[0],), lambda a: nested.joined(a, separator, null))


def _generator(node: Apply, types: Types) -> TypedNode:
    raise ExprError(
        f"'{node}' makes rows, so it is no value of one row.",
        remedy="Write it as one column of select or with_columns, or take the step .explode('column').",
    )


GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer")


def generator(expr: Expr) -> bool:
    """Whether an expression makes rows."""
    bare = strip(expr)
    return isinstance(bare, Apply) and bare.name in GENERATORS


RULES: dict[str, Rule] = {
    "size": _size,
    "item": _item,
    "get": _get,
    "element_at": _element_at,
    "try_element_at": _element_at,
    "map_contains_key": _key,
    "array_contains": _searched,
    "array_position": _searched,
    "array": _array,
    "struct": _struct,
    "create_map": _create_map,
    "map_keys": _of_map,
    "map_values": _of_map,
    "map_entries": _of_map,
    "array_sort": _sorted,
    "sort_array": _sorted,
    "array_distinct": _distinct,
    "array_min": _extreme,
    "array_max": _extreme,
    "flatten": _flatten,
    "slice": _slice,
    "array_join": _joined,
    **dict.fromkeys(GENERATORS, _generator),
}
