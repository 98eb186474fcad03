"""The output CTI is the largest sound one: some legal future changes output exactly there."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from depth import examples

import caesura as cz
from caesura import Event, Window, uda, udo
from caesura.errors import PlanError
from caesura.events import NO_NEW_END, Item, Page
from caesura.ops.input import Input
from caesura.ops.windows import Count, Grid, Session, Snapshot, Windows
from caesura.punctuation import INFINITY, Promises, cti
from caesura.runtime import Query

SCHEMA = pa.schema([("v", pa.int64())])
FRAMES: list[Any] = [
    Grid(5, 5, 1), Grid(6, 2), Grid(3, 7), Snapshot(), Count(1, "start"), Count(2, "start"), Count(1, "end"),
    Count(2, "end"),
    Session(3), Session(2, 5),
]  # fmt: skip
Row = tuple[int, int, int]


@uda(time_bound=True)
def marked(events: list[Event[int]], window: Window) -> int:
    """Depends on everything that it may see."""
    return hash((tuple((e.start, e.end, e.payload) for e in events), window.start, window.end)) % 10**9


def page(le: int, re: int, v: int, new: int = NO_NEW_END) -> Page:
    return Page.of(pa.record_batch({"v": [v]}), le=[le], re=[re], re_new=[new])


NEVER = page(INFINITY - 1, INFINITY, 0)


def futures(rows: list[Row], c: int) -> Iterator[Page]:
    """Legal next steps after a CTI."""
    for le in (c, c + 1, c + 4):
        yield page(le, le + 1, 5)
        yield page(le, le + 9, 6)
    for le, re, v in rows:
        if re >= c:
            ends = {max(c, le), max(c, le) + 1, c + 3, c + 11} - {re}
            yield from (page(le, re, v, new) for new in sorted(ends) if new >= max(c, le))


def run(node: Windows, items: list[Item]) -> tuple[Query, Promises]:
    query, told = Query({"out": node}), Promises()
    for item in items:
        query.feed("a", item)
        query.run()
    for item in query.take("out"):
        if not isinstance(item, Page):
            told.add(item.pattern)
    return query, told


def earliest_change(node: Windows, items: list[Item], rows: list[Row], c: int, told: int) -> int:
    """The least time that any next step changes in the output, or any two where one changes nothing so early.

    A border that two rows share moves with both of them only.
    """
    steps = list(futures(rows, c))
    least = min(changed(node, items, [step]) for step in steps)
    if told < least:
        pairs = ([one, other] for one in steps for other in steps if one is not other)
        least = min(least, *(changed(node, items, pair) for pair in pairs if legal(pair)))
    return least


def legal(pair: list[Page]) -> bool:
    """Whether no row is retracted by both."""
    retracts = [(int(p.le[0]), int(p.re[0])) for p in pair if p.retracts is not None and p.retracts[0]]
    return len(set(retracts)) == len(retracts)


def changed(node: Windows, items: list[Item], steps: list[Page]) -> int:
    """The least time that these steps change in the output."""
    query, _ = run(node, items)
    for step in steps:
        query.feed("a", step)
    query.run()
    return min(int(p.sync.min()) for p in (*query.take("out"), NEVER) if isinstance(p, Page) and len(p))


def drawn(seed: int) -> tuple[list[Row], int]:
    chance = Random(seed)
    rows = [(le := chance.randint(0, 12), le + chance.choice((1, 2, 5, 9)), v) for v in range(4)]
    return rows, chance.randint(4, 14)


@pytest.mark.thin(3)
@pytest.mark.parametrize("frame", FRAMES, ids=str)
@pytest.mark.parametrize("clip", ["counted", "none", "right"])
def test_the_output_cti_is_the_largest_that_no_future_contradicts(frame: Any, clip: Any) -> None:
    source = Input(label="a", payload=SCHEMA)
    outputs: Any = (("x", cz.count() if clip == "counted" else marked("v")),)
    how = "none" if clip == "counted" else clip
    node = Windows(inputs=(source,), frame=frame, outputs=outputs, clip=how)
    for seed in range(examples(3, short=1)):
        rows, c = drawn(seed)
        items: list[Item] = [page(*row) for row in rows]
        items.append(cti(c))
        _, told = run(node, items)
        assert told.cti == earliest_change(node, items, rows, c, told.cti), (rows, c)


@udo(time_bound=True)
def stamped(events: list[Event[int]], window: Window) -> list[Event[int]]:
    """One row as long as the window, which depends on everything that may be seen."""
    return [Event(window.start, window.end, marked.target(events, window))]


def allowed() -> list[Any]:
    """Every frame with every other stamp and clipping, as far as plans are not refused."""
    found = []
    source = Input(label="a", payload=SCHEMA)
    for frame in FRAMES:
        for stamp in ("point_at_end", "time_bound", "clipped", "unchanged"):
            for clip in ("counted", "none", "right"):
                what: Any = (
                    {"outputs": (("x", cz.count()),)} if clip == "counted" else {"apply": stamped("v")}
                )
                how: Any = "none" if clip == "counted" else clip
                try:
                    node = Windows(inputs=(source,), frame=frame, stamp=stamp, clip=how, **what)  # type: ignore[arg-type]
                except PlanError:
                    continue
                found.append(pytest.param(node, id=f"{frame.kind}-{stamp}-{clip}"))
    return found


@pytest.mark.thin(3)
@pytest.mark.parametrize("node", allowed())
def test_no_stamp_promises_more_than_it_can_or_less_than_it_could(node: Windows) -> None:
    for seed in (7,):
        rows, c = drawn(seed)
        items: list[Item] = [page(*row) for row in rows]
        items.append(cti(c))
        _, told = run(node, items)
        assert told.cti == earliest_change(node, items, rows, c, told.cti), (rows, c)


def test_a_window_without_right_clipping_waits_for_its_members_to_end() -> None:
    source = Input(label="a", payload=SCHEMA)
    items: list[Item] = [page(2, 30, 1), cti(20)]
    for clip, wanted in (("none", 0), ("right", 20)):
        node = Windows(inputs=(source,), frame=Grid(10, 10), outputs=(("x", marked("v")),), clip=clip)  # type: ignore[arg-type]
        query, told = run(node, items)
        assert told.cti == wanted
        held = query.counters()["tumbling"].held_by
        assert held == ("" if wanted == 20 else "the window from 0 on is open")


def test_state_is_gone_when_nothing_can_change_any_more() -> None:
    source = Input(label="a", payload=SCHEMA)
    for frame in FRAMES:
        node = Windows(inputs=(source,), frame=frame, outputs=(("x", cz.count()),))
        items: list[Item] = [page(t, t + 2, t) for t in range(40)]
        query, _ = run(node, [*items, cti(100)])
        assert query.state_rows <= 2, frame
