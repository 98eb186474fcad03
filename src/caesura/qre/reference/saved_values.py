"""The Python values that a query may hold, as saved state: those of its types, sketches, and users' own.

A user's fold may hold plain data of any kind; an object of a class of the user's own can be saved if it is
a dataclass or a named tuple and the fold begins with one, so that a reader knows the class.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from caesura.events.plain import Codec, classes_of, collector_paused
from caesura.expr import type_of
from caesura.qre.checking.inference import value_type
from caesura.qre.language.folds import Fold
from caesura.qre.language.operations import Operation
from caesura.qre.language.query import Iter, Partition, Query, SlidingWindow, Value, walk
from caesura.qre.language.sketches import EventCount, Histogram
from caesura.qre.language.types import BOOL, FLOAT, INT, TEXT, Approx, Record, ValueType, of_arrow
from caesura.qre.language.whole_numbers import Void

REMEDY = (
    "Hold numbers, texts, times, lists, tuples, dicts, sets or arrays; or a dataclass of them, and let the "
    "fold begin with one: qre.custom(Stats(0, 0.0), step)."
)
DEEPEST = 100
"""Windows hold their values in pairs of pairs; deeper ones than this JSON does not nest."""


def codec_for(query: Query) -> Codec:
    """Writes and reads the values that a query holds."""
    begun = [op.closure({})({}) for node in walk(query) for op in _constants(node)]
    return Codec({Histogram, EventCount, Void, *classes_of(*begun)}, remedy=REMEDY)


def write_states(query: Query, states: dict[Any, Any]) -> bytes:
    """The states of a query by key; as they are, where JSON has all that may be in them."""
    if is_json(query):
        try:
            return json.dumps([[*states.keys()], [*states.values()]]).encode()
        except TypeError:
            pass  # a value that there is not
    return codec_for(query).write(states)


def read_states(query: Query, saved: bytes) -> dict[Any, Any]:
    """What `write_states` took."""
    if not saved.startswith(b"["):
        states: dict[Any, Any] = codec_for(query).read(saved)
        return states
    with collector_paused():
        keys, held = json.loads(saved)
        return dict(zip(_as_tuples(keys), _as_tuples(held), strict=True))


def _as_tuples(values: list[Any]) -> tuple[Any, ...]:
    """JSON's arrays were tuples."""
    return tuple([_as_tuples(v) if type(v) is list else v for v in values])


def is_json(query: Query) -> bool:
    """Whether a query holds nothing but tuples and records of what JSON has."""
    for node in walk(query):
        if not _json(value_type(node)) or not all(op.compiles for op in _operations(node)):
            return False
        if isinstance(node, SlidingWindow) and node.size > DEEPEST:
            return False
        if isinstance(node, Partition):
            assert node.items is not None
            keys = [type_of(e, node.items.schema, time=node.items.time) for _, e in node.by]
            if not all(_json(of_arrow(t)) for t in keys):
                return False
    return True


def _json(t: ValueType) -> bool:
    if isinstance(t, Record):
        return all(_json(inner) for _, inner in t.fields)
    return isinstance(t, Approx) or t in (INT, FLOAT, BOOL, TEXT)


def _operations(node: Query) -> Iterator[Operation]:
    for part in vars(node).values():
        some = vars(part).values() if isinstance(part, Fold) else [part]
        yield from (op for op in some if isinstance(op, Operation))


def _constants(node: Query) -> list[Operation]:
    """What a part of a query begins with."""
    match node:
        case Iter(init=init):
            return [init]
        case SlidingWindow(fold=fold):
            return [fold.init]
        case Value(op=op):
            return [op]
    return []
