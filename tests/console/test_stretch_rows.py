"""Rows between the steps of a query that runs elsewhere."""

from __future__ import annotations

import pyarrow as pa

import caesura as cz
from caesura.console.web.stretch_rows import NOTE, SHARE, StretchRows
from caesura.events.page import Page
from caesura.plan.prune import prune
from caesura.runtime.query.recording import Recording


def test_every_step_shows_what_left_it_over_the_stretch() -> None:
    rows = [{"ts": n, "id": n, "other": "x"} for n in range(9)]
    nodes = prune({"out": cz.from_rows(rows, time="ts").where("id > 6").node})
    shown = StretchRows(nodes, lambda output: cz.Stream(nodes[output]).replay(), now=iter(range(9)).__next__)
    counts = [sum(len(item) for item in shown.rows(n).items if isinstance(item, Page)) for n in (0, 1)]
    assert counts == [9, 2] and shown.rows(0).note == NOTE


def test_reading_again_takes_a_tenth_of_the_time_that_somebody_looks() -> None:
    clock, reads = [0.0], []
    node = cz.from_rows([{"ts": 1}], time="ts").node

    def slow(output: str) -> Recording:
        reads.append(clock[0])
        clock[0] += 2.0
        return cz.Stream(node).replay()

    shown = StretchRows({"out": node}, slow, now=lambda: clock[0])
    for _ in range(45):
        shown.rows(0)
        clock[0] += 1.0
    assert reads == [0.0, 2.0 + 2 * SHARE + 1.0 - 1.0, 44.0]


def test_what_cannot_be_read_again_is_told() -> None:
    node = cz.input_stream("clicks", pa.schema([("id", pa.int64())])).node
    shown = StretchRows({"out": node}, lambda output: cz.Stream(node).replay())
    assert "cannot be read again" in shown.rows(0).note and shown.rows(0).items == ()
