"""Random plans under random schemes: safe ones hold little for ever, unsafe ones can be made to grow."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest

from caesura.contracts import Scheme, Template, check
from caesura.contracts.witness import witness
from caesura.events import Item, Page
from caesura.expr import col
from caesura.ops.aggregate import Aggregate, Totals, Tumbling
from caesura.ops.chop import Chop
from caesura.ops.clip import Clip
from caesura.ops.deliver import Deliver
from caesura.ops.input import Input
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.plan import Node, Properties
from caesura.punctuation import INFINITY, TIME, Pattern, Punctuation, lt, one_of, value
from caesura.runtime import Query

POINTS = Properties(insert_only=True, points=True, aligned=True, max_duration=1)
SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64())])
COUNT = (("x", Aggregate("count")),)
TEMPLATES = [
    Template.over([TIME, "id", "x"], **marks)
    for marks in ({TIME: "+"}, {"id": "#"}, {TIME: "+", "id": "#"}, {"x": "#"}, {"id": "+"})
]


def plain(node: Node) -> Node:
    return Select(inputs=(node,), columns=(("id", col("id")), ("x", col("x"))))


def joined(random: Random, a: Node, b: Node) -> Node:
    how = random.choice(("inner", "left", "semi", "anti", "full"))
    if how in ("semi", "anti"):
        return Join(inputs=(a, b), on=(("id", "id"),), how=how)
    other = Select(inputs=(b,), columns=(("id", col("id")), ("y", col("x"))))
    return plain(Join(inputs=(a, other), on=(("id", "id"),), how=how))


def grown(random: Random, a: Node, b: Node) -> Node:
    """One more step on a plan."""
    makers = [
        lambda: Where(inputs=(a,), predicate=col("x") >= 0),
        lambda: Union(inputs=(a, b)),
        lambda: joined(random, a, b),
        lambda: joined(random, a, b),
        lambda: Layers(inputs=(a,), count="distinct"),
        lambda: Layers(inputs=(a, b), count=random.choice(("bag", "set"))),
        lambda: Tumbling(inputs=(a,), group=("id",), size=4, aggregates=COUNT),
        lambda: Totals(inputs=(a,), group=("id",), aggregates=COUNT),
        lambda: Lifetime(inputs=(a,), rule="set_duration", amount=3),
        lambda: Chop(inputs=(a,), period=5),
        lambda: Clip(inputs=(a, random.choice((a, b))), on=(("id", "id"),), how="semi"),
        lambda: Deliver(inputs=(a,), mode="final"),
    ]
    return random.choice(makers)()


def random_plan(seed: int) -> tuple[Node, dict[str, Scheme]]:
    random = Random(seed)
    known = [random.choice((POINTS, Properties())) for _ in "ab"]
    a, b = (Input(label=n, payload=SCHEMA, known=k) for n, k in zip("ab", known, strict=True))
    node = grown(random, a, b)
    for _ in range(random.randint(0, 2)):
        node = grown(random, node, random.choice((a, b)))
    schemes = {n: Scheme.of(*random.sample(TEMPLATES, random.choice((1, 2, 2, 3)))) for n in "ab"}
    return node, schemes


def long_stream(node: Node, schemes: dict[str, Scheme], ticks: int, width: int) -> Iterator[tuple[str, Item]]:
    """Ids live for `width` ticks each; every form of punctuation comes as soon as it is true."""
    inputs = {n.label: n for n in _inputs(node)}
    for tick in range(ticks):
        done = (tick + 1) % width == 0
        for label, source in inputs.items():
            end = tick + 1 if source.properties.points else INFINITY if tick % 3 else tick + 2
            rows = pa.RecordBatch.from_arrays([pa.array([tick // width]), pa.array([tick])], schema=SCHEMA)
            yield label, Page.of(rows, le=[tick], re=[end])
            for template in schemes[label]:
                told = {TIME: lt(tick + 1), "x": value(tick)}
                latest = tick // width
                recent = one_of(range(latest - 12, latest + 1)) if template[TIME] == "+" else value(latest)
                closed = {"id": lt(latest + 1) if template["id"] == "+" else recent}
                if "id" not in template.marked or done or template[TIME] == "+":
                    marks = {n: {**told, **closed}[n] for n in template.marked}
                    yield label, Punctuation(Pattern.of(marks))


def _inputs(node: Node) -> Iterator[Input]:
    if isinstance(node, Input):
        yield node
    for child in node.inputs:
        yield from _inputs(child)


def states(node: Node, fed: Iterator[tuple[str, Item]], every: int) -> list[int]:
    """How many rows the plan holds, after each so many items."""
    query = Query({"out": node}, unused="ab")
    sizes = []
    for number, (label, item) in enumerate(fed, 1):
        query.feed(label, item)
        query.run()
        if number % every == 0:
            sizes.append(query.state_rows)
    return [*sizes, query.state_rows]


PLANS = [(seed, *random_plan(seed)) for seed in range(36)]


@pytest.mark.parametrize("part", range(6))
def test_a_plan_called_safe_never_grows(part: int) -> None:
    for seed, node, schemes in PLANS[part::6]:
        used = {label: schemes[label] for label in {n.label for n in _inputs(node)}}
        if not check(node, schemes=used, advise=False).safe:
            continue
        width = 1 + 3 * (seed % 2)
        sizes = states(node, long_stream(node, used, 48, width), every=6)
        part_of = len(sizes) // 4
        assert min(sizes[-part_of:]) <= max(sizes[:part_of]) + 6, (seed, width, sizes)


@pytest.mark.parametrize("part", range(6))
def test_a_plan_called_unsafe_comes_with_a_stream_that_makes_it_grow(part: int) -> None:
    for seed, node, schemes in PLANS[part::6]:
        used = {label: schemes[label] for label in {n.label for n in _inputs(node)}}
        verdict = check(node, schemes=used, advise=False)
        if verdict.safe:
            continue
        few = states(node, witness(verdict, 16), every=1_000_000)[-1]
        many = states(node, witness(verdict, 32), every=1_000_000)[-1]
        assert many >= few + 4, (seed, few, many, verdict.growth)


def test_a_stream_clipped_by_itself_holds_one_row_per_value_however_long_it_runs() -> None:
    edges = Input(label="a", payload=SCHEMA)
    node = Clip(inputs=(edges, edges), on=(("id", "id"),), how="semi")
    assert check(node, schemes={"a": "{[[time:+]]}"}, few={"a": ["id"]}).safe
    query = Query({"out": node})
    sizes = []
    for tick in range(40):
        rows = pa.RecordBatch.from_arrays([pa.array([tick % 3]), pa.array([tick])], schema=SCHEMA)
        query.feed("a", Page.of(rows, le=[tick], re=[INFINITY]))
        query.feed("a", Punctuation(Pattern.before(tick + 1)))
        query.run()
        sizes.append(query.state_rows)
    assert max(sizes[20:]) <= max(sizes[:20])
