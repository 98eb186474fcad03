"""JSON objects in the place of maps, rewritten as the lists of entries that Arrow reads as such.

All other bytes stay as they are: numbers keep their digits, and what is no JSON stays none.

>>> paths = map_paths(pa.schema([("id", pa.int64()), ("m", pa.map_(pa.string(), pa.int64()))]))
>>> as_entries(b'{"id": 7, "m": {"a": 1, "b": 2}}', paths)
b'{"id": 7, "m": [{"key":"a","value": 1}, {"key":"b","value": 2}]}'
>>> as_entries(b'{"m": "a"}', paths)
Traceback (most recent call last):
ValueError: column 'm' is a map, and there stands "a" in place of an object such as {"key": 1}
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from caesura.events.nested import holds_map, is_any_list
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8, Mask

OTHER, STRUCT, LIST, MAP = 0, 1, 2, 3
"""Kinds of nodes: what holds no map anywhere, and what does."""
TOP, OBJECT, ARRAY, ENTRIES = 0, 1, 2, 3
"""What brackets enclose; ENTRIES are those of an object that becomes a list."""
WANTS_KEY, HAS_KEY, IN_VALUE = 0, 1, 2
WITHIN, STATE, NODE, NEXT = 0, 1, 2, 3
"""Of each open bracket: what it encloses, what is expected, its own node, and that of the next value."""
NO_OBJECT, BROKEN, TOO_DEEP = -1, -2, -3
"""Why a text is refused: a map that is no object, no JSON, or more brackets than are followed."""
DEPTH = 1024
ADDED = 17
"""How many bytes an entry grows by at most."""
SHOWN = 40
KEY, VALUE = (np.frombuffer(text, np.uint8) for text in (b'{"key":', b',"value":'))
QUOTE, ESCAPE, COLON, COMMA = b'"\\:,'
BEGIN, END, BEGIN_LIST, END_LIST, NULL = b"{}[]n"
PLAIN, BLANK, MARK = 0, 1, 2
LETTERS = np.full(256, PLAIN, np.uint8)
"""What each byte is outside texts: part of a number or word, nothing, or a mark."""
LETTERS[list(b" \t\r\n")], LETTERS[list(b'{}[]:,"')] = BLANK, MARK
BARES = np.isin(np.arange(256), list(b"+-.0123456789eE"))
"""The letters of numbers."""


KIND, FIRST, LAST, CHILD, ENTRY, BARE = range(6)
"""Of each node: what it is; its fields that hold maps, from the first to before the last; the node of
elements or of a map's values, that of an entry written out; and whether keys are numbers.
"""


@dataclass(frozen=True)
class MapPaths:
    """Where maps are in records of some columns: a tree of the types that hold them.

    Node 0 stands for all other types, the last one for a record.
    """

    nodes: I64
    fields: I64
    """Of each field: its node, and where its name lies among the letters."""
    letters: U8
    labels: tuple[str, ...]
    """What messages call each node."""


def map_paths(schema: pa.Schema) -> MapPaths | None:
    """Where maps are in records of these columns; None where there are none."""
    if not any(holds_map(field.type) for field in schema):
        return None
    made = _Nodes()
    made.add(pa.struct(list(schema)), "")
    return made.done()


class _Nodes:
    """Nodes as they are found, those inside others first."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = [(OTHER, 0, 0, 0, 0, 0)]
        self._labels = [""]
        self._names: list[tuple[bytes, int]] = []

    def add(self, t: pa.DataType, label: str) -> int:
        """The node of a type."""
        if not holds_map(t):
            return 0
        if pa.types.is_struct(t):
            return self._struct(
                [(f.name, self.add(f.type, f"{label}.{f.name}".strip("."))) for f in t], label
            )
        if is_any_list(t):
            return self._put((LIST, 0, 0, self.add(t.value_type, label), 0, 0), label)
        value = self.add(t.item_type, label)
        entry = self._struct([("value", value)], label)
        bare = pa.types.is_integer(t.key_type) or pa.types.is_floating(t.key_type)
        return self._put((MAP, 0, 0, value, entry, int(bare)), label)

    def _struct(self, fields: list[tuple[str, int]], label: str) -> int:
        begin = len(self._names)
        for name, node in fields:
            for spelled in {json.dumps(name), json.dumps(name, ensure_ascii=False)} if node else ():
                self._names.append((spelled[1:-1].encode(), node))
        return self._put((STRUCT, begin, len(self._names), 0, 0, 0), label)

    def _put(self, row: tuple[int, ...], label: str) -> int:
        self._rows.append(row)
        self._labels.append(label)
        return len(self._rows) - 1

    def done(self) -> MapPaths:
        names = [name for name, _ in self._names]
        ends = np.cumsum([0, *map(len, names)])
        fields = np.column_stack([[node for _, node in self._names], ends[:-1], ends[1:]]).astype(np.int64)
        letters = np.frombuffer(b"".join(names), np.uint8)
        return MapPaths(np.array(self._rows, np.int64), fields, letters, tuple(self._labels))


@kernel
def text_end(text: U8, at: int) -> int:
    """Where the text ends that begins with a quote; behind all bytes where it does not."""
    i = at + 1
    while i < len(text) and text[i] != QUOTE:
        i += 2 if text[i] == ESCAPE else 1
    return i + 1


@kernel
def named_node(text: U8, begin: int, end: int, fields: I64, letters: U8, first: int, last: int) -> int:
    """The node of the one of some fields that has the name that stands there."""
    for k in range(first, last):
        start = fields[k, 1]
        if fields[k, 2] - start != end - begin:
            continue
        same = True
        for j in range(end - begin):
            if text[begin + j] != letters[start + j]:
                same = False
                break
        if same:
            return int(fields[k, 0])
    return 0


@kernel
def copy_bytes(text: U8, begin: int, end: int, out: U8, size: int) -> int:
    """Writes some bytes, and gives how many there are then."""
    for i in range(begin, end):
        out[size + i - begin] = text[i]
    return size + end - begin


@kernel
def write_key(text: U8, begin: int, end: int, bare: int, allowed: Mask, out: U8, size: int) -> int:
    """Begins an entry with the key that stands there in quotes; without them where it is no text."""
    size = copy_bytes(KEY, 0, len(KEY), out, size)
    plain = bare != 0 and end - begin > 2
    for i in range(begin + 1, end - 1):
        plain = plain and allowed[text[i]]
    cut = 1 if plain else 0
    return copy_bytes(text, begin + cut, end - cut, out, size)


@kernel
def is_broken(frame: I64, c: int) -> bool:
    """Whether no object goes on so where its entries are written; what is copied is left to Arrow."""
    if frame[WITHIN] != ENTRIES:
        return False
    if frame[STATE] == IN_VALUE:
        return c in (COLON, END_LIST)
    return c != (COLON if frame[STATE] == HAS_KEY else END)


@kernel
def open_frame(c: int, node: int, nodes: I64, frame: I64) -> int:
    """Begins an object or a list that is read as this node; gives the bracket to write."""
    kind = nodes[node, KIND]
    if c == BEGIN:
        frame[WITHIN] = ENTRIES if kind == MAP else OBJECT
        frame[STATE] = WANTS_KEY
        frame[NODE] = node if kind in (MAP, STRUCT) else 0
        frame[NEXT] = nodes[node, CHILD] if kind == MAP else 0
        return BEGIN_LIST if kind == MAP else BEGIN
    frame[WITHIN] = ARRAY
    frame[STATE] = IN_VALUE
    frame[NODE] = 0
    frame[NEXT] = nodes[node, ENTRY if kind == MAP else CHILD]
    return BEGIN_LIST


@kernel
def close_frame(c: int, frame: I64, out: U8, size: int) -> int:
    """Ends an object or a list, and the last entry of a map."""
    if frame[WITHIN] != ENTRIES:
        out[size] = c
        return size + 1
    if frame[STATE] == IN_VALUE:
        out[size] = END
        size += 1
    out[size] = END_LIST
    return size + 1


@kernel
def write_mark(c: int, frame: I64, out: U8, size: int) -> int:
    """Writes a colon or a comma, as entries have them."""
    mapped = frame[WITHIN] == ENTRIES
    if c == COLON:
        if frame[STATE] == HAS_KEY:
            frame[STATE] = IN_VALUE
            if mapped:
                return copy_bytes(VALUE, 0, len(VALUE), out, size)
    else:
        if mapped:
            out[size] = END
            size += 1
        if frame[WITHIN] == OBJECT or mapped:
            frame[STATE] = WANTS_KEY
    out[size] = c
    return size + 1


@kernel
def write_entries(
    text: U8, nodes: I64, fields: I64, names: U8, letters: U8, bare: Mask, out: U8
) -> tuple[int, int, int]:
    """Rewrites records; gives the size, or why not, and then the node and the place of what is wrong."""
    frames = np.zeros((DEPTH, 4), np.int64)
    frames[0, STATE] = IN_VALUE
    frames[0, NEXT] = len(nodes) - 1
    depth = size = i = 0
    fresh = True  # the value that comes next has not begun
    while i < len(text):
        c, begin = text[i], i
        i += 1
        if letters[c] == BLANK:
            out[size] = c
            size += 1
            continue
        frame = frames[depth]
        if c == QUOTE:
            i = text_end(text, begin)
            if i > len(text):
                return BROKEN, 0, begin
            if frame[STATE] == WANTS_KEY:
                frame[STATE] = HAS_KEY
                own = frame[NODE]
                if frame[WITHIN] == ENTRIES:
                    size = write_key(text, begin, i, nodes[own, BARE], bare, out, size)
                    continue
                first, last = nodes[own, FIRST], nodes[own, LAST]
                frame[NEXT] = named_node(text, begin + 1, i - 1, fields, names, first, last)
                size = copy_bytes(text, begin, i, out, size)
                continue
        if is_broken(frame, c):
            return BROKEN, frame[NODE], begin
        node = frame[NEXT] if fresh or depth == 0 else 0
        if c in (COLON, COMMA):
            size = write_mark(c, frame, out, size)
            fresh = c == COLON or frame[WITHIN] == ARRAY
        elif c in (BEGIN, BEGIN_LIST):
            depth += 1
            if depth == DEPTH:
                return TOO_DEEP, 0, begin
            out[size] = open_frame(c, node, nodes, frames[depth])
            size += 1
            fresh = c == BEGIN_LIST
        elif c in (END, END_LIST):
            size = close_frame(c, frame, out, size)
            depth = max(0, depth - 1)
            fresh = False
        else:
            if nodes[node, KIND] == MAP and c != NULL:
                return NO_OBJECT, node, begin
            while c != QUOTE and i < len(text) and letters[text[i]] == PLAIN:
                i += 1
            size = copy_bytes(text, begin, i, out, size)
            fresh = False
    return size, 0, 0


def as_entries(records: bytes, paths: MapPaths) -> bytes:
    """Records with lists of entries in the place of objects that are maps."""
    text = np.frombuffer(records, np.uint8)
    out = np.empty(len(records) + ADDED * (records.count(b":") + 1), np.uint8)
    size, node, place = write_entries(text, paths.nodes, paths.fields, paths.letters, LETTERS, BARES, out)
    if size >= 0:
        return out[:size].tobytes()
    if size == TOO_DEEP:
        raise ValueError(f"nests more than {DEPTH} objects and lists")
    if size == BROKEN:
        raise ValueError(f"is no JSON: {_beginning(records, place)}")
    raise ValueError(
        f"column '{paths.labels[node]}' is a map, and there stands {_beginning(records, place)} in place of "
        'an object such as {"key": 1}'
    )


def _beginning(records: bytes, place: int) -> str:
    """The first letters of what stands there, as far as a value goes."""
    some = records[place : place + SHOWN].decode(errors="replace")
    try:
        return some[: json.JSONDecoder().raw_decode(some)[1]]
    except ValueError:
        return some.splitlines()[0]
