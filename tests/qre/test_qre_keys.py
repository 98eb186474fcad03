"""Promises on the keys of a partition free their state, once all their items were read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from caesura import qre
from caesura.events import Page, parse
from caesura.expr import col
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.punctuation import Pattern, Punctuation, cti, lt
from caesura.runtime import Query

POINTS = Properties(insert_only=True, points=True, aligned=True, max_duration=1)
TYPES = {"int64": pa.int64(), "int32": pa.int32(), "string": pa.string(), "timestamp": pa.timestamp("us")}


def pair(**options: Any) -> Any:
    atom = qre.atom(op=col("v"))
    return qre.partition(qre.split(atom, atom, op=col("_0") + col("_1")), **options)


def query(schema: pa.Schema, **options: Any) -> Query:
    more = {name: options.pop(name) for name in ("kernel", "lives") if name in options}
    return Query({"out": qre.over(Input(label="in", payload=schema, known=POINTS), pair(**options), **more)})


def fed(schema: pa.Schema, rows: list[dict[str, Any]], running: Query, first: int = 0) -> None:
    """One row after the other, each at an instant of its own, and the time behind them."""
    times = list(range(first, first + len(rows)))
    page = Page.of(pa.RecordBatch.from_pylist(rows, schema), le=times, re=[t + 1 for t in times])
    running.feed("in", page)
    running.feed("in", cti(first + len(rows)))
    running.run()


def promised(running: Query, pattern: Pattern) -> int:
    running.feed("in", Punctuation(pattern))
    running.run()
    return running.state_rows


@pytest.mark.thin(2)
@pytest.mark.parametrize("kernel", ["auto", "table", "generated", "twin"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_promise_on_a_key_of_any_type_frees_it(kind, kernel):
    schema = pa.schema([("id", TYPES[kind]), ("v", pa.int64())])
    made = pa.array(range(4)).cast(pa.int64()).cast(TYPES[kind]).to_pylist()
    running = query(schema, by="id", kernel=kernel)
    fed(schema, [{"id": key, "v": 1} for key in made], running)
    assert running.state_rows == 4
    assert promised(running, Pattern(id=made[2]).check(schema)) == 3
    assert promised(running, Pattern(id=lt(made[2])).check(schema)) == 1
    fed(schema, [{"id": made[3], "v": 5}], running, first=10)
    assert running.state_rows == 0
    (page,) = [item for item in running.take("out") if isinstance(item, Page)]
    assert page.payload.to_pylist() == [{"id": made[3], "value": 6}]


@pytest.mark.parametrize("kernel", ["table", "generated", "twin"])
@pytest.mark.parametrize("second", [pa.int64(), pa.int32(), pa.string()])
def test_a_promise_on_a_part_of_the_key_frees_every_key_with_it(second, kernel):
    schema = pa.schema([("id", pa.int32()), ("s", second), ("v", pa.int64())])
    made = pa.array([0, 1]).cast(second).to_pylist()
    running = query(schema, by=("id", "s"), kernel=kernel)
    fed(schema, [{"id": i, "s": s, "v": 1} for i in (3, -4) for s in made], running)
    assert running.state_rows == 4
    assert promised(running, Pattern(id=-4)) == 2
    assert promised(running, Pattern(s=made[0], id=3).check(schema)) == 1


def test_a_key_is_kept_while_items_of_it_wait_for_their_turn():
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    running = query(schema, by="id")
    fed(schema, [{"id": 7, "v": 1}], running)
    for item in parse(" LE RE | id v |\n 5 6 | 7 10 | +\n-- definite: id = 7 --"):
        running.feed("in", item)
    running.run()
    assert running.state_rows == 2 and not [i for i in running.take("out") if isinstance(i, Page)]
    saved = running.snapshot()
    again = query(schema, by="id")
    again.restore(saved)
    for each in (running, again):
        assert promised(each, Pattern.before(9)) == 0
        (page,) = [item for item in each.take("out") if isinstance(item, Page)]
        assert page.payload.to_pylist() == [{"id": 7, "value": 11}]


def test_a_closed_key_gives_up_its_last_answer_too():
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    running = query(schema, by={"who": "id"}, lives="until_next")
    fed(schema, [{"id": i, "v": i} for i in (1, 1, 2, 2)], running)
    assert running.state_rows == 2
    assert promised(running, Pattern(id=1)) == 1


def test_a_key_that_stays_closed_is_freed_by_a_promise_only():
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    running = query(schema, by="id", again=False)
    fed(schema, [{"id": i, "v": i} for i in (1, 1, 2, 2)], running)
    assert running.state_rows == 2
    assert promised(running, Pattern(id=1)) == 1


def test_many_keys_come_and_go_without_their_names_being_mixed_up():
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    running = query(schema, by="id")
    for round_ in range(6):
        names = [f"k{round_ * 1000 + i}" for i in range(1000)]
        fed(schema, [{"id": name, "v": 1} for name in names], running, first=round_ * 2000)
        fed(schema, [{"id": name, "v": 1} for name in names[:-2]], running, first=round_ * 2000 + 1000)
    assert running.state_rows == 12
    assert promised(running, Pattern(id="k998")) == 11
    assert promised(running, Pattern(id="k5998")) == 10
    assert promised(running, Pattern(id="k5997")) == 10
