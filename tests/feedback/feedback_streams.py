"""Small plans that are fed by hand, and what their steps counted."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from caesura import Stream
from caesura.events import History, parse
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.runtime import Query

INSERTS = Properties(insert_only=True, points=True, aligned=True, max_duration=1)
ANY = Properties()


def stream(label: str = "a", known: Properties = INSERTS, **columns: str) -> Stream:
    """An input of named columns, given as type names."""
    types = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}
    schema = pa.schema([(name, types[t]) for name, t in columns.items()])
    return Stream(Input(label=label, payload=schema, known=known))


def feed(query: Query, text: str, label: str = "a") -> None:
    """Feeds a drawn stream and lets it through."""
    schema = query.parts.inputs[label].target.node.schema  # type: ignore[union-attr]
    for item in parse(text, schema):
        query.feed(label, item)
    query.run()


def rows(query: Query, node: Stream, output: str = "out") -> list[tuple[object, ...]]:
    """What the output came to since it was last taken: (LE, RE, *payload)."""
    return [(le, re, *p) for le, re, p in History.of(query.take(output), node.schema).rows()]


def counted(query: Query) -> Mapping[str, Mapping[str, int]]:
    """Per step, what feedback did."""
    return {step: c.feedback for step, c in query.counters().items()}
