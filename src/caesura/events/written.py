"""Structs, lists and maps as they are drawn: JSON in one word, read back by its type.

>>> written([1, None]), written({"a": 0.5, "b": "x y"}), written([("k", 1)]), written([(2, "b")])
('[1,null]', '{"a":0.5,"b":"x y"}', '{"k":1}', '[[2,"b"]]')
>>> read_nested('[[2,"b"]]', pa.map_(pa.int64(), pa.string()))
[(2, 'b')]
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from caesura.errors import DataError
from caesura.events.nested import is_any_list

_WORD = re.compile(r"'[^']*'|[\[{]|\S+")
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def written(value: object) -> str:
    """A struct, list or map as it is drawn."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    if value and isinstance(value[0], tuple):
        if all(isinstance(name, str) for name, _ in value):
            return {name: _plain(each) for name, each in value}
        return [[_plain(name), _plain(each)] for name, each in value]
    return [_plain(each) for each in value]


def words(text: str) -> list[str]:
    """The drawn values of a line: words, quoted texts, and what stands in brackets."""
    found: list[str] = []
    at = 0
    while (match := _WORD.search(text, at)) is not None:
        at = match.end() if match[0] not in ("[", "{") else _closed(text, match.start())
        found.append(text[match.start() : at])
    return found


def _closed(text: str, start: int) -> int:
    """Where the bracket that opens here is closed; the end of the word if it is not."""
    depth = 0
    for piece in _PIECE.finditer(text, start):
        if piece[0] in "[{":
            depth += 1
        elif piece[0] in "]}":
            depth -= 1
            if depth == 0:
                return piece.end()
    return start + len(text[start:].split()[0])


def read_nested(text: str, t: pa.DataType) -> Any:
    """The value of a nested type that is drawn so, as Arrow takes it."""
    try:
        return _read(json.loads(text, parse_float=str), t)
    except (ValueError, AttributeError, TypeError, KeyError) as error:
        raise DataError(
            f"'{text}' is drawn in a column of {t}.",
            remedy='Write a list as [1,2], a struct as {"a":1}, a map as {"k":1} or [[1,"v"]], or null.',
        ) from error


def _read(value: Any, t: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(t):
        return {field.name: _read(value.get(field.name), field.type) for field in t}
    if pa.types.is_map(t):
        pairs = value.items() if isinstance(value, dict) else value
        return [(_read(k, t.key_type), _read(v, t.item_type)) for k, v in pairs]
    if is_any_list(t):
        if not isinstance(value, list):
            raise ValueError
        return [_read(each, t.value_type) for each in value]
    if pa.types.is_floating(t):
        return float(value)
    if pa.types.is_decimal(t):
        return Decimal(str(value))
    if isinstance(value, str) and not (pa.types.is_string(t) or pa.types.is_binary(t)):
        return pa.scalar(value).cast(t).as_py()
    return value
