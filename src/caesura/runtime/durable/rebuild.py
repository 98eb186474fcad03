"""As if the new plan had always been there: the sources once more up to the same prefix, then corrections.

The query reads, from their beginning, exactly the rows that the old one had read. What comes out is the
history of the new plan on that prefix; the sink holds the old one; their difference is the next epoch. So
afterwards the sink's history is that of the new plan on all input. Rows that were final are not corrected:
`corrections` lists them, keeps them, or has the whole output begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.fixpoint.node import Fixpoint
from caesura.io.sinks.protocol import Sink, TableSink
from caesura.io.sources.passed import names_only
from caesura.io.sources.source import Source
from caesura.plan import NOTHING_NOW, Node, SourceBatch, walk
from caesura.punctuation import Punctuation
from caesura.runtime.durable.corrections import FinalRows, correction, form_of, settle
from caesura.runtime.durable.entered import EnteredLog, Position
from caesura.runtime.feedback.consumer import fits
from caesura.runtime.graph.source_reader import CLOCK, SourceReader, check_passed, lanes_of

if TYPE_CHECKING:
    from caesura.runtime.query.assembly import Assembly

CONSUMER = "standing_feedback"
"""The chunk that holds what a consumer has said."""
NOWHERE: Position = {}
NEW = "Start with a new checkpoint and a new sink."


def columns_of(outputs: Mapping[str, Node]) -> dict[str, str]:
    """The columns of outputs, in words."""
    return {name: ", ".join(f"{f.name} {f.type}" for f in node.schema) for name, node in outputs.items()}


def refuse_assembled(
    parts: Assembly,
    sink: Sink,
    before: GivenOutput,
    positions: Position,
    final_rows: FinalRows,
    entered: EnteredLog,
) -> None:
    """Refuses a plan in this process whose past cannot be made again, or whose output cannot be corrected."""
    refuse_rebuilding(parts.outputs, sink, before, final_rows, unrepeatable_parts(parts, positions, entered))


def unrepeatable_parts(
    parts: Assembly, positions: Position = NOWHERE, entered: EnteredLog | None = None
) -> str:
    """Why what a query in this process has read cannot be read once more; empty where it can."""
    why = cut_loop(parts.outputs)
    if parts.inputs:
        why = f"'{next(iter(parts.inputs))}' is fed by hand"
    for label, reader in parts.readers.items():
        if isinstance(reader.node, Source):
            position = positions.get(label, {})
            with_clock = CLOCK in position or not any(lanes_of(position).values())
            kept = entered is not None and entered.whole and with_clock
            why = why or unrepeatable(reader.node, clock=kept)
    if entered is not None:
        why = why or _unheard(parts, entered)
    return why


def _unheard(parts: Assembly, entered: EnteredLog) -> str:
    """Why feedback that was given cannot be given again; empty where it can."""
    if not entered.whole:
        return "what its consumer has said, or its clock has read, was not kept from the beginning"
    for entry in entered.entries:
        if "message" in entry:
            output, pattern = entry["output"], Punctuation.from_json(entry["message"]).pattern
            if output not in parts.outputs or not fits(pattern, parts.outputs[output].schema):
                return f"feedback was given on '{output}' that speaks of {pattern}, which it has not any more"
    return ""


def cut_loop(outputs: Mapping[str, Node]) -> str:
    """Why a loop of a plan would give other rows another time; empty where each has one answer at rest."""
    for node in walk(*outputs.values()):
        if isinstance(node, Fixpoint) and node.max_rounds is not None:
            deep = "how deep a row lies depends on which rows came together"
            return f"'{node.step}' is cut after {node.max_rounds} rounds, and {deep}"
    return ""


def refuse_rebuilding(
    outputs: Mapping[str, Node], sink: Sink, before: GivenOutput, final_rows: FinalRows, why: str
) -> None:
    """Refuses outputs that cannot be corrected, and whatever else there is to say against it."""
    if not isinstance(sink, TableSink):
        why = why or "its sink does not give back what it was given"
    refuse_unrepeatable(why)
    refuse_columns("" if final_rows == "new_generation" else before.other_columns(outputs, sink))


def refuse_unrepeatable(why: str) -> None:
    """Refuses a past that cannot be made again."""
    if why:
        raise StreamError(f"what the query has given cannot be rebuilt: {why}.", remedy=NEW)


def refuse_columns(why: str) -> None:
    """Refuses rows with other columns among those that there are."""
    if why:
        raise StreamError(
            f"what the query has given cannot be corrected: {why}.",
            remedy="Take on_change='rebuild' with final_rows='new_generation', which begins the output anew "
            "beside the old.",
        )


def unrepeatable(source: Source, *, clock: bool = False) -> str:
    """Why the rows of a source cannot be read once more; empty where they can.

    ``clock``: readings of the clock that it goes by are kept.
    """
    if not clock and (source.stamped or source.heartbeat is not None):
        return f"'{source.step}' goes by a clock, whose readings are not kept"
    reason = source.reader.cannot_replay()
    return f"of '{source.step}', {reason}" if reason else ""


class ReadAgain:
    """Lets a source give, from where its reader stands, what was read up to a position, and then nothing.

    ``over``: it was at its end there, and is again.
    """

    def __init__(self, reader: SourceReader, position: Mapping[str, int], *, over: bool = False) -> None:
        self.reader, self._position = reader, position
        self._start = dict(reader.offsets)
        self._ends = {lane: at for lane, at in lanes_of(position).items() if at}
        self._now: dict[int, int] | None = None
        """Up to where it may read now; None for all of it."""
        self._over = over
        reader.clock_stands = True
        reader.replay(self._up_to())

    def read_to(self, lanes: Mapping[str, int] | None) -> None:
        """Lets it read up to some offsets of its lanes; None for all that was read."""
        self._now = None if lanes is None else {int(lane): at for lane, at in lanes.items() if at}

    def _up_to(self) -> Iterator[SourceBatch]:
        source, done = self.reader.node, dict(self._start)
        while True:
            ends = self._ends if self._now is None else self._now
            if isinstance(source, Source) and any(done.get(lane, 0) < at for lane, at in ends.items()):
                yield from source.read_between(done, ends)
                done = {**done, **ends}
            elif self._over and self._now is None:
                return
            else:
                yield NOTHING_NOW

    @property
    def rows(self) -> int:
        """How many rows are read again."""
        return sum(at - self._start.get(lane, 0) for lane, at in self._ends.items())

    def check(self) -> None:
        """Refuses where it did not give all of that."""
        for lane, end in self._ends.items():
            if (got := self.reader.offsets.get(lane, 0)) != end:
                raise StreamError(
                    f"'{self.reader.node.step}' was read up to row {end}, and has {got} rows now: no prefix "
                    f"beyond row {got} can be read again.",
                    remedy="Put back what was read; or start with a new checkpoint and a new sink.",
                )
        if isinstance(self.reader.node, Source):
            check_passed(self.reader.node, names_only(self._position))
        self.reader.clock_stands = False


def corrected(
    read_back: Callable[[str], pa.Table],
    outputs: Mapping[str, Node],
    items: Mapping[str, Sequence[Item]],
    before: GivenOutput,
    final_rows: FinalRows,
) -> dict[str, list[Page]] | None:
    """What makes the new history of each output of the old one, which is read back.

    None where that is not to be: the whole output goes to a new generation.
    """
    if before.other_columns(outputs):
        return None
    made = {
        name: correction(
            read_back(name), before.forms.get(name, form_of(node)), name, node, items.get(name, ()),
            keep=final_rows == "keep",
        )
        for name, node in outputs.items()
    }  # fmt: skip
    finals = any(made[name].differing and before.forms.get(name) == "final" for name in made)
    if settle(made, final_rows, only_final=finals):
        return None
    return {name: one.pages for name, one in made.items()}


@dataclass(frozen=True)
class GivenOutput:
    """What a plan has given so far: the columns of outputs, what rows say of being final, and where it is."""

    columns: Mapping[str, str]
    forms: Mapping[str, str]
    generation: int = 1

    def other_columns(self, outputs: Mapping[str, Node], sink: Sink | None = None) -> str:
        """The first output with other columns now, in words; empty where none has, or the sink minds not."""
        if sink is not None and not isinstance(sink, TableSink):
            return ""
        for name, now in columns_of(outputs).items():
            if self.columns.get(name, now) != now:
                return f"its rows had the columns ({self.columns[name]}), and would have ({now})"
        return ""


@dataclass(frozen=True)
class Rebuilt:
    """A rebuild whose corrections have not been given yet: what there was, and the number of the new plan."""

    before: GivenOutput
    plan: int
    final_rows: FinalRows
