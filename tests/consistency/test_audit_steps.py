"""The audit recomputes every kind of step that it says it can, and finds a row that is not there."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import caesura as cz
from caesura import Stream, col
from caesura.audit import audit_states
from caesura.events import History

TABLE = pa.table(
    {
        "t": [1, 3, 2, 6, 9, 8, 12, 4, 15, 16],
        "end": [5, 9, 4, 7, 20, 9, 14, 6, 18, 17],
        "k": [0, 1, 0, 2, 1, 0, 1, 2, 0, 1],
        "v": [3, None, 5, 1, 2, 2, 7, 0, 4, 4],
    }
)


def read() -> Stream:
    return cz.from_arrow(TABLE, time="t", end="end", punctuate=cz.delay(3), batch_size=2)


def other() -> Stream:
    return read().select("k", w=col("v") + 1)


STEPS: dict[str, Callable[[], Stream]] = {
    "where": lambda: read().where((col("v") > 1) & ~(col("k") == 2) | col("v").is_null()),
    "select": lambda: read().select(
        "k", x=col("v") * 2 - 1, y=col("v") / 2, z=cz.when(col("k") > 0, 1).otherwise(0)
    ),
    "inner join": lambda: read().join(other(), on="k", where=col("v") < col("w")),
    "left join": lambda: read().join(other(), on="k", how="left"),
    "full join": lambda: read().join(other().where(col("k") != 1), on="k", how="full"),
    "semi join": lambda: read().join(other(), on="k", how="semi"),
    "anti join": lambda: read().join(other().where(col("w") > 3), on="k", how="anti"),
    "union": lambda: read().union(read().where(col("k") == 1)),
    "distinct": lambda: read().select("k").distinct(),
    "difference": lambda: read().select("k").difference(other().where(col("w") > 3).select("k")),
    "shift": lambda: read().shift(4),
    "extend": lambda: read().extend(2),
    "scale": lambda: read().scale(2),
    "points": lambda: read().points_at_end(),
    "chop": lambda: read().chop(4),
    "clip": lambda: read().clip(other().where(col("w") > 2), on="k"),
    "totals": lambda: read().group_by("k").totals(n=cz.count(), s=cz.sum("v"), m=cz.median("v")),
    "tumbling": lambda: read().group_by("k").tumbling(5).agg(n=cz.count("v"), hi=cz.max("v")),
    "hopping": lambda: read().hopping(6, every=2).agg(mean=cz.avg("v")),
    "snapshot": lambda: read().group_by("k").snapshot().agg(n=cz.count(), s=cz.sum("v")),
    "session": lambda: read().session(2).agg(n=cz.count(), first=cz.first("v")),
    "count windows": lambda: read().count_by_start(3).agg(s=cz.sum("v")),
}


@pytest.mark.parametrize("step", STEPS)
def test_the_audit_agrees_with_the_engine_at_every_claim(step: str) -> None:
    stream = STEPS[step]()
    done = stream.run(claims=cz.tokens(every=3))
    judged = [(claim, {"out": done.at(claim)}) for claim in done.claims]
    findings = audit_states({"out": stream.node}, judged)
    assert [str(f) for f in findings if not f.right] == []
    claim, views = judged[-1]
    short = History(views["out"].page.slice(1, len(views["out"]) - 1))
    (found,) = audit_states({"out": stream.node}, [(claim, {"out": short})])
    assert len(found.missing) == 1
