"""Spark's part of a checkpoint, its logs and its state: there, or in a folder of a plan that was rebuilt."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from caesura.io.places import Place
from caesura.io.sinks.protocol import Sink, TableSink
from caesura.runtime.durable.rebuild import GivenOutput, Rebuilt
from caesura.spark.host.checkpoint import (
    BEFORE,
    FINAL_ROWS,
    FIRST,
    FOLDER,
    GENERATION,
    REPLAYED,
    VERSION,
    SavedPlan,
    read_plan,
    write_plan,
)
from caesura.spark.host.clock_source import CLOCK
from caesura.spark.host.source_log import last_offsets
from caesura.spark.loop_log.log import REBUILT

if TYPE_CHECKING:
    from caesura.spark.host.entered_epochs import Message, ReplayStep

HISTORY = "history"
"""Where the rows of a rebuild lie until the sink has the difference."""
SPARKS = ("offsets", "commits", "sources", "state", "loop", "entered", "chunks", "recorded")
"""What Spark, a loop log, large state and what entered take in a checkpoint."""


@dataclass(frozen=True)
class SparkPart:
    """Where Spark's part lies, and how its epochs count."""

    checkpoint: Place
    folder: Place
    first: int = 0
    """The epoch of the sink that Spark's epoch 0 is."""
    becomes: SavedPlan | None = None
    """What the checkpoint says once an epoch counts that corrects what the sink holds; None behind that."""
    replayed: int = 0
    """The number that Spark has for that epoch: so many come before it, which the sink never sees."""
    replay: tuple[ReplayStep, ...] = ()
    """Those that have not run yet, of a rebuild that has begun."""
    like: tuple[Place, int] | None = None
    """The folder of the old plan, and the last of its epochs that is read again."""
    unheard: tuple[Message, ...] = ()
    """Feedback that the old plan has not taken any more."""

    @staticmethod
    def of(checkpoint: Place) -> SparkPart:
        """The part that counts."""
        saved = read_plan(checkpoint)
        if saved is None or not saved.get(FOLDER):
            return SparkPart(checkpoint, checkpoint)
        folder, number = checkpoint / saved[FOLDER], saved.get(REPLAYED, 0)
        nothing = not (folder / "offsets" / str(number)).is_file()
        done = (folder / "commits" / str(number)).is_file() or nothing or last_offsets(folder) > number
        return SparkPart(checkpoint, folder, saved[FIRST], None if done else saved, number)

    @property
    def rebuilt(self) -> Rebuilt | None:
        """What the epoch behind a replay has to correct, if it has."""
        if self.becomes is None:
            return None
        before = GivenOutput(**self.becomes[BEFORE])
        return Rebuilt(before, self.becomes[VERSION], self.becomes[FINAL_ROWS])

    def replayed_in(self, number: int) -> SparkPart:
        """The same, once all that was read before was read in so many epochs."""
        assert self.becomes is not None
        first = self.first - number
        becomes = {**self.becomes, FIRST: first, REPLAYED: number}
        return replace(self, first=first, becomes=becomes, replayed=number, replay=(), unheard=())

    def switch(self, generation: int) -> None:
        """Lets the checkpoint belong to the new plan, and its output to a generation."""
        assert self.becomes is not None
        write_plan(self.checkpoint, {**self.becomes, GENERATION: generation})

    def enter(self, sink: Sink) -> None:
        """Says to a sink which generation of its output comes, and which plan makes it."""
        saved = read_plan(self.checkpoint) or {}
        if isinstance(sink, TableSink):
            sink.enter(saved.get(GENERATION, 1), saved.get(VERSION, 1))

    @property
    def last(self) -> int:
        """The last epoch of the sink that there can be; -1 for none."""
        return self.first + last_offsets(self.folder)

    def sweep(self) -> None:
        """Removes what earlier plans have left, and what a rebuild has left that was cut off."""
        if self.becomes is not None:
            return
        remove_folder(self.folder / HISTORY)
        for entry in self.checkpoint.entries():
            other = entry.name.startswith("plan-") and entry.name != self.folder.name
            if other or (self.folder != self.checkpoint and entry.name in SPARKS):
                remove_folder(self.checkpoint / entry.name)


def folder_of(version: int) -> str:
    """Where Spark's part of a rebuilt plan lies in its checkpoint."""
    return f"{REBUILT}{version}"


def of_ours(entry: str) -> bool:
    """Whether an entry of the offset log is that of the clock or of the loop log."""
    offset = None if entry == "-" else json.loads(entry)
    return isinstance(offset, dict) and (set(offset) == {CLOCK} or {"epoch", "feedback"} <= set(offset))


def remove_folder(folder: Place) -> None:
    """Takes away a folder with all that is in it."""
    if folder.local is not None:
        shutil.rmtree(folder.local, ignore_errors=True)
        return
    for file in folder.files_below():
        file.remove()
