"""The log of what entered a query besides rows is saved in segments, of which only the last is looked at."""

from __future__ import annotations

from caesura.runtime.durable.entered import SEGMENT, EnteredLog


def test_segments_that_are_full_are_saved_once_and_all_come_back() -> None:
    log, saved, written = EnteredLog(), dict[str, bytes](), list[int]()
    for row in range(2 * SEGMENT + 3):
        log.clock({"in": {"0": row}}, 1000 + row)
        if row % SEGMENT in (0, 1, SEGMENT - 1):
            log.clock({"in": {"0": row}}, 2000 + row)  # nothing was read meanwhile: it replaces the last
            chunks = {name: data for name, data in log.snapshot().items() if data is not None}
            written.append(len(chunks))
            saved |= chunks
    saved |= {name: data for name, data in log.snapshot().items() if data is not None}
    assert max(written) <= 2
    assert log.snapshot() == {}
    again = EnteredLog()
    again.restore(saved, spoken=True)
    assert again.entries == log.entries
    log.carry({"in": "other"})
    renamed = {name: data for name, data in log.snapshot().items() if data is not None}
    assert len(renamed) == 3
    again.restore(renamed, spoken=True)
    assert again.entries[0]["at"] == {"other": {"0": 0}}


def test_a_reading_behind_which_nothing_was_read_is_not_settled() -> None:
    log = EnteredLog()
    assert log.settled({}) == 0
    log.clock({"in": {"0": 4}}, 1000)
    assert log.settled({"in": {"0": 4, "clock": 1000}}) == 0
    assert log.settled({"in": {"0": 4, "1": 2, "clock": 1000}}) == 1
    assert log.settled({"in": {"0": 5, "clock": 1000}}) == 1
