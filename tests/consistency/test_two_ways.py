"""Streams that go two ways through a plan: no schedule makes a claim that the query on the prefix denies."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from claim_laws import first_items, states
from depth import examples

import caesura as cz
from caesura import Stream, col
from caesura.consistency import Mode
from caesura.events import History, Item, Page
from caesura.ops.input import Input
from caesura.plan import Node, Properties
from caesura.runtime import Query, Shuffled

SEEDS = examples(4)
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def given(label: str, *, insert_only: bool) -> Stream:
    return Stream(Input(label=label, payload=SCHEMA, known=Properties(insert_only=insert_only)))


def anti(a: Stream, b: Stream) -> Stream:
    """A row is missing because of another, which leaves no trace."""
    return a.join(b.select("k"), on="k", how="anti").union(b.where(col("v") > 0))


def left(a: Stream, b: Stream) -> Stream:
    met = a.join(b.select("k", w=col("v")), on="k", how="left").select("k", "v")
    return met.union(b.where(col("v") >= 0))


def inner(a: Stream, b: Stream) -> Stream:
    """A retraction that comes before the partner leaves no trace either."""
    met = a.join(b.select("k"), on="k")
    return met.union(a.where(col("v") >= 0)).union(b.where(col("v") > 1))


def counted(a: Stream, b: Stream) -> Stream:
    both = a.union(b)
    sums = both.group_by("k").totals(v=cz.sum("v"))
    return sums.join(a.distinct().select("k"), on="k", how="semi").union(b)


def triangle(a: Stream, b: Stream) -> Stream:
    """The paper's query: two joins on different columns, and a third over their outputs."""
    first = a.join(b.select("k", w=col("v")), on="k").select("k", "v")
    second = a.join(b.select("v", x=col("k")), on="v").select("k", "v")
    return first.join(second.select("k", u=col("v")), on="k").select("k", "v")


PLANS = {"anti": anti, "left": left, "inner": inner, "counted": counted, "triangle": triangle}


def items(rng: random.Random, *, insert_only: bool) -> list[Item]:
    """One-row pages, with retracts where they are allowed, and punctuation."""
    out: list[Item] = []
    live: list[tuple[int, int, int]] = []
    for t in range(rng.randint(2, 6)):
        row = (rng.randint(0, 1), rng.randint(0, 2), t)
        out.append(page(*row))
        live.append(row)
        if not insert_only and rng.random() < 0.4:
            out.append(page(*live.pop(rng.randrange(len(live))), gone=True))
        if rng.random() < 0.2:
            out.append(cz.cti(-1))
    return out


def page(k: int, v: int, t: int, *, gone: bool = False) -> Page:
    batch = pa.record_batch({"k": [k], "v": [v]}, schema=SCHEMA)
    return Page.of(batch, le=[t], re=[99], re_new=[t] if gone else None)


def drained(node: Node, fed: dict[str, list[Item]]) -> History:
    query = Query({"out": node})
    for label, some in fed.items():
        for item in some:
            query.feed(label, item)
    query.run()
    return History.of(query.take("out"), node.schema)


@pytest.mark.thin(4)
@pytest.mark.parametrize("mode", [cz.heeding(), cz.tokens(every=1)], ids=["heeding", "tokens"])
@pytest.mark.parametrize("insert_only", [True, False], ids=["inserts", "retracts"])
@pytest.mark.parametrize("plan", PLANS)
def test_every_claim_is_the_query_on_its_prefix(plan: str, insert_only: bool, mode: Mode) -> None:
    node = PLANS[plan](*(given(n, insert_only=insert_only) for n in "ab")).node
    claimed = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        fed = {label: items(rng, insert_only=insert_only) for label in "ab"}
        query = Query({"out": node}, schedule=Shuffled(seed), capacity=rng.choice([1, 3, 8]), claims=mode)
        todo = {label: list(some) for label, some in fed.items()}
        while any(todo.values()):
            label = rng.choice([n for n, some in todo.items() if some])
            query.feed(label, todo[label].pop(0))
            for _ in range(rng.randint(0, 6)):
                query.step()
        query.run()
        came = states(query.take("out"))
        for claim in query.claims:
            some = {label: first_items(fed[label], claim.prefix[label]) for label in "ab"}
            assert History.of(came[claim.number], node.schema) == drained(node, some), f"seed {seed}: {claim}"
        claimed += len(query.claims)
    assert claimed >= SEEDS
