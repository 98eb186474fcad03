"""Queries in the law suite: what they do to a history, by sorting it and denoting every prefix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from caesura import qre
from caesura.expr import col
from caesura.ops.where import Where
from caesura.punctuation import INFINITY, Pattern
from caesura.qre.language.query import Query
from caesura.qre.reference.oracle import UNDEFINED, denote
from caesura.testing.case import LawCase
from caesura.testing.oracles.rows import Row, Rows
from caesura.testing.spec import InputSpec

CASES: list[LawCase] = []
SPEC = InputSpec({"id": "key", "n": "int"}, max_rows=7)
KEYED = InputSpec({"id": "key", "n": "int"}, key="id", max_rows=7)
ITEMS = qre.items(SPEC.schema)
TICKED = qre.items(SPEC.schema, ticks=True)


def ordered(rows: Rows, by: Sequence[str] = ()) -> Rows:
    """A history's rows as the word that a query reads: by LE, the named columns, the payload; nulls last."""

    def rank(value: Any) -> tuple[int, Any]:
        if value is None:
            return (2, 0)
        return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)

    def place(row: Row) -> tuple[Any, ...]:
        names = [*by, *(n for n in row[2] if n not in by)]
        return (row[0], *(rank(row[2][n]) for n in names))

    return sorted(rows, key=place)


def word_of(rows: Rows, query: Query) -> pa.RecordBatch:
    assert query.items is not None
    names = query.items.schema.names
    return pa.RecordBatch.from_pylist([{n: r[2].get(n) for n in names} for r in rows], query.items.schema)


def woven(rows: Rows, every: int, patterns: Sequence[Pattern]) -> Rows:
    """The rows with ticks between them, as far as progress is known to have come."""
    if not rows:
        return []
    bounds = [p.time_bound for p in patterns if not p.without_time().attributes]
    told = [b for b in bounds if b is not None and b != INFINITY]
    first, last = rows[0][0] // every + 1, rows[-1][0] // every + 1
    until = max([last * every, *told])
    ticks = [(t * every, t * every + 1, {"tick": True}) for t in range(first, until // every + 1)]
    events = [(le, re, {**p, "tick": False}) for le, re, p in rows]
    return sorted([*ticks, *events], key=lambda r: (r[0], not r[2]["tick"]))


def answers(rows: Rows, query: Query, shape: Callable[[Any, Row], list[dict[str, Any]]]) -> Rows:
    values = denote(query, word_of(rows, query))
    found = [(row, v) for row, v in zip(rows, values, strict=True) if v is not UNDEFINED]
    return [(row[0], row[0] + 1, payload) for row, v in found for payload in shape(v, row)]


def slowest(ctis: tuple[int, ...]) -> int:
    return min(ctis)


def plain(value: Any, row: Row) -> list[dict[str, Any]]:
    return [{"value": value}]


RUNS = qre.split(
    qre.match(qre.star(qre.any_of(col("n") > 0, ~(col("n") > 0).coalesce(False))), items=ITEMS),
    qre.atom(col("n") > 0, col("n"), items=ITEMS),
    op=col("_1"),
)
SUMS = qre.iter1(qre.atom(op=col("n"), items=ITEMS), qre.sum())
PAIRS = qre.iter_last(
    qre.split(
        a=qre.atom(op=col("n"), items=ITEMS), b=qre.atom(op=col("n"), items=ITEMS), op=col("a") - col("b")
    )
)
PER_KEY = qre.partition(
    qre.split(
        qre.atom(op=col("n"), items=ITEMS), qre.atom(op=col("n"), items=ITEMS), op=col("_0") + col("_1")
    ),
    by={"who": "id"},
    only=col("id").is_not_null(),
)
PER_TICK = qre.iter_last(
    qre.apply(
        qre.map_collect(
            qre.TICK,
            col("id").coalesce(-1).alias("who"),
            qre.split(
                qre.iter1(qre.atom(~qre.TICK, col("n"), items=TICKED), qre.sum()),
                qre.match(qre.TICK, items=TICKED),
                op=col("_0"),
            ),
            every=qre.letter(qre.TICK),
        ),
        qre.rel().count(),
    )
)


def entries(value: Any, row: Row) -> list[dict[str, Any]]:
    return [{"id": key, "value": v} for key, v in value.items()]


MAP_PER_TICK = qre.iter_last(
    qre.map_collect(
        qre.TICK,
        "id",
        qre.split(
            qre.iter1(qre.atom(~qre.TICK, col("n"), items=TICKED), qre.sum()),
            qre.match(qre.TICK, items=TICKED),
            op=col("_0"),
        ),
        every=qre.letter(qre.TICK),
    )
)


def case(
    name: str, query: Query, oracle: Callable[..., Rows], spec: InputSpec = SPEC, **options: Any
) -> None:
    """Punctuation on a key frees nothing: the order of the word runs across keys."""
    CASES.append(
        LawCase(
            f"qre {name}",
            build=lambda a: qre.over(a, query, **options),
            oracle=oracle,
            inputs=(spec,),
            liveness=slowest,
            state_bound=None if spec.key else lambda live: (2 if "ticks_every" in options else 1) * live[0],
            linger=options.get("ticks_every", 0),
        )
    )


case("filter", RUNS, lambda a, **_: answers(ordered(a), RUNS, plain))
case("running sum", SUMS, lambda a, **_: answers(ordered(a), SUMS, plain))
case("pairs, ties by n", PAIRS, lambda a, **_: answers(ordered(a, ["n"]), PAIRS, plain), order_by="n")
case("pairs on the twin", PAIRS, lambda a, **_: answers(ordered(a), PAIRS, plain), kernel="twin")
case("pairs, generated", PAIRS, lambda a, **_: answers(ordered(a), PAIRS, plain), kernel="generated")
case(
    "partition",
    PER_KEY,
    lambda a, **_: answers(ordered(a), PER_KEY, lambda v, row: [{"who": row[2]["id"], "value": v}]),
    KEYED,
)
case(
    "map per tick",
    PER_TICK,
    lambda a, patterns, **_: answers(woven(ordered(a), 5, patterns[0]), PER_TICK, plain),
    ticks_every=5,
)
CASES.append(
    LawCase(
        "qre map per tick, by key",
        build=lambda a: qre.over(
            Where(inputs=(a,), predicate=col("id").is_not_null()), MAP_PER_TICK, ticks_every=5
        ),
        oracle=lambda a, patterns, **_: answers(
            woven(ordered([r for r in a if r[2]["id"] is not None]), 5, patterns[0]), MAP_PER_TICK, entries
        ),
        inputs=(SPEC,),
        liveness=slowest,
        state_bound=lambda live: 2 * live[0],
        linger=5,
    )
)

CHANGES = qre.map_collect(
    qre.TICK,
    col("n").coalesce(0).alias("of"),
    qre.split(
        qre.match(qre.plus(~qre.TICK), items=TICKED), qre.atom(qre.TICK, 1, items=TICKED), op=col("_1")
    ),
    every=qre.letter(qre.TICK),
)
MAPS_IN_MAPS = qre.iter_last(
    qre.map_collect(
        qre.TICK,
        {"id": col("id").coalesce(-1)},
        qre.split(qre.match(~qre.TICK, items=TICKED), qre.apply(CHANGES, qre.rel().count()), op=col("_1")),
        every=qre.letter(qre.TICK),
    )
)
"""Per tick and key how many different n came, but for the key's first item."""
case(
    "maps in maps",
    MAPS_IN_MAPS,
    lambda a, patterns, **_: answers(woven(ordered(a), 5, patterns[0]), MAPS_IN_MAPS, entries),
    ticks_every=5,
)
HIGH = (col("n") > 1).coalesce(False)
OF_KEY = qre.map_collect(
    HIGH,
    col("n").coalesce(0).alias("of"),
    qre.split(qre.match(qre.plus(~HIGH), items=ITEMS), qre.atom(HIGH, 1, items=ITEMS), op=col("_1")),
    every=qre.letter(HIGH),
)
MAPS_OF_KEYS = qre.partition(
    qre.apply(OF_KEY, qre.rel().count()), by={"who": "id"}, only=col("id").is_not_null()
)
case(
    "maps in a partition",
    MAPS_OF_KEYS,
    lambda a, **_: answers(ordered(a), MAPS_OF_KEYS, lambda v, row: [{"who": row[2]["id"], "value": v}]),
    KEYED,
)
