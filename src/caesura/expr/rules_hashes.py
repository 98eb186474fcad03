"""Hashes of texts and bytes, as Spark has them; each distinct value is hashed once, by Python's library.

>>> from caesura.expr.nodes import col
>>> RULES["md5"](col("a").md5(), [pa.string()]).kernel(pa.array(["", None])).to_pylist()
['d41d8cd98f00b204e9800998ecf8427e', None]
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from caesura.errors import ExprError
from caesura.expr.arrays import by_value
from caesura.expr.nodes import Apply
from caesura.expr.rules import Rule, TypedNode, Types, want
from caesura.expr.types import kind

_SHA2: dict[int, Callable[[bytes], Any]] = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


def _operand(node: Apply, types: Types) -> pa.DataType:
    want(node, types, ("string", "binary"), "text or bytes", remedy="Cast it: .cast('string').")
    return pa.binary() if kind(types[0]) == "binary" else pa.string()


def _hashed(node: Apply, types: Types, one: Callable[[bytes], Any], made: pa.DataType) -> TypedNode:
    operand = _operand(node, types)
    return TypedNode(made, (operand,), lambda a: by_value(a.cast(pa.binary()), one, made))


def _md5(node: Apply, types: Types) -> TypedNode:
    return _hashed(node, types, lambda v: hashlib.md5(v, usedforsecurity=False).hexdigest(), pa.string())


def _sha1(node: Apply, types: Types) -> TypedNode:
    return _hashed(node, types, lambda v: hashlib.sha1(v, usedforsecurity=False).hexdigest(), pa.string())


def _sha2(node: Apply, types: Types) -> TypedNode:
    (bits,) = node.options
    if bits not in _SHA2:
        raise ExprError(
            f"in '{node}': there is no SHA-2 of {bits} bits.", remedy="Give 224, 256, 384 or 512."
        )
    hashing = _SHA2[bits]
    return _hashed(node, types, lambda v: hashing(v).hexdigest(), pa.string())


def _crc32(node: Apply, types: Types) -> TypedNode:
    return _hashed(node, types, zlib.crc32, pa.int64())


RULES: dict[str, Rule] = {"md5": _md5, "sha1": _sha1, "sha2": _sha2, "crc32": _crc32}
