"""Expressions over lists, maps and structs, and drawn rows to try them on."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from caesura.expr import Expr, col, lit, when
from caesura.expr import functions as f

SCHEMA = pa.schema(
    [
        ("a", pa.list_(pa.int64())),
        ("d", pa.list_(pa.float64())),
        ("t", pa.list_(pa.string())),
        ("n", pa.list_(pa.list_(pa.int64()))),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("st", pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int64()))])),
        ("ss", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())]))),
        ("i", pa.int32()),
        ("s", pa.string()),
    ]
)


def rows(count: int, seed: int) -> pa.RecordBatch:
    """Random rows: empty lists, nulls in and of lists, NaN, -0.0, values that come twice."""
    rng = random.Random(seed)

    def some(values: list[Any], most: int = 4) -> Any:
        return None if rng.random() < 0.12 else [rng.choice(values) for _ in range(rng.randint(0, most))]

    def row() -> dict[str, Any]:
        numbers, texts = [0, 1, 2, -3, 7, None], ["", "a", "b", "a b", "é", None]
        keys = rng.sample(["a", "b", "", "é"], rng.randint(0, 3))
        struct = {"x": rng.choice(numbers), "l": some(numbers, 2)}
        pairs = [{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 2, "y": None}, None]
        return {
            "a": some(numbers),
            "d": some([0.0, -0.0, 1.5, float("nan"), float("inf"), None]),
            "t": some(texts),
            "n": some([[1], [2, None], [], [1, 2], None], 3),
            "m": None if rng.random() < 0.1 else sorted((k, rng.choice(numbers)) for k in keys),
            "st": None if rng.random() < 0.1 else struct,
            "ss": some(pairs, 3),
            "i": rng.choice([0, 1, 2, -1, -5, 3, None]),
            "s": rng.choice(texts),
        }

    return pa.RecordBatch.from_pylist([row() for _ in range(count)], SCHEMA)


EXPRESSIONS: list[Expr] = [
    f.size("a"),
    f.size("m"),
    f.size("n"),
    f.get("a", "i"),
    f.get("t", 0),
    f.get("a", lit(-1)),
    col("a")[0],
    col("a")[col("i")],
    f.element_at("a", 1),
    f.element_at("a", -2),
    f.element_at("a", col("i")),
    f.try_element_at("t", 2),
    f.try_element_at("d", -1),
    col("m")["a"],
    col("m")[col("s")],
    f.element_at("m", "b"),
    f.map_contains_key("m", "a"),
    col("st")["x"],
    col("st")["l"],
    col("st").field("l")[0],
    col("ss")["y"],
    f.array_contains("a", 1),
    f.array_contains("d", 0.0),
    f.array_contains("d", float("nan")),
    f.array_contains("t", col("s")),
    f.array_position("a", 2),
    f.array("i", lit(5), col("i") + 1),
    f.array("s"),
    f.struct("i", col("s").alias("text"), "a"),
    f.create_map(lit("k"), "i", lit("j"), lit(2)),
    f.create_map("s", "i"),
    f.map_keys("m"),
    f.map_values("m"),
    f.map_entries("m"),
    f.array_sort("a"),
    f.array_sort("d"),
    f.array_sort("t"),
    f.array_sort("n"),
    f.array_sort("ss"),
    f.sort_array("a"),
    f.sort_array("a", asc=False),
    f.array_distinct("a"),
    f.array_distinct("d"),
    f.array_distinct("n"),
    f.array_distinct("ss"),
    f.array_min("a"),
    f.array_max("d"),
    f.array_max("t"),
    f.flatten("n"),
    f.slice("a", 2, 2),
    f.slice("a", -2, 1),
    f.slice("t", "i", 1),
    f.array_join("t", "-"),
    f.array_join("t", "", "?"),
    f.transform("a", lambda x: x * 2 + col("i")),
    f.transform("a", lambda x, at: x + at),
    f.transform("t", lambda x: x.upper()),
    f.transform("n", lambda x: f.size(x)),
    f.transform("n", lambda x: f.transform(x, lambda y: y + f.size(x))),
    f.filter("a", lambda x: x > 0),
    f.filter("a", lambda x, at: at != col("i")),
    f.filter("ss", lambda x: x["x"].is_not_null()),
    f.exists("a", lambda x: x > 1),
    f.exists("t", lambda x: x.is_null()),
    f.forall("a", lambda x: x >= 0),
    f.aggregate("a", lit(0).cast("bigint"), lambda acc, x: acc + x),
    f.aggregate("a", lit(0).cast("bigint"), lambda acc, x: acc + f.coalesce(x, lit(1)), lambda acc: acc * 10),
    f.aggregate("t", lit(""), lambda acc, x: f.concat(acc, f.coalesce(x, lit("_")))),
    f.aggregate("d", lit(0.0), lambda acc, x: f.greatest(acc, x)),
    col("a") == f.array(lit(1), lit(2)),
    col("a") < col("st")["l"],
    col("d") == col("d"),
    col("st").is_null(),
    f.coalesce("a", col("st")["l"]),
    when(col("i") > 0, col("a")).otherwise(col("st")["l"]),
    col("a").cast("array<string>"),
    col("st").cast("struct<x:double,l:array<string>>"),
]
