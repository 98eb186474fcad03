"""Windows that came and went between two snapshots leave nothing to those that get their numbers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura.events import History, Item, parse
from caesura.ops.input import Input
from caesura.runtime import Query

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64())])

AGGREGATES: dict[str, Any] = {
    "min": cz.min("v"),
    "max": cz.max("v"),
    "median": cz.median("v"),
    "count_distinct": cz.count_distinct("v"),
    "max_by": cz.max_by("id", "v"),
    "min_by": cz.min_by("id", "v"),
    "sum": cz.sum("v"),
    "stddev": cz.stddev("v"),
}
STEPS: dict[str, Any] = {
    "tumbling": lambda g, a: g.tumbling(5).agg(x=a),
    "hopping": lambda g, a: g.hopping(4, every=2).agg(x=a),
    "snapshot": lambda g, a: g.snapshot().agg(x=a),
    "totals": lambda g, a: g.totals(x=a),
    "alive": lambda g, a: g.alive().agg(x=a),
}
CLOSED = " 0 1 | 0 0.0 | +\n 0 1 | 0 -1.0 | +\n 0 1 | 0 9.0 | +\n-- definite: id = 0 --"
PARTS = {
    "comes and goes": [
        " 0 11 | 2 3.0 | +",
        CLOSED,
        " 1 2 | 1 1.0 | +",
        " 1 2 | 3 2.0 | +",
        " 2 3 | 1 1.5 | +\n 1 2->1 | 1 1.0 | -",
        "-- 6 --\n 7 8 | 1 5.0 | +",
        "-- definite: * --",
    ],
    "two come and go": [
        " 0 11 | 2 3.0 | +\n 0 1 | 1 -2.0 | +\n" + CLOSED + "\n 0 1->0 | 1 -2.0 | -",
        " 1 2 | 1 1.0 | +",
        "-- 6 --\n 7 8 | 1 5.0 | +",
        "-- definite: * --",
    ],
}


@pytest.mark.thin(11)
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("pace", ["arrival", "watermark", "passed"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_query_that_restarts_behind_every_part_says_what_one_that_does_not_says(
    aggregate: str, step: str, pace: Any, parts: str
) -> None:
    plan = STEPS[step](cz.Stream(Input(label="a", payload=SCHEMA)).group_by("id"), AGGREGATES[aggregate])
    told = []
    for restarts in (False, True):
        made, chunks = Query({"out": plan.node}, speculate=pace), dict[str, Any]()
        items: list[Item] = []
        for part in PARTS[parts]:
            for item in parse(f" LE RE | id v |\n{part}", SCHEMA):
                made.feed("a", item)
            made.run()
            items += made.take("out")
            if restarts:
                chunks |= made.snapshot()
                made = Query({"out": plan.node}, speculate=pace)
                made.restore({name: data for name, data in chunks.items() if data is not None})
        told.append(History.of(items, plan.node.schema))
    assert told[0] == told[1]
