"""What a new plan has read beside the query that still runs, saved in a folder of its own in the checkpoint.

    <checkpoint>/prepared/prepared.json           which plan it is, how far it has read, and which files count
    <checkpoint>/prepared/state/00000002-1.chunks     what its steps hold
    <checkpoint>/prepared/history/00000002-1.packets  what it has given

The old query and its files are only looked at. One put makes the next of these count, so whatever is killed,
the old query goes on as it was, and preparing goes on from the last put. A rebuild with the same plan begins
from here; with another it begins from the sources' beginning. Then the folder is gone.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from typing import Any

import pyarrow as pa

from caesura.errors import CaesuraError, StreamError
from caesura.events import Item, Page
from caesura.events.chunks import later
from caesura.events.delta import deltas, net_page
from caesura.events.page import concat, take_rows
from caesura.io.places import Place
from caesura.io.places.json_files import parsed
from caesura.io.places.lease import NAME as LEASE
from caesura.io.places.lease import Lease
from caesura.io.sinks.protocol import Part
from caesura.plan import Speculate
from caesura.punctuation import MIN_TIME
from caesura.runtime.buckets.labels import OUT
from caesura.runtime.durable.change import SavedStep
from caesura.runtime.durable.corrections import promised
from caesura.runtime.durable.entered import Position
from caesura.runtime.durable.manifest import SavedEpoch
from caesura.runtime.durable.replay import saved_positions
from caesura.runtime.graph.source_reader import lanes_of
from caesura.runtime.packets.packet import Packet, rows_bytes, rows_packets
from caesura.runtime.query.pipelines import StateLog
from caesura.runtime.query.query import Query

FOLDER, FILE = "prepared", "prepared.json"
PREPARED_FORMAT = 1
WANTS = ("query", "version", "plan", "number", "state", "history", "seen", "format")
READERS = "readers"
"""The chunk that says which outputs were read, by what differs from process to process."""
log = logging.getLogger("caesura.epochs")


@dataclass(frozen=True)
class PreparedPlan:
    """How far a plan has read, and the files that hold what came of it."""

    query: str
    """The id of the query that runs."""
    version: int
    """How many plans that query had had by then: where it has had another since, this is of no use."""
    plan: Mapping[str, Any]
    """The new plan: what each step does."""
    number: int = 0
    state: tuple[str, ...] = ()
    history: tuple[Part, ...] = ()
    seen: int = 0
    """How many entries of the log of feedback and clock readings have come in."""
    claim: Mapping[str, Any] | None = None
    """Of a pipeline with claims, what it would have claimed there."""
    format: int = field(default=PREPARED_FORMAT)

    @staticmethod
    def begun(saved: SavedEpoch, steps: Mapping[str, SavedStep], speculate: Speculate) -> PreparedPlan:
        """Of a plan that has read nothing yet."""
        plan = {"speculate": speculate, "steps": {label: asdict(step) for label, step in steps.items()}}
        return PreparedPlan(saved.query, saved.version, plan)

    def begins_like(self, other: PreparedPlan) -> bool:
        """Whether both are the same plan behind the same query."""
        return (self.query, self.version, self.plan) == (other.query, other.version, other.plan)


class PreparedFolder:
    """The folder of what was prepared, of one checkpoint; or of the views of a pipeline."""

    def __init__(self, checkpoint: Place, name: str = FOLDER) -> None:
        self.place = checkpoint / name
        self._file = self.place / FILE

    def read(self) -> PreparedPlan | None:
        """What counts; one that is damaged, or of a later version, is named."""
        try:
            text = self._file.read_bytes().decode(errors="replace")
        except FileNotFoundError:
            return None
        told = parsed(text, self._file, self._remedy, wants=WANTS)
        if told["format"] != PREPARED_FORMAT:
            raise later(f"what was prepared in '{self.place}'", told["format"], PREPARED_FORMAT)
        history = tuple(Part(**part) for part in told["history"])
        return PreparedPlan(**{**told, "state": tuple(told["state"]), "history": history})

    def found(
        self, begun: PreparedPlan, positions: Position, labels: Mapping[str, str], *, tag: str = ""
    ) -> Prepared:
        """What was prepared of a plan, to go on from; if nothing is of use, which is said, the plan begun."""
        there, state = self.read(), StateLog(self.place / "state", labels, tag=tag)
        if there is None or not there.begins_like(begun):
            return self._from_the_beginning(begun, state, "" if there is None else "it is of another plan")
        try:
            state.load(there.state)
        except CaesuraError as error:
            raise self._damaged(error.problem) from None
        for label, position in saved_positions(state.whole).items():
            ends = lanes_of(positions.get(label, {}))
            if any(at > ends.get(lane, 0) for lane, at in lanes_of(position).items()):
                why = f"it has read more of '{label}' than the query"
                return self._from_the_beginning(begun, StateLog(state.folder, labels, tag=tag), why)
        state.whole.pop(READERS, None)
        return Prepared(there, state)

    def history(self, plan: PreparedPlan) -> dict[str, list[Item]]:
        """What the outputs of a plan have given."""
        items: dict[str, list[Item]] = {}
        for part in plan.history:
            items.setdefault(part.output, []).extend(self._items(part))
        return items

    def save(self, made: PreparedPlan, items: Mapping[str, Sequence[Item]]) -> PreparedPlan:
        """Writes what outputs have given since, and then what makes that count, with the state."""
        parts = []
        for output, some in items.items():
            if not some:
                continue
            file = f"{made.number:08d}-{uuid.uuid4().hex}.packets"
            data = rows_bytes(Packet(0, OUT + output, 0, "0", 0, {}, tuple(some)).split())
            (self.place / "history" / file).put(data)
            rows = sum(len(item) for item in some if isinstance(item, Page))
            parts.append(Part(output, file, rows, len(data), hashlib.sha256(data).hexdigest()))
        made = replace(made, history=(*made.history, *parts))
        self._file.put(json.dumps(asdict(made), indent=1).encode())
        return made

    def sweep(self, counts: PreparedPlan) -> None:
        """Removes what was written and does not count."""
        named = {*counts.state, *(part.file for part in counts.history)}
        for file in (self.place / "state").files() + (self.place / "history").files():
            if file.name not in named:
                file.remove()

    def clear(self) -> None:
        """Removes all of it; first what makes it count."""
        self._file.remove()
        if self.place.local is not None:
            shutil.rmtree(self.place.local, ignore_errors=True)
        for file in self.place.files_below():
            file.remove()

    def forget(self, saved: SavedEpoch) -> None:
        """Removes what belongs to a switch that has been made, and was cut off before it could do so."""
        try:
            found = self.read()
        except CaesuraError:  # whoever wants to use it is told
            return
        if found is not None and (found.query, found.version) != (saved.query, saved.version):
            self.clear()

    @contextmanager
    def taken(self, *, take_over: bool) -> Iterator[Lease | None]:
        """Within, nobody prepares here; None where nobody has."""
        if not self._file.exists() and not (self.place / LEASE).exists():
            yield None
            return
        with Lease.take(self.place, take_over=take_over) as lease:
            yield lease

    def _items(self, part: Part) -> list[Item]:
        file = self.place / "history" / part.file
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            raise self._damaged(f"'{file}' is gone.") from None
        if len(data) != part.size or hashlib.sha256(data).hexdigest() != part.sha256:
            raise self._damaged(f"'{file}' is not what was written.")
        return [item for packet in rows_packets(data) for item in packet.items]

    def _damaged(self, what: str) -> StreamError:
        return StreamError(f"what was prepared is damaged: {what}", remedy=self._remedy)

    @property
    def _remedy(self) -> str:
        return (
            f"Put it back as it was, or remove the folder '{self.place}': the sources are then read from "
            "their beginning."
        )

    def _from_the_beginning(self, begun: PreparedPlan, state: StateLog, why: str) -> Prepared:
        if why:
            log.warning(
                "what was prepared in '%s' is not used, since %s: reading from the beginning", self.place, why
            )
        return Prepared(begun, state)


@dataclass(frozen=True)
class Prepared:
    """What was prepared of a plan: how far it is, and its state; nothing of a plan that begins."""

    plan: PreparedPlan
    state: StateLog

    def restore(self, query: Query) -> None:
        """Lets a query of the plan stand where this does."""
        if self.state.whole:
            query.restore(self.state.named())


def compacted(items: Sequence[Item], schema: pa.Schema) -> list[Item]:
    """Items with the same history, marks and promised time, in as few as there can be."""
    pages = [item for item in items if isinstance(item, Page)]
    changes = concat([page for page in pages if not page.settled], schema)
    rows, le, re, weight = deltas(changes)
    net = net_page(take_rows(changes.payload, rows), le, re, weight)
    made: list[Item] = [page for page in (net, *(p for p in pages if p.settled)) if len(page)]
    bounds = [(bound, item) for item in items if (bound := promised([item])) > MIN_TIME]
    return [*made, *(item for _, item in sorted(bounds, key=itemgetter(0))[-1:])]
