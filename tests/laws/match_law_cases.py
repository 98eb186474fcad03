"""Cases of row patterns: what is shown, where searches go on, what conditions read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caesura.audit.matches import matches_of
from caesura.expr import col, lit
from caesura.ops.aggregate.kinds import count, max, sum
from caesura.ops.match import NUMBER, Formula, MatchFold, MatchRows, Navigation, Skip
from caesura.ops.match.pattern import Alternatives, Anchor, Concat, Excluded, Permute, Repeat, RowVariable
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.testing.case import LawCase, register
from caesura.testing.spec import InputSpec

VALUES = InputSpec({"id": "key", "v": "float", "n": "int"}, key="id", max_rows=7)
ALL = InputSpec({"id": "key", "v": "float", "n": "int"}, max_rows=8)
A, B, C = (RowVariable(name) for name in "ABC")


def read(name: str, of: str = "", **options: Any) -> Navigation:
    """A column of a row of these variables."""
    return Navigation(col(name), tuple(of), **options)


def formula(build: Any, **reads: Any) -> Formula:
    """An expression over what it reads."""
    return Formula(build(*map(col, reads)), tuple(reads.items()))


RISING = formula(lambda a, b: a > b, now=read("n"), before=read("n", move=-1))
FALLING = formula(lambda a, b: a < b, now=read("n"), before=read("n", move=-1))
POSITIVE = formula(lambda a: a > 0, now=read("n"))
SMALL = formula(lambda a: a < 2, now=read("v"))
SEEN = {
    "rows": formula(lambda a: a, rows=MatchFold(count())),
    "total": formula(lambda a: a, total=MatchFold(sum("n"), ("A",))),
    "last": formula(lambda a: a, last=read("n", "B")),
    "first": formula(lambda a: a, first=read("v", first=True)),
    "number": Formula(col(NUMBER)),
    "name": formula(lambda a: a, name=Navigation(None)),
    "end": formula(lambda a: a, end=read("n", final=True)),
    "top": formula(lambda a: a, top=MatchFold(max("n"), ("B",), final=True)),
}


def matching(name: str, spec: InputSpec, pattern: Any, define: Any, seen: Any = SEEN, **more: Any) -> None:
    """One case of a pattern."""
    named = ("liveness", "state_bound", "linger", "regressions")
    laws = {law: more.pop(law) for law in named if law in more}
    fixed = {"group": ("id",) if spec.key else (), "pattern": pattern, **more}
    columns = {"define": tuple(define.items()), "measures": tuple(seen.items())}

    def build(a: Any) -> MatchRows:
        return MatchRows(inputs=(a,), **fixed, **columns)

    case = LawCase(f"match {name}", build, lambda a, **_: matches_of(case.plan(), a), (spec,), **laws)
    register(case)


def later(by: int) -> Any:
    """The output is so many ticks behind the input."""
    return lambda ctis: ctis[0] if ctis[0] in (MIN_TIME, INFINITY) else ctis[0] - by


matching("a rise", VALUES, Concat((A, Repeat(B, 1, None))), {"B": RISING})
matching("a V", ALL, Concat((A, Repeat(B, 1, None), Repeat(C, 1, None))), {"B": FALLING, "C": RISING})
matching("all rows of runs", ALL, Concat((Repeat(A, 1, None), Repeat(B, 0, 2))), {"A": POSITIVE}, shown="all")
matching(
    "from every row",
    VALUES,
    Concat((Repeat(A, 1, 3, greedy=False), B)),
    {"B": POSITIVE},
    skip=Skip("next row"),
    shown="all without empty",
)
matching(
    "in some time",
    replace(VALUES, lifetimes="points"),
    Concat((A, Repeat(B, 0, None))),
    {"A": POSITIVE, "B": SMALL},
    {name: one for name, one in SEEN.items() if name != "number"},
    within=3,
    liveness=later(3),
    state_bound=lambda counts: 3 * counts[0] + 3,
    linger=3,
)
matching(
    "in some time, all",
    ALL,
    Concat((A, Repeat(Alternatives((B, Excluded(C))), 1, None))),
    {"B": RISING, "C": SMALL},
    within=5,
    shown="all",
)
matching(
    "rows that are left over",
    ALL,
    Concat((A, Repeat(B, 0, 2), C)),
    {"A": POSITIVE, "B": RISING},
    skip=Skip("next row"),
    within=4,
    shown="all with unmatched",
    regressions=(
        (  # the end of a row moves to that of its twin, behind the search that matched both
            (
                "a",
                " LE RE | id v n |\n 0 1 | 0 0.0 0 | +\n 0 1 | 0 0.0 1 | +\n 0 2 | 0 0.0 1 | +\n-- 1 --\n"
                " 0 2->1 | 0 0.0 1 | -\n-- definite: * --",
            ),
        ),
    ),
)
matching(
    "what was matched",
    ALL,
    Concat((A, Repeat(B, 1, None), Repeat(C, 0, None, greedy=False))),
    {
        "B": formula(lambda a, b: a >= b, now=read("n"), first=read("n", "A", first=True)),
        "C": formula(
            lambda a, b: (a < 3) & (b > 0), rows=MatchFold(count(), ("B", "C")), number=read("n", "C")
        ),
    },
    skip=Skip("last", ("B",)),
    shown="all with unmatched",
)
matching(
    "totals and numbers",
    VALUES,
    Repeat(Alternatives((A, B)), 1, None),
    {
        "A": formula(lambda a: a < 6, total=MatchFold(sum("n"), ("A",))),
        "B": formula(lambda a: (a > 1) & (col(NUMBER) < 3), before=read("n", by=1)),
    },
    skip=Skip("first", ("B",)),
)
matching(
    "rows behind and at the ends",
    ALL,
    Alternatives(
        (Concat((Anchor("^"), A)), Concat((B, Repeat(A, 0, None, False), Anchor("$"))), Concat((A, B)))
    ),
    {"A": formula(lambda a, b: (a > b) | b.is_null(), now=read("n"), next=read("n", move=1))},
)
matching(
    "in any order, or nothing",
    VALUES,
    Repeat(Alternatives((Permute((A, B)), Repeat(C, 0, None))), 0, None),
    {"A": POSITIVE, "B": SMALL, "C": RISING},
    shown="all",
)
matching("nothing at all", VALUES, Repeat(A, 0, None), {"A": Formula(lit(False))}, order=("n",))
