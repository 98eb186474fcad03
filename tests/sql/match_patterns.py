"""Drawn MATCH_RECOGNIZE: a pattern as a tree and as a text, conditions as texts and as functions of paths."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import caesura as cz
from caesura.events import History
from caesura.ops.match.pattern import (
    Alternatives,
    Concat,
    EmptyPattern,
    Excluded,
    Permute,
    Repeat,
    RowPattern,
    RowVariable,
    excludes,
)
from caesura.testing.oracles.match import Path, matched
from caesura.testing.oracles.rows import Payload, Rows

Told = Callable[[Rows, Path], bool]
NAMES = "ABC"


def of(rows: Rows, path: Path, names: str = NAMES) -> list[int]:
    """The values of the rows of some variables."""
    return [rows[row][2]["v"] for row, name, _ in path if name in names]


def before(rows: Rows, path: Path) -> int | None:
    """The value of the row before the last one of a path."""
    return rows[path[-1][0] - 1][2]["v"] if path[-1][0] else None


CONDITIONS: dict[str, Told] = {
    "v > 1": lambda r, p: of(r, p)[-1] > 1,
    "{0}.v < 3": lambda r, p: of(r, p)[-1] < 3,
    "v > PREV(v)": lambda r, p: (b := before(r, p)) is not None and of(r, p)[-1] > b,
    "{0}.v <= PREV({0}.v, 1)": lambda r, p: (b := before(r, p)) is not None and of(r, p)[-1] <= b,
    "v >= FIRST(v)": lambda r, p: of(r, p)[-1] >= of(r, p)[0],
    "v <> LAST(v, 1) OR LAST(v, 1) IS NULL": lambda r, p: len(p) < 2 or of(r, p)[-1] != of(r, p)[-2],
    "SUM(v) < 7": lambda r, p: sum(of(r, p)) < 7,
    "AVG({0}.v) > 1 AND v < 4": lambda r, p: sum(own := of(r, p, p[-1][1])) > len(own) and of(r, p)[-1] < 4,
    "v * 2 <= FIRST(v) + 3.5": lambda r, p: of(r, p)[-1] * 2 <= of(r, p)[0] + 3.5,
    "MAX(v) - MIN(v) < 3 AND NOT v = 9": lambda r, p: max(of(r, p)) - min(of(r, p)) < 3,
    "SUM(CAST(v AS DOUBLE) / 2) < 2.5": lambda r, p: sum(of(r, p)) < 5,
    "v % 2 <> LAST(v, 1) % 2 OR COUNT(*) = 1": lambda r, p: len(p) < 2 or sum(of(r, p)[-2:]) % 2 == 1,
    "COUNT({0}.*) <= 2": lambda r, p: len(of(r, p, p[-1][1])) <= 2,
    "v > COALESCE(A.v, 0) - 1 AND COUNT(U.*) < 4": lambda r, p: (
        of(r, p)[-1] > ([0, *of(r, p, "A")][-1]) - 1 and len(of(r, p, "AB")) < 4
    ),
}
SKIPS = {"past last row": "PAST LAST ROW", "next row": "TO NEXT ROW", "last": "TO LAST A"}
MEASURES = (
    "COUNT(*) AS n, SUM(A.v) AS a, LAST(B.v) AS b, FIRST(v) AS f, MATCH_NUMBER() AS m, CLASSIFIER() AS c, "
    "FINAL LAST(v) AS e, FINAL COUNT(U.v) AS u, PREV(FIRST(v)) AS p"
)


def measured(rows: Rows, path: Path, upto: int, number: int) -> Payload:
    """The same in Python."""
    now = path[:upto]
    a, b, every = of(rows, now, "A"), of(rows, now, "B"), of(rows, now)
    first = path[0][0] - 1 if now else -1
    return {
        "n": len(now),
        "a": sum(a) if a else None,
        "b": b[-1] if b else None,
        "f": every[0] if every else None,
        "m": number,
        "c": now[-1][1] if now else None,
        "e": of(rows, path)[-1] if path else None,
        "u": len(of(rows, path, "AB")),
        "p": rows[first][2]["v"] if first >= 0 else None,
    }


def pattern(random: Random, depth: int) -> RowPattern:
    """A pattern of so many levels."""
    kind = random.choice("vvsscrrrpe") if depth else "v"
    if kind == "v":
        return RowVariable(random.choice(NAMES)) if random.random() < 0.95 else EmptyPattern()
    if kind == "r":
        low = random.choice((0, 0, 1, 1, 2))
        high = random.choice((None, None, low + 1, max(low, 1)))
        return Repeat(pattern(random, depth - 1), low, high, random.random() < 0.7)
    if kind == "e":
        return Excluded(pattern(random, depth - 1))
    parts = tuple(pattern(random, depth - 1) for _ in range(random.choice((2, 2, 3))))
    return {"s": Concat, "c": Alternatives, "p": Permute}[kind](parts)


def corrected(random: Random) -> tuple[cz.Stream, Rows]:
    """Rows out of order, some of which end otherwise than they said or are taken back; and what is left."""
    drawn: list[tuple[float, dict[str, object]]] = []
    left: Rows = []
    for n in range(14):
        own = {"k": random.choice((1, 1, 2)), "v": random.randrange(5)}
        end, comes = n + random.choice((1, 3, 8)), n + random.randrange(5)
        row = {"ts": n, "to": end, "kind": "+", "now": None, **own}
        drawn.append((comes, row))
        if random.random() < 0.3:
            now = random.choice((n, n, n + 1, n + 5))
            drawn.append((comes + random.choice((0.5, 2.5)), {**row, "kind": "-", "now": now}))
            end = now
        if end > n:
            left.append((n, end, {"ts": n, **own}))
    drawn.sort(key=lambda one: one[0])
    stream = cz.from_rows(
        [row for _, row in drawn],
        time="ts",
        end="to",
        kind="kind",
        new_end="now",
        punctuate=cz.delay(8),
        batch_size=3,
    )
    return stream, left


def check(seed: int) -> bool:
    """Whether a drawn query says what trying all ways says; gives whether there was a match at all."""
    random = Random(seed)
    maybe = (Repeat(RowVariable(name), 0, 1) for name in "BC")
    tree = Concat((pattern(random, 3), RowVariable("A"), *maybe))
    asked = {name: random.choice(list(CONDITIONS)) for name in NAMES}
    skip, to = random.choice(list(SKIPS.items()))
    within = random.choice((None, None, 4))
    shown, said = random.choice(
        (("one", "ONE ROW"), ("one", "ONE ROW"), ("all", "ALL ROWS"), ("all with unmatched", "ALL ROWS"))
    )
    shown = "all" if excludes(tree) and "all" in shown else shown
    text = f"""SELECT * FROM t MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY ts MEASURES {MEASURES} {said} PER MATCH
        {"WITH UNMATCHED ROWS" if "unmatched" in shown else ""} AFTER MATCH SKIP {to} PATTERN ({tree})
        {f"WITHIN {within}" if within else ""} SUBSET U = (A, B)
        DEFINE {", ".join(f"{name} AS {told.format(name)}" for name, told in asked.items())})"""
    stream, given = corrected(random)
    made = cz.sql(text, t=stream)
    target = ("A",) if skip == "last" else ()
    wanted = matched(
        given, ["k"], tree, _holds(asked), measured, shown=shown, skip=skip, target=target, within=within
    )
    names = made.schema.names
    expected = [(le, re, *(p[n] for n in names)) for le, re, p in wanted]
    for output in ("changes", "final"):
        found = [(le, re, *r) for le, re, r in History.of(made.run(output=output).items, made.schema).rows()]
        assert sorted(found, key=repr) == sorted(expected, key=repr), f"{seed}, {output}: {text}"
    return bool(wanted)


def _holds(asked: dict[str, str]) -> Callable[[Rows, Path, int], bool]:
    return lambda rows, path, _: CONDITIONS[asked[path[-1][1]]](rows, path)
