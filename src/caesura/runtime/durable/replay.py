"""A query that reads once more what was read before it, up to the same place: rows, feedback and the clock.

Rows are read from where the query stands, so what it has read already is not read again. What entered
besides rows comes in where it came first.

    in      row 0 ... row 24 | feedback | row 24 ... row 36 | a reading of the clock | row 36
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caesura.events.chunks import SavedJson
from caesura.punctuation import Punctuation
from caesura.runtime.durable.entered import EnteredLog, Position
from caesura.runtime.durable.rebuild import CONSUMER, ReadAgain
from caesura.runtime.graph.source_reader import CLOCK
from caesura.runtime.metrics.waiting_line import reading_line
from caesura.runtime.query.query import Query


class Replay:
    """Lets a query read again up to where its sources were read, and then nothing."""

    def __init__(self, query: Query, positions: Position, entered: EnteredLog, *, seen: int = 0) -> None:
        self.query, self._entered = query, entered
        self.seen = seen
        """So many entries of the log have come in."""
        self.again = {
            label: ReadAgain(reader, positions.get(label, {}))
            for label, reader in query.parts.readers.items()
        }

    def run(self, what: str, until: int | None = None) -> None:
        """Reads, and lets in what entered besides, up to an entry of the log; a terminal sees how far."""
        with reading_line(self.query, what, self.rows):
            self._let_in(self._entered.entries[self.seen : until])
            self.query.runner.rest()

    @property
    def rows(self) -> int:
        """How many rows it has to read."""
        return sum(some.rows for some in self.again.values())

    def end(self) -> None:
        """Refuses where the sources did not give all that was read, and reads on from there."""
        for some in self.again.values():
            some.check()
        self.query.runner.close()

    def _let_in(self, entries: list[dict[str, Any]]) -> None:
        runner = self.query.runner
        for some in self.again.values():
            some.read_to({})
        for entry in entries:
            for label, at in entry["at"].items():
                if label in self.again:
                    self.again[label].read_to(at)
            runner.replay()
            self._enter(entry)
            self.seen += 1
        for some in self.again.values():
            some.read_to(None)
        runner.replay()

    def _enter(self, entry: Mapping[str, Any]) -> None:
        if "message" in entry:
            self.query.settle(for_good=True)
            self.query.ports.send(entry["output"], Punctuation.from_json(entry["message"]))
            self.query.runner.deliver()
            return
        for label in entry["at"]:
            reader = self.again[label].reader if label in self.again else None
            if reader is not None and reader.node.heartbeat is not None:
                reader.cell.send(reader.clock_reads(entry["clock"]))


def saved_positions(chunks: Mapping[str, bytes]) -> Position:
    """Where the sources stood when state was saved."""
    return SavedJson("offsets").read(chunks) or {}


def entered_log(chunks: Mapping[str, bytes]) -> EnteredLog:
    """What had entered besides rows when state was saved."""
    clocks = any(CLOCK in position for position in saved_positions(chunks).values())
    log = EnteredLog()
    log.restore(chunks, spoken=CONSUMER in chunks or clocks)
    return log
