"""Random small queries and words, for holding evaluators against each other."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from caesura.errors import CaesuraError
from caesura.expr import Expr, col, lit, when
from caesura.qre.checking.checking import letters_of
from caesura.qre.checking.positions import bits, positions
from caesura.qre.language import build as q
from caesura.qre.language import derived, folds
from caesura.qre.language.items import Items, items, tagged
from caesura.qre.language.query import Query
from caesura.qre.language.regex import letter, seq, star
from caesura.qre.language.relations import rel

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("key", pa.int64()),
        ("v", pa.int64()),
        ("f", pa.float64()),
        ("w", pa.int64()),
        ("x", pa.string()),
    ]
)
ITEMS = items(SCHEMA)
EVERY = tuple(SCHEMA.names)
CASES = tagged(SCHEMA, "k", {"own": (0, EVERY), "less": (1, ("key", "f", "w", "x")), "end": (2, ("w", "x"))})
"""Of which words may hold items that no case declares."""
PREDICATES = [
    col("k") == 0,
    col("k") == 1,
    col("k") == 2,
    col("k") != 2,
    col("k") < 2,
    col("v") > 2,
    (col("k") == 0) & (col("v") > 2),
    (col("k") == 0) & (col("v") <= 2),
    lit(True),
]
ODD = [float("nan"), float("inf"), float("-inf"), -0.0]
VALUES: list[Any] = [col("v"), col("f"), col("v") * 2 + col("k"), col("f") / col("v")]
NUMBERS = [0, 1, 2, 3, 4, 5]
EXTREMES: list[int] = []
"""What else numbers may be in words that walk through a query, where no predicate tells them apart."""
JOINS: list[Expr] = [
    col("_0") + col("_1"),
    col("_1"),
    col("_0").coalesce(0) * 2,
    col("_0") - col("_1"),
    col("_0").greatest(col("_1")),
]
FOLDS = [folds.sum_, folds.count, folds.min_, folds.max_, folds.avg, folds.stddev]
STEPS: list[Expr] = [col("acc") * 2 - col("x")]

LARGEST, LEAST = 2**63 - 1, -(2**63)
EXTREME = [LARGEST, LARGEST - 1, LEAST, LEAST + 1, 2**62, -(2**62), 2**32, -(2**31), 3, 1, 0, -1]
EXTREME_PREDICATES: list[Expr] = [
    *PREDICATES,
    *PREDICATES,
    (col("k") == 0) & (col("v") * 2 > 4),
    (col("k") == 1) & (col("v") + 1 > 0),
]
EXTREME_VALUES: list[Any] = [
    col("v"),
    col("v") * 2 + col("k"),
    col("v") * col("v"),
    col("v") - 2**62,
    -col("v"),
    col("v").abs(),
    col("v").coalesce(LARGEST) + col("key"),
    when(col("v") > 0, col("v") - 1).otherwise(col("v") + 1),
    when(col("v") > 4, 2 * col("v")).otherwise(col("f")),
    col("v").try_add(LARGEST),
    (col("v") * 4).cast("string").cast("bigint"),
]
EXTREME_JOINS: list[Expr] = [
    *JOINS,
    col("_0") * col("_1"),
    col("_0") - LARGEST - 2,
    -col("_0"),
    col("_1").abs(),
    col("_0") % col("_1"),
    col("_0") / col("_1"),
    col("_0").try_subtract(col("_1")),
    col("_0").try_multiply(col("_1")),
    (col("_0") + col("_1")).between(-5, LARGEST).cast("bigint"),
    when(col("_0") + col("_1") > 0, 1).otherwise(col("_0")),
    when((col("_0") > 0) | (col("_1") * 2 > 0), 1).otherwise(col("_1")),
]
EXTREME_FOLDS = [
    *FOLDS,
    folds.sum_,
    lambda: folds.custom(1, col("acc") * col("x").coalesce(3), combine=col("a") * col("b")),
    lambda: folds.custom(0, col("acc") - col("x").coalesce(3), combine=col("a") + col("b")),
    lambda: folds.custom(0, col("acc").try_add(col("x")).coalesce(7)),
    lambda: folds.custom(
        0, col("acc") + col("x").coalesce(3) * 2, evict=col("acc") - col("x").coalesce(3) * 2
    ),
]
EXTREME_STEPS: list[Expr] = [*STEPS, col("acc") + col("acc") - col("x"), col("acc") - col("x") - 2**62]


def word(
    rng: random.Random, length: int, *, nulls: bool = True, kinds: tuple[int | None, ...] = (0, 0, 1, 1, 2)
) -> pa.RecordBatch:
    """A word of items, with nulls among them unless told otherwise."""
    none = [None] if nulls else []
    rows = [
        {
            "k": rng.choice(kinds),
            "key": rng.randrange(3),
            "v": rng.choice([*NUMBERS, *none]),
            "f": rng.choice([0.5, 1.0, -2.0, 8.0, *ODD, *none]),
            "w": rng.randrange(2),
            "x": rng.choice("ab"),
        }
        for _ in range(length)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def fitting_word(rng: random.Random, query: Query, length: int) -> pa.RecordBatch:
    """A word that walks through the query's own rate, with other values where they do not matter."""
    letters = letters_of(query)
    auto = positions(query.rate, lambda key: letters.mask(letters.exprs[letters.predicates[key]]))
    rows: list[dict[str, Any]] = []
    at = auto.size
    while len(rows) < length and auto.by_letter[at]:
        c = rng.choice(list(auto.by_letter[at]))
        at = rng.choice(list(bits(auto.by_letter[at][c])))
        row = dict(letters.minterms[c].row)
        row["f"] = rng.choice([0.5, 1.0, -2.0, 8.0, None])
        if row.get("v") is not None:
            row["v"] = rng.choice([row["v"], *(n for n in EXTREMES if (n > 2) == (row["v"] > 2))])
        row["key"] = rng.randrange(3)
        row["w"], row["x"] = rng.randrange(2), rng.choice("ab")
        rows.append(row)
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def close(a: Any, b: Any) -> bool:
    """Equal, but for the last digits of doubles."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(b, float) and type(a) is int:  # a choice of the two is typed as a double
        a = float(a)
    if isinstance(a, float) and isinstance(b, (int, float)) and not isinstance(b, bool):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))
    return bool(a == b)


def well_typed(
    rng: random.Random, depth: int, *, windows: bool = True, maps: bool = False, of: Items = ITEMS
) -> Query:
    """A well-typed query with a scalar value."""
    while True:
        try:
            return scalar(rng, depth, of, windows=windows, maps=maps)
        except CaesuraError:
            continue


def scalar(rng: random.Random, depth: int, of: Items, **options: bool) -> Query:
    """A query that may be refused; its value is a number."""
    again = lambda: scalar(rng, depth - 1, of, **options)  # noqa: E731
    kind = rng.choice(["atom"] if depth == 0 else KINDS)
    match kind:
        case "atom":
            return q.atom(rng.choice(PREDICATES), rng.choice(VALUES), items=of)
        case "split":
            return q.split(*(again() for _ in range(rng.choice([2, 2, 3]))), op=_join(rng))
        case "iter":
            return q.iter_(again(), _fold(rng))
        case "iter_op":
            return q.iter_(again(), 1, rng.choice(STEPS))
        case "iter1":
            return q.iter1(again(), _fold(rng))
        case "or":
            return q.or_(again(), again())
        case "combine":
            body = again()
            return q.combine(body, rng.choice([q.apply(body, col("_0") + 1), again()]), op=_join(rng))
        case "apply":
            return q.apply(again(), when(col("_0") > 2, col("_0") - 1).otherwise(0))
        case "last":
            return derived.iter_last(again())
        case "twice":
            return q.iter_n(again(), rng.choice([0, 1, 2]), folds.sum_())
    if options.get("windows") and kind == "wnd":
        return derived.wnd(again(), rng.choice([1, 2, 3]), _fold(rng))
    if options.get("maps") and kind == "maps":
        return _collected(rng, depth, of, options)
    return again()


KINDS = [
    "split",
    "split",
    "iter",
    "iter_op",
    "iter1",
    "or",
    "combine",
    "apply",
    "last",
    "twice",
    "wnd",
    "maps",
]


def _collected(rng: random.Random, depth: int, of: Items, options: dict[str, bool]) -> Query:
    sync = col("k") == 2
    keyed = q.atom(col("k") != 2, rng.choice(VALUES), items=of)
    end = derived.match(sync, items=of)
    body = q.split(q.iter1(keyed, _fold(rng)), end, op=col("_0"))
    if rng.random() < 0.5:
        idle = derived.match(star(seq(star(col("k") != 2), sync)), items=of)
        body = q.split(idle, body, op=col("_1"))
    elif rng.random() < 0.5:
        body = q.split(_before_the_first(rng, sync, of), body, op=_join(rng))
    pick = rng.choice([rel().count(), rel().max(), rel().sum(), rel().filter(col("value") > 1).count()])
    every = rng.choice([None, letter(sync), seq(sync, sync)])
    return q.apply(derived.map_collect(sync, "key", body, every=every), pick)


def _before_the_first(rng: random.Random, sync: Expr, of: Items) -> Query:
    """What is made of synchronisation items alone: keys that have seen nothing else share it."""
    some = q.atom(sync, rng.choice(VALUES), items=of)
    return derived.wnd(some, 2, folds.sum_()) if rng.random() < 0.4 else q.iter_(some, _fold(rng))


def _fold(rng: random.Random) -> folds.Fold:
    return rng.choice(FOLDS)()


def _join(rng: random.Random) -> Expr:
    return rng.choice(JOINS)


def with_maps_inside(rng: random.Random) -> Query:
    """A well-typed query with maps somewhere inside it, other than at its top."""
    while True:
        try:
            return _around(rng, rng.choice([1, 1, 2]))
        except CaesuraError:
            continue


def _around(rng: random.Random, depth: int) -> Query:
    if depth == 0:
        return _collected(rng, 1, ITEMS, {})
    inner = _around(rng, depth - 1)
    own = q.atom(rng.choice(PREDICATES), rng.choice(VALUES), items=ITEMS)
    match rng.choice(
        ["iter", "iter1", "split", "split_after", "twice", "or", "combine", "last", "wnd", "op"]
    ):
        case "wnd":
            return derived.wnd(inner, rng.choice([1, 2, 3]), _fold(rng), first=rng.choice([None, None, own]))
        case "iter":
            return q.iter_(inner, _fold(rng))
        case "iter1":
            return q.iter1(inner, _fold(rng))
        case "split":
            return q.split(inner, own, op=_join(rng))
        case "split_after":
            return q.split(own, inner, op=_join(rng))
        case "twice":
            return q.split(inner, _around(rng, depth - 1), op=_join(rng))
        case "or":
            return q.or_(q.split(own, inner, op=col("_1")), own)
        case "combine":
            return q.combine(inner, rng.choice([q.apply(inner, col("_0") + 1), inner]), op=_join(rng))
        case "last":
            return derived.iter_last(q.split(own, inner, op=_join(rng)))
    return q.iter_(inner, 1, col("acc") * 2 - col("x").coalesce(0))


def maps_in_maps(rng: random.Random) -> Query:
    """A well-typed query with maps inside maps, or inside a partition."""
    while True:
        try:
            inner = derived.partition(_map_within(rng, 1), by="key", again=rng.random() < 0.5)
            return rng.choice([inner, _map_of_maps(rng, rng.choice([1, 1, 2]))])
        except CaesuraError:
            continue


def _map_of_maps(rng: random.Random, depth: int) -> Query:
    made = _map_within(rng, depth)
    every = rng.choice([None, None, letter(col("k") == 2), seq(col("k") == 2, col("k") == 2)])
    maps = derived.map_collect(col("k") == 2, "key", made, every=every)
    shape = rng.choice(["plain", "last", "apply", "iter", "split"])
    if shape == "plain":
        return maps
    if shape == "last":
        return derived.iter_last(maps)
    one = q.apply(maps, rng.choice([rel().count(), rel().max(), rel().sum()]))
    if shape == "iter":
        return q.iter1(one, _fold(rng))
    return (
        one if shape == "apply" else q.split(q.atom(rng.choice(PREDICATES), items=ITEMS), one, op=col("_1"))
    )


def _map_within(rng: random.Random, depth: int) -> Query:
    """What a map, or a partition, may have inside: a number made of maps by another key."""
    sync, end = col("k") == rng.choice([1, 2, 2]), derived.match(col("k") == 2, items=ITEMS)
    keyed = q.iter1(q.atom(~sync, rng.choice(VALUES), items=ITEMS), _fold(rng))
    body = q.split(keyed, derived.match(sync, items=ITEMS), op=col("_0"))
    if rng.random() < 0.4:
        body = q.split(derived.match(star(seq(star(~sync), sync)), items=ITEMS), body, op=col("_1"))
    if depth > 1:
        deeper = _map_within(rng, depth - 1)
        body = q.split(derived.match(~sync, items=ITEMS), deeper, op=col("_1"))
    by = rng.choice(["w", "w", "x"])
    maps = derived.map_collect(
        sync, {"by": col(by)}, body, every=rng.choice([None, letter(sync), seq(sync, sync)])
    )
    one = q.apply(maps, rng.choice([rel().count(), rel().max(), rel().sum(), rel().avg()]))
    first = q.atom(rng.choice([col("k") != 2, col("k") == 0]), rng.choice(VALUES), items=ITEMS)
    shape = rng.choice(["own", "own", "iter", "tail", "idle"])
    if shape == "iter":
        return q.split(first, q.iter1(one, _fold(rng)), op=_join(rng))
    if shape == "tail":
        return q.split(one, derived.match(seq(star(col("k") == 0), col("k") == 2), items=ITEMS), op=col("_0"))
    if shape == "idle":
        idle = derived.match(star(seq(star(col("k") != 2), col("k") == 2)), items=ITEMS)
        return q.split(idle, q.split(first, one, op=_join(rng)), op=col("_1"))
    ended = q.split(first, one, op=_join(rng))
    return ended if rng.random() < 0.7 else q.split(ended, end, op=col("_0"))


def windows_inside(rng: random.Random) -> Query:
    """A well-typed query with a window in a pattern, over pieces that may end in several ways."""
    while True:
        try:
            return _slid_inside(rng)
        except CaesuraError:
            continue


def _slid_inside(rng: random.Random) -> Query:
    a, b = (scalar(rng, rng.choice([0, 0, 1]), ITEMS) for _ in range(2))
    longer = q.split(a, b, op=col("_1"))
    piece = rng.choice([lambda: a, lambda: q.or_(a, b), lambda: q.or_(a, longer), lambda: longer])()
    own = folds.custom(0, col("acc") * 2 - col("x").coalesce(1))
    slid = derived.wnd(piece, rng.choice([2, 3, 4]), rng.choice([_fold(rng), _fold(rng), own]))
    end = q.atom(rng.choice(PREDICATES), items=ITEMS)
    shape = rng.choice(["before", "iter", "after", "twice", "last"])
    if shape in ("after", "last"):
        after = q.split(end, slid, op=col("_1"))
        return after if shape == "after" else derived.iter_last(after)
    ended = q.split(slid, end, op=col("_0"))
    if shape == "iter":
        return q.iter1(ended, _fold(rng))
    return ended if shape == "before" else derived.wnd(ended, 2, _fold(rng))
