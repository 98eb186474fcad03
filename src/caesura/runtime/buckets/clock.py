"""Clock readings as packets, for the gates of those sources whose policies ask for them.

A reading is input like any other: a host takes it once, as part of what an epoch reads, so that an epoch that
runs again sees the same time. What an epoch brings was there when its clock was read: its rows come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from caesura.plan.cut import Stages
from caesura.plan.source import SourceNode
from caesura.runtime.buckets.labels import CLOCK, CLOCK_READING
from caesura.runtime.buckets.stage0 import root_of
from caesura.runtime.packets.packet import Packet

STAMPS = "stamps"


def period(stages: Stages) -> int | None:
    """How often the clock must be read, in microseconds; None where no policy asks for it."""
    asked = [source.heartbeat for source in stages.sources if source.heartbeat is not None]
    return min(asked, default=None)


def listening(stages: Stages) -> list[int]:
    """The stages in which a source enters that asks for the clock."""
    found = []
    for stage in stages.stages[1:]:
        roots = [root_of(a.producer, stages) for a in stage.arrivals if a.source_stage == 0]
        if any(isinstance(root, SourceNode) and root.heartbeat is not None for root in roots):
            found.append(stage.number)
    return found


def clock_readings(stages: list[int], buckets: int, clock: int, *, stamps: bool = False) -> list[Packet]:
    """A reading of the clock, for every bucket of these stages.

    In a batch it only ``stamps`` rows: there the clock promises nothing.
    """
    header = {CLOCK: clock} | ({STAMPS: True} if stamps else {})
    return [Packet(n, CLOCK_READING, b, CLOCK, 0, header) for n in stages for b in range(buckets)]


def only_stamps(packets: Sequence[Packet]) -> bool:
    """Whether a reading counts for the sources alone whose rows it times."""
    return any(p.label == CLOCK_READING and STAMPS in p.header for p in packets)


def reading(packets: Sequence[Packet]) -> int | None:
    """The latest reading among packets; None where there is none."""
    return max((p.header[CLOCK] for p in packets if p.label == CLOCK_READING), default=None)
