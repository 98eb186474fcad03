"""Sinks that hold a table with a key: an epoch's net change in one transaction, with the epoch's number.

The plan names the key, see `Stream.upserts`. A row that would be a second one of its key stops the query
before the commit.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import StreamError
from caesura.io.sinks.current import NetChange, TableLayout, for_current_tables, layout_of, names_key
from caesura.io.sinks.protocol import EpochSink, Form, Sink
from caesura.plan import Node

if TYPE_CHECKING:
    from caesura.runtime.buckets.aligner import Epoch

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def outputs_for(sink: Sink | None, outputs: Mapping[str, Node]) -> dict[str, Node]:
    """The same outputs, without rows that a sink would not look at."""
    return for_current_tables(outputs) if isinstance(sink, KeyedSink) else dict(outputs)


def netted_outputs(sink: Sink, outputs: Mapping[str, Node]) -> dict[str, TableLayout]:
    """The outputs of which a sink takes an epoch's net change alone."""
    if not isinstance(sink, KeyedSink):
        return {}
    return {name: layout_of(node) for name, node in outputs.items() if names_key(node)}


class KeyedSink(EpochSink):
    """Tables with keys, one for each output."""

    takes: tuple[Form, ...] = ("changes", "final")  # type: ignore[misc]

    def __init__(self, table: str) -> None:
        self.table = table
        self.layouts: dict[str, TableLayout] = {}
        """By table."""
        self._names: dict[str, str] = {}
        """Tables by output."""
        self.query = ""
        self.fence = 0
        """The number of this start; a later one has a greater."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the tables are, in words that hold no secret."""

    def open(self, outputs: Mapping[str, Node]) -> None:
        """Learns the tables' keys; a plan of several outputs gives each a table of its name."""
        one = len(outputs) == 1
        self._names = {name: self.table if one else f"{self.table}_{name}" for name in outputs}
        self.layouts = {self._names[name]: layout_of(node) for name, node in outputs.items()}

    def attach(self, query: str) -> None:
        """Takes the tables over from an earlier start of this query; refuses another's."""
        self.query = query or "batch"
        self.fence = self.take_over()

    @abstractmethod
    def take_over(self) -> int:
        """Makes what is not there yet, and gives this start's fencing number."""

    def take(self, epoch: Epoch) -> None:
        changes = {table: epoch.change(name) for name, table in self._names.items()}
        self.merge(epoch, changes)

    @abstractmethod
    def merge(self, epoch: Epoch, changes: Mapping[str, NetChange]) -> None:
        """Changes the tables and notes the epoch, both or neither."""

    @abstractmethod
    def held(self, output: str = "out") -> pa.Table:
        """The table of an output as it is."""

    def failed(self, error: BaseException) -> StreamError:
        """What a database says, in one line."""
        problem = " ".join(COLOURS.sub("", str(error)).split()).rstrip(".!?: ")
        return StreamError(
            f"{self.place} could not be written: {problem}.",
            remedy="See that it is up and lets this user write, that nobody else holds it, that it has room, "
            "and that a table's columns are those of the stream. Nothing of the epoch is in it: start again.",
        )

    def foreign(self, table: str) -> StreamError:
        """Refuses a table that another query writes."""
        return StreamError(
            f"the table '{table}' in {self.place} was written from another checkpoint, and this query would "
            "mix its rows with those.",
            remedy="Go on with that checkpoint, or write into a new table.",
        )

    def fenced(self, later: int) -> StreamError:
        """Refuses a commit of a start that a later one has taken over from."""
        return StreamError(
            f"another start of this query writes to {self.place}: its number is {later}, and this one's "
            f"{self.fence}.",
            remedy="Let the later one run, or stop it and start this one again.",
        )
