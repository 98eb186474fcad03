"""A plan without columns that nobody reads is made without checking its steps again, as if it were."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import caesura as cz
from caesura import Stream, col
from caesura.plan import walk
from caesura.plan.node import rebuilt
from caesura.plan.prune import prune
from caesura.runtime.query.result import delivered, for_one_run

ROWS = pa.table({"ts": [1, 4, 12, 13], "item": [7, 8, 7, 8], "price": [3, 9, 5, 6], "note": list("abcd")})


def streams() -> dict[str, Stream]:
    bids = cz.from_arrow(ROWS, time="ts", punctuate=cz.delay(2)).with_columns(at=cz.start())
    dear = bids.where(col("price") > 3)
    names = cz.table(pa.table({"item": [7, 8], "name": ["lamp", "chair"], "more": [1, 2]}))
    return {
        "chosen": dear.select("item", twice=col("price") * 2).select("item"),
        "filtered twice": dear.where(col("item") == 8).select("note"),
        "counted": dear.group_by("item").tumbling(10).agg(n=cz.count()).select("n"),
        "joined": dear.join(names, on="item").select("name", "price"),
        "with itself": dear.forever().join(bids.forever().select("item", low="price"), on="item").drop("at"),
    }


@pytest.mark.parametrize("name", list(streams()))
def test_a_step_that_was_not_checked_again_is_the_one_that_checks_give(name: str) -> None:
    last = delivered(for_one_run(streams()[name].node), "final")
    for node in walk(prune({"out": last})["out"]):
        checked = replace(node)
        assert node.schema.equals(checked.schema), node.describe()
        assert node.fingerprint == checked.fingerprint
        assert node.properties == checked.properties


def test_a_table_that_two_plans_read_is_narrowed_for_each() -> None:
    bids = cz.from_arrow(ROWS, time="ts")
    assert bids.select("note").run().table()["note"].to_pylist() == list("abcd")
    assert bids.select("price").run().table()["price"].to_pylist() == [3, 9, 5, 6]
    assert bids.select("note", "item").run().table()["item"].to_pylist() == [7, 8, 7, 8]


def test_a_step_over_columns_of_other_types_is_checked_again() -> None:
    chosen = cz.from_arrow(ROWS, time="ts").select("item")
    texts = ROWS.set_column(1, "item", pa.array(list("wxyz")))
    other = rebuilt(chosen.node, (cz.from_arrow(texts, time="ts").node,))
    assert other.schema.field("item").type == pa.string()
