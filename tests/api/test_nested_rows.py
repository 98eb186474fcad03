"""Lists, maps and structs where users meet them: their functions, modules, patterns, loops, files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa

import caesura as cz
from caesura import col, qre

SCHEMA = pa.schema(
    [
        ("ts", pa.int64()),
        ("id", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)
ROWS = [
    {"ts": 1, "id": 1, "tags": ["b", "a"], "m": {"x": 1, "y": 2}},
    {"ts": 1, "id": 2, "tags": [], "m": {}},
    {"ts": 2, "id": 3, "tags": None, "m": None},
]


def stream(rows: list[dict[str, Any]] | None = None) -> cz.Stream:
    return cz.from_rows(rows or ROWS, SCHEMA, time="ts")


def test_functions_take_and_give_lists_and_dicts() -> None:
    @cz.udf
    def swapped(m: dict[str, int] | None, tags: list[str] | None) -> dict[int, list[str]]:
        return {number: tags or [] for number in (m or {}).values()}

    got = stream().select(s=swapped(col("m"), col("tags"))).run()
    assert [row for _, _, (row,) in got.history.rows()] == [[], [(1, ["b", "a"]), (2, ["b", "a"])], []]


def test_modules_take_and_give_lists_and_dicts() -> None:
    @cz.uda
    def names(values: list[dict[str, int]]) -> list[str]:
        return sorted(name for m in values if m for name in m)

    @cz.udo
    def longest(values: list[list[str]]) -> list[list[str]]:
        return [max((v for v in values if v is not None), key=len)]

    assert stream().tumbling(5).agg(n=names("m")).run().history.rows() == [(0, 5, (["x", "y"],))]
    assert stream().tumbling(5).apply(longest("tags")).run().history.rows() == [(0, 5, (["b", "a"],))]


def test_a_pattern_reads_rows_of_one_time_in_one_order_whatever_order_they_came_in() -> None:
    rng = random.Random(3)
    some: list[Any] = [["b"], ["a", None], ["a", "z"], ["a"], [], None, [None]]
    rows = [{"ts": 1, "id": n, "tags": tags, "m": None} for n, tags in enumerate(some)]
    word = qre.iter_last(qre.atom(None, col("id")))
    found = set()
    for _ in range(4):
        rng.shuffle(rows)
        ordered = stream(rows).select("tags", "id").match(word, order_by=["tags"])
        found.add(tuple(row for _, _, row in ordered.run().history.rows()))
    assert len(found) == 1


def test_rows_of_a_loop_may_be_lists() -> None:
    roads = cz.from_rows([{"ts": 0, "a": "x", "b": "y"}, {"ts": 0, "a": "y", "b": "z"}], time="ts")
    start = roads.select("b", way=cz.functions.array("a", "b"))

    def longer(ways: cz.Stream) -> cz.Stream:
        met = ways.join(roads.select(c=col("a"), d=col("b")), on={"b": "c"})
        return met.select(b=col("d"), way=cz.functions.array(col("way")[0], col("d")))

    ways = cz.fixpoint(start, longer, keep="all", max_rounds=5)
    got = sorted(row[1] for _, _, row in ways.run().history.rows())
    assert got == [["x", "y"], ["x", "z"], ["y", "z"]]


def test_json_lines_with_a_schema_have_maps(tmp_path: Path) -> None:
    lines = [{**row, "m": [{"key": k, "value": v} for k, v in (row["m"] or {}).items()]} for row in ROWS]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    read = cz.read.json(tmp_path / "a.jsonl", schema=SCHEMA, time="ts").run()
    plain = [{**row, "m": row["m"] or {}} for row in ROWS]
    assert read.history == stream(plain).run().history


def test_rows_come_back_from_pandas() -> None:
    frame = stream().drop("m").run().to_pandas()
    again = cz.from_pandas(frame.drop(columns=["RE"]).rename(columns={"LE": "ts"}), time="ts")
    assert again.select("tags").run().history == stream().select("tags").run().history
