"""Rows between the steps of a query that runs elsewhere: its last input, run through the plan here.

Nothing is asked of the query, and nothing happens while nobody looks. Reading again takes at most a tenth of
the time that somebody looks for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from caesura.console.web.embedded import LastRows
from caesura.console.web.watched import SeenRows
from caesura.errors import CaesuraError
from caesura.plan import Node, walk
from caesura.plan.labelled import labelled
from caesura.runtime.query.query import Query
from caesura.runtime.query.recording import Recording
from caesura.runtime.query.result import query_of

NOTE = "The last rows that were read, read again and run through the plan here, from an empty state."
SHARE = 10
"""So many times as long as it took to read again, what was read is shown."""


@dataclass
class StretchRows:
    """The last rows that left each step, for pages that ask at any time."""

    outputs: Mapping[str, Node]
    """The plan that the pages show."""
    stretch: Callable[[str], Recording]
    """Reads a short stretch again, for the plan of an output."""
    now: Callable[[], float] = time.monotonic
    _seen: dict[str, SeenRows] = field(default_factory=dict)
    """By fingerprint."""
    _until: float = float("-inf")
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, number: int) -> SeenRows:
        """The last rows that left a step."""
        node = list(walk(*self.outputs.values()))[number]
        with self._alone:
            if self.now() >= self._until:
                began = self.now()
                note = self._read()
                self._until = self.now() + SHARE * (self.now() - began)
                if note:
                    return SeenRows((), node.schema, node.time, note)
        return self._seen.get(node.fingerprint, SeenRows((), node.schema, node.time, NOTE))

    def _read(self) -> str:
        """Reads again; why that cannot be, in words."""
        for output, node in self.outputs.items():
            try:
                self._run(self.stretch(output), node)
            except CaesuraError as error:
                return str(error)
        return ""

    def _run(self, recording: Recording, node: Node) -> None:
        marks = {label: own.fingerprint for label, own in labelled({"out": node}).items()}
        query: Query = query_of(recording.plan(), "changes", None, None)
        taps = {cell.label: (cell.node, LastRows()) for cell in query.graph.cells}
        for cell in query.graph.cells:
            cell.taps.append(taps[cell.label][1])
        query.run()
        for label, item in recording.fed:
            query.feed(label, item)
            query.run()
        for label, (own, tap) in taps.items():
            if label in marks:
                self._seen[marks[label]] = SeenRows(tuple(tap.items), own.schema, own.time, NOTE)
