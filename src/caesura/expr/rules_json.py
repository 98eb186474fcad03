"""Values out of JSON texts by paths such as ``$.user.tags[0]``, as Spark's get_json_object has them.

Arrow parses no column of JSON texts, so each distinct text of a page is parsed once, by Python's library,
however many paths are asked of it.

>>> from caesura.expr.nodes import col
>>> plan = RULES["get_json_object"](col("a").json("$.b[1]"), [pa.string()])
>>> plan.kernel(pa.array(['{"b": [1, {"c": "x"}]}', "{", None])).to_pylist()
['{"c":"x"}', None, None]
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from caesura.errors import ExprError
from caesura.expr.nodes import Apply
from caesura.expr.rules import Rule, Shared, TypedNode, Types, sharing, want

Path = tuple[str | int, ...]
_STEP = re.compile(r"\.([^.\[\]*'\s][^.\[\]]*)|\[([0-9]+)\]|\['([^'?]*)'\]")


def path_of(text: str) -> Path | None:
    """The steps of a path; None where it is none.

    >>> path_of("$.a['b c'][0]"), path_of("a.b")
    (('a', 'b c', 0), None)
    """
    if not text.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            return None
        steps.append(int(found[2]) if found[2] else found[1] if found[1] is not None else found[3])
        at = found.end()
    return tuple(steps)


class Numeral(str):
    """A number as it was written."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object as it was written, a name that is there twice included."""


def _no_constant(word: str) -> Any:
    raise ValueError(word)


_DECODER = json.JSONDecoder(
    object_pairs_hook=Pairs,
    parse_int=lambda text: Numeral(int(text)),
    parse_float=lambda text: Numeral(java_double(float(text))),
    parse_constant=_no_constant,
    strict=False,
)
_MISSING = object()


def parsed(text: str) -> Any:
    """The value of a JSON text, numbers as they are written; what follows it does not matter."""
    try:
        return _DECODER.raw_decode(text.lstrip(" \t\r\n"))[0]
    except (ValueError, RecursionError):
        return _MISSING


def java_double(value: float) -> str:
    """A double as Java writes it.

    >>> java_double(1.5), java_double(100.0), java_double(12345678.9), java_double(0.0001)
    ('1.5', '100.0', '1.23456789E7', '1.0E-4')
    """
    if value == 0 or not math.isfinite(value):
        return {math.inf: '"Infinity"', -math.inf: '"-Infinity"'}.get(value, repr(value))
    if 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    digits_text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + int(exponent) - 1
    return f"{'-' if sign else ''}{digits_text[0]}.{digits_text[1:] or '0'}E{power}"


def _found(value: Any, path: Path) -> str | None:
    """What stands at a path, as a text: a text itself bare, all else as JSON."""
    for step in path:
        if isinstance(step, str) and isinstance(value, Pairs):
            value = next((held for name, held in value if name == step), None)
        elif isinstance(step, int) and type(value) is list and step < len(value):
            value = value[step]
        else:
            return None
    if value is _MISSING or (value is None and path):
        return None
    return str(value) if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    match value:
        case Numeral():
            return str(value)
        case Pairs():
            return "{" + ",".join(f"{_quoted(name)}:{_json(held)}" for name, held in value) + "}"
        case list():
            return "[" + ",".join(map(_json, value)) + "]"
    return _quoted(value)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _get(node: Apply, types: Types) -> TypedNode:
    want(node, types, ("string",), "JSON text", remedy="Cast it: .cast('string').")
    (text,) = node.options
    path = path_of(text)
    if path is None:
        raise ExprError(
            f"in '{node}': {text!r} is no path.",
            remedy="Write '$.name', '$.list[0]', \"$['odd name']\"; wildcards (*) are not known.",
        )

    def second(made: tuple[pa.Array, list[Any]]) -> pa.Array:
        indices, values = made
        return pa.array([_found(value, path) for value in values], pa.string()).take(indices)

    return sharing(pa.string(), (pa.string(),), Shared("json", _parse, second))


def _parse(array: pa.Array) -> tuple[pa.Array, list[Any]]:
    encoded = array.dictionary_encode()
    return encoded.indices, [parsed(text) for text in encoded.dictionary.to_pylist()]


RULES: dict[str, Rule] = {"get_json_object": _get}
