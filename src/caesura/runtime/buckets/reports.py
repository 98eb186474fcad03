"""Rows with reasons that a bucket of a stage hands out: what steps note of them, and what was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from caesura.plan.cut import EVERYWHERE
from caesura.runtime.buckets.stage0 import late_packet, note_packet
from caesura.runtime.graph.rejected import STOPPED, noted_by, rejected_by, untold
from caesura.runtime.packets.packet import Packet

if TYPE_CHECKING:
    from caesura.runtime.buckets.fragment import Fragment


def rows_with_reasons(fragment: Fragment) -> Iterator[Packet]:
    """Rows with reasons since the last call, on their way to the late table."""
    origin = fragment.origin
    fragment.query.settle()
    but = untold(fragment.stages, fragment.stage.number, fragment.bucket)
    for step, table in noted_by(fragment.query.graph.cells, but=but).items():
        yield note_packet(table, step, origin)
    arrivals = {arrival.label: arrival for arrival in fragment.stage.arrivals}
    for node, table in rejected_by(fragment.query.graph.cells):
        arrival = arrivals.get(node.fed)
        if arrival is None:
            yield note_packet(table, node.step + STOPPED, origin)
        elif arrival.keys != EVERYWHERE or fragment.bucket == 0:
            source = fragment.arrivals.sources.get(arrival.label)
            if source is None:
                yield note_packet(table, arrival.entry.step + STOPPED, origin)
            else:
                yield late_packet(table, source, arrival.producer, origin, STOPPED)
    for departure, table in fragment.feedback.filters.rejected_rows():
        yield note_packet(table, departure.producer.step + STOPPED, origin)
