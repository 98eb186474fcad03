"""The two weaker levels: every claimed state meets its definition, by what really set each row off."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from claim_laws import states
from levels import CausedRow, update_complete

import caesura as cz
from caesura import Stream, col
from caesura.errors import PlanError
from caesura.events import Item, pages, parse
from caesura.runtime import Query, Shuffled

A, B = (pa.schema([(name, pa.int64()), ("k", pa.int64())]) for name in ("id", "j"))
FIRST, SECOND = "update-complete", "input-prefix update-complete"


def read(label: str, schema: pa.Schema) -> Stream:
    return cz.input_stream(label, schema, insert_only=True)


def two_ways() -> Stream:
    """Each row comes out twice; every second row by longer ways."""
    rows = read("a", A)
    odd, even = rows.where(col("id") % 2 == 1), rows.where(col("id") % 2 == 0).where(col("id") >= -1)
    return odd.union(odd.where(col("id") > 0), even, even.where(col("id") > 0)).select("id")


def met() -> Stream:
    """Figure 4: pairs of two sources, of which some have a longer way to the output."""
    pairs = read("a", A).where(col("id") > 0).join(read("b", B), on="k")
    odd, even = pairs.where(col("id") % 4 < 2), pairs.where(col("id") % 4 >= 2).where(col("id") > 0)
    return odd.union(even.where(col("j") > 0)).select("id", "j")


def met_itself() -> Stream:
    rows = read("a", A)
    return rows.where(col("id") > 0).join(rows.select("k", j=col("id")), on="k").select("id", "j")


def ran(stream: Stream, level: str, seed: int) -> tuple[Query, list[tuple[int, int]]]:
    """A query that was fed twelve rows of each source; and the order in which a join took them."""
    query = Query({"out": stream.node}, claims=cz.heeding(level=level), schedule=Shuffled(seed))
    order: list[tuple[int, int]] = []
    for cell in query.graph.cells:
        if cell.node.kind == "join":
            _watch(cell.operator, order)
    for n in range(1, 13):
        for label in query.inputs:
            for item in parse(f" LE RE | {'id' if label == 'a' else 'j'} k |\n 1 99 | {n} {n % 2} | +"):
                query.feed(label, item)
        for _ in range(seed % 5):
            query.step()
    query.run()
    return query, order


def _watch(operator: Any, order: list[tuple[int, int]]) -> None:
    take = operator.page

    def page(port: int, page: Any) -> Any:
        rows = page.payload.to_pylist()
        assert len(rows) == 1
        order.append((port, rows[0]["id" if "id" in rows[0] else "j"]))
        return take(port, page)

    operator.page = page


def caused(items: list[Item], order: list[tuple[int, int]], sources: str) -> list[CausedRow]:
    """Each row with the event that set it off: itself, or the later one of a pair at the join."""
    when = {event: place for place, event in enumerate(order)}
    found = []
    for row in (tuple(r.values()) for page in pages(items) for r in page.payload.to_pylist()):
        port = max(range(len(row)), key=lambda p, row=row: when.get((p, row[p]), 0))  # type: ignore[misc]
        found.append(CausedRow(row, (sources[port], row[port])))
    return found


PLANS = {"two ways": (two_ways, "a"), "met": (met, "ab"), "itself": (met_itself, "aa")}


@pytest.mark.thin(2)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("level", [FIRST, SECOND])
@pytest.mark.parametrize("seed", range(8))
def test_every_claimed_state_meets_the_definition_of_its_level(plan: str, level: str, seed: int) -> None:
    made, sources = PLANS[plan]
    query, order = ran(made(), level, seed)
    items = query.take("out")
    whole = caused(items, order, sources)
    assert query.claims and {str(c.level) for c in query.claims} == {level}
    for number, state in states(items).items():
        before, after = whole[: (n := len(caused(state, order, sources)))], whole[n:]
        if level == FIRST:
            assert update_complete(before, after), number
        else:
            prefix = {s: query.claims[number - 1].prefix[s].rows for s in sources}
            assert [d for d in whole if d.active[1] <= prefix[d.active[0]]] == before, number


def test_weaker_levels_have_states_that_the_next_one_has_not() -> None:
    def claims(stream: Stream, level: str) -> int:
        return sum(len(ran(stream, level, seed)[0].claims) for seed in range(4))

    assert claims(two_ways(), FIRST) > claims(two_ways(), SECOND)
    assert claims(met(), SECOND) > claims(met(), "input-prefix consistent")


def test_a_level_that_labels_cannot_tell_is_refused() -> None:
    with pytest.raises(PlanError, match="heeding finds no states of level 'synchronised'"):
        cz.heeding(level="synchronised")
