"""Law cases of what users write as expressions: functions, computed keys, arithmetic on aggregates."""

from __future__ import annotations

from typing import Any

from law_specs import FINITE, FINITE_RIGHT, NAMED, none, slowest, windowed

import caesura as cz
from caesura import Stream, col
from caesura.testing import oracles
from caesura.testing.case import LawCase, register


def functions(p: dict[str, Any]) -> dict[str, Any]:
    """The columns of the step, one value at a time."""
    s, n = p["s"], p["n"]
    return {
        "id": p["id"],
        "first": None if s is None else s.split(" ")[0],
        "second": None if s is None else [*s.split(" "), ""][1],
        "padded": None if s is None else s[:3].rjust(3, "*"),
        "parts": "-".join(str(v) for v in (s, n) if v is not None),
        "found": None if s is None else s.find("a") + 1,
        "less": None if n is None else n % 3 if n >= 0 else -(-n % 3),
    }


register(
    LawCase(
        "functions of texts",
        build=lambda a: (
            Stream(a)
            .select(
                "id",
                first=col("s").split_part(" ", 1),
                second=col("s").split_part(" ", 2),
                padded=col("s").lpad(3, "*"),
                parts=cz.expr("concat_ws('-', s, n)"),
                found=cz.expr("instr(s, 'a')"),
                less=cz.expr("n % 3"),
            )
            .node
        ),
        oracle=lambda a, **_: oracles.select(a, functions),
        inputs=(NAMED,),
        liveness=slowest,
        state_bound=none,
    )
)
register(
    LawCase(
        "join on what is computed",
        build=lambda a, b: (
            Stream(a).join(Stream(b), on=cz.left("id") + 1 == cz.right("other"), how="left").node
        ),
        oracle=lambda a, b, **_: _joined(a, b),
        inputs=(FINITE, FINITE_RIGHT),
    )
)
register(
    LawCase(
        "arithmetic on aggregates",
        build=lambda a: Stream(a).group_by("id").tumbling(5).agg(n=cz.count() * 2 - cz.count()).node,
        oracle=lambda a, **_: windowed(a),
        inputs=(FINITE,),
    )
)


def _joined(a: oracles.Rows, b: oracles.Rows) -> oracles.Rows:
    """The join over a key beside the columns, which is left out again."""
    keyed = [(le, re, p | {"k": None if p["id"] is None else p["id"] + 1}) for le, re, p in a]
    other = [(le, re, p | {"j": p["other"]}) for le, re, p in b]
    joined = oracles.join(keyed, other, on=[("k", "j")], how="left")
    return [(le, re, {n: v for n, v in p.items() if n != "k"}) for le, re, p in joined]
