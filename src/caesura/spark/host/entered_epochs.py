"""What entered the epochs of a query on Spark besides rows, and how far its sources were read there.

Readings of the clock and feedback of the consumer decide which rows are late, which are left out and what is
final. Spark keeps its own log of them for 100 epochs, so a log of our own lies beside it, for a rebuild:

    <checkpoint>/entered/000000.json    {"format": 1, "entries": [...]}
    {"epoch": 3, "at": {"0": "{...}"}, "clock": 1700000000000000}       rows, and a reading behind them
    {"epoch": 9, "before": {"0": "{...}"}, "feedback": [["out", ...]]}  epochs of rows alone, then a message

An entry names the sources that have moved since the one before it, as Spark's offset log does. Epochs that
bring rows alone have an entry only where a clock says when they came, or a lane appears: what the others had
promised by then holds for its rows too. Readings between which nothing was read
and nothing was said are one: the last. So the log grows with what enters, not with epochs. A segment begins
with where everything stood; those that are full are neither read nor written again.

>>> import tempfile
>>> log, before = EnteredEpochs(Place.of(tempfile.mkdtemp())), SparkOffsets()
>>> for epoch, clock in enumerate((100, 200, 300)):
...     log.take_down(epoch, before, before := SparkOffsets({}, clock))
>>> log.save()
>>> [(entry.epoch, entry.clock) for entry in log.read()]
[(0, 300)]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from caesura.errors import StreamError
from caesura.events.chunks import later
from caesura.io.places import Place
from caesura.io.places.json_files import read_json
from caesura.punctuation import Punctuation
from caesura.runtime.buckets.labels import FEEDBACK
from caesura.runtime.packets.packet import Packet
from caesura.spark.host.clock_source import CLOCK
from caesura.spark.host.part import of_ours
from caesura.spark.host.source_log import offsets_of
from caesura.spark.loop_log.log import LoopLog

LOG, ENTRIES, FORMAT = "entered", "entries", "format"
LOG_FORMAT = 1
SEGMENT = 200
"""So many entries lie in a file."""
REMEDY = "Put back the file as it was; or take it away: the query goes on, and cannot be rebuilt any more."
Position = Mapping[str, str]
"""How far sources were read: what Spark's offset log says, by their places there."""
Message = tuple[str, Punctuation]
"""What a consumer has said, and of which output."""


@dataclass(frozen=True)
class SparkOffsets:
    """Where a query stands by Spark's offset log: its sources, what the clock read, what it has heard."""

    sources: Position = field(default_factory=dict)
    clock: int | None = None
    """None where it has no clock, or none that was read."""
    heard: int = -1
    """The number of the last feedback; -1 for none."""

    @staticmethod
    def of(folder: Place, number: int) -> SparkOffsets:
        lines = offsets_of(folder, number)
        sources = {str(place): line for place, line in enumerate(lines) if line != "-" and not of_ours(line)}
        ours = [json.loads(line) for line in lines if line != "-" and of_ours(line)]
        clock = next((offset[CLOCK] for offset in ours if CLOCK in offset), None)
        return SparkOffsets(sources, clock, next((int(o["feedback"]) for o in ours if CLOCK not in o), -1))


@dataclass(frozen=True)
class EnteredEpoch:
    """What entered with an epoch."""

    epoch: int
    """The epoch of the sink; the first one, where several are one entry."""
    before: Position = field(default_factory=dict)
    """Which sources have moved since the entry before it, in epochs of rows alone."""
    at: Position = field(default_factory=dict)
    """Which have moved in this epoch."""
    clock: int | None = None
    """What the clock read, if it was read."""
    feedback: tuple[Message, ...] = ()
    lanes: bool = False
    """Whether a source had a lane more than before."""
    heard: int = -1
    """The number of the last feedback by then; -1 for none."""
    lost: bool = False
    """Whether something before it was not taken down: a segment has been taken away."""

    @property
    def only_clock(self) -> bool:
        """Whether nothing came but a reading of the clock."""
        return not self.at and not self.feedback

    @property
    def cuts(self) -> bool:
        """Whether what came before it is read before it, whatever clock there is."""
        return bool(self.feedback) or self.lanes

    def to_json(self) -> dict[str, Any]:
        said = [[output, message.to_json()] for output, message in self.feedback]
        known = {"before": dict(self.before), "at": dict(self.at), "clock": self.clock, "feedback": said}
        known |= {"lanes": self.lanes, "lost": self.lost}
        heard = {"heard": self.heard} if self.heard >= 0 else {}
        return {"epoch": self.epoch, **{name: value for name, value in known.items() if value}, **heard}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> EnteredEpoch:
        said = tuple((output, Punctuation.from_json(what)) for output, what in data.get("feedback", ()))
        own = (data.get("before", {}), data.get("at", {}), data.get("clock"))
        rest = (data.get("lanes", False), int(data.get("heard", -1)), data.get("lost", False))
        return EnteredEpoch(int(data["epoch"]), *own, said, *rest)


class EnteredEpochs:
    """The log of one folder of Spark's; a value that travels, and reads its last segment when it is asked."""

    def __init__(self, place: Place) -> None:
        self._folder = place / LOG
        self.seen: tuple[int, SparkOffsets] | None = None
        """What Spark's offset log says of the last epoch that was looked at."""
        self._number = -1
        """The segment that is written now; -1 before that is known."""
        self._entries: list[EnteredEpoch] = []
        self._known = SparkOffsets()
        """Where everything stood behind the last entry."""
        self._changed = False

    def take_down(
        self, epoch: int, before: SparkOffsets, now: SparkOffsets, feedback: Sequence[Message] = ()
    ) -> None:
        """Takes down an epoch, unless it has been: where everything stood, and what was said in it.

        An epoch that runs again brings the same, since Spark's offset log says what it brings.
        """
        self._open()
        last, known = self._entries[-1] if self._entries else None, self._known
        if last is not None and last.epoch == epoch:
            return
        ahead, moved = _moved(known.sources, before.sources), _moved(before.sources, now.sources)
        read = now.clock if now.clock != known.clock else None
        both = [(before.sources[place], entry) for place, entry in moved.items() if place in before.sources]
        lanes = any(_lanes(was) < _lanes(entry) for was, entry in both)
        if not (feedback or lanes) and (now.clock is None or not (ahead or moved or read)):
            return
        lost = before.heard != known.heard or (now.clock is not None and before.clock != known.clock)
        lost = lost or (now.clock is not None and bool(ahead))
        made = EnteredEpoch(epoch, ahead, moved, read, tuple(feedback), lanes, now.heard, lost)
        self._changed, self._known = True, replace(now, sources={**before.sources, **now.sources})
        if last is not None and last.only_clock and made.only_clock and not ahead:
            self._entries[-1] = replace(last, clock=read, lost=last.lost or lost)
            return
        if len(self._entries) == SEGMENT:
            self.save()
            self._number, self._entries, self._changed = self._number + 1, [], True
        whole = made if self._entries else replace(made, before=dict(before.sources), clock=now.clock)
        self._entries.append(whole)

    def save(self) -> None:
        """Writes the segment that has changed, whole."""
        if self._changed:
            content = {FORMAT: LOG_FORMAT, ENTRIES: [entry.to_json() for entry in self._entries]}
            self._file(self._number).put(json.dumps(content).encode(), private=True)
            self._changed = False

    def read(self) -> list[EnteredEpoch]:
        """All entries, in order."""
        last = max(self._numbers(), default=-1)
        return [entry for number in range(last + 1) for entry in self._segment(number)]

    def _open(self) -> None:
        """Finds the last segment, once, and where everything stood behind it."""
        if self._number >= 0:
            return
        self._number = max(self._numbers(), default=0)
        self._entries = self._segment(self._number) if self._file(self._number).is_file() else []
        self._known = stood(self._entries)

    def _numbers(self) -> list[int]:
        return [int(file.name.removesuffix(".json")) for file in self._folder.files(".json")]

    def _segment(self, number: int) -> list[EnteredEpoch]:
        file = self._file(number)
        content = read_json(file, REMEDY, wants=(FORMAT, ENTRIES))
        if content[FORMAT] > LOG_FORMAT:
            raise later(f"'{file}'", content[FORMAT], LOG_FORMAT)
        try:
            return [EnteredEpoch.from_json(entry) for entry in content[ENTRIES]]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise StreamError(f"'{file}' is not whole.", remedy=REMEDY) from None

    def _file(self, number: int) -> Place:
        return self._folder / f"{number:06d}.json"


@dataclass(frozen=True)
class ReplayStep:
    """An epoch of a rebuild: how far it reads, what the clock reads by then, and what is said in it."""

    at: Position
    clock: int | None = None
    feedback: tuple[Message, ...] = ()


def replay_steps(entries: Iterable[EnteredEpoch], end: Position, *, clocked: bool) -> Iterator[ReplayStep]:
    """The epochs in which a plan reads up to an end, so that all that has entered enters where it came first.

    Without a clock what was read before a message came, or a lane, is one epoch.
    """
    at: dict[str, str] = {}
    clock: int | None = None
    unread = False
    for entry in entries:
        ahead = {**at, **entry.before}
        at, unread = ahead, unread or ahead != at
        if unread and (clocked or entry.cuts):
            yield ReplayStep(at, clock)
            unread = False
        at = {**at, **entry.at}
        clock = entry.clock if clocked and entry.clock is not None else clock
        if clocked or entry.feedback:
            yield ReplayStep(at, clock, entry.feedback)
        else:
            unread = unread or bool(entry.at)
    if at != end or unread:
        yield ReplayStep(end, clock)


def stood(entries: Iterable[EnteredEpoch]) -> SparkOffsets:
    """Where everything stood behind some entries."""
    known = SparkOffsets()
    for entry in entries:
        clock = known.clock if entry.clock is None else entry.clock
        known = SparkOffsets({**known.sources, **entry.before, **entry.at}, clock, entry.heard)
    return known


def lost(entries: Sequence[EnteredEpoch], now: SparkOffsets) -> bool:
    """Whether something is not in a log that should be: of rows only where a clock says when they came."""
    known = stood(entries)
    rows = now.clock is not None and known.sources != now.sources
    return rows or known.heard != now.heard or any(entry.lost for entry in entries)


def take_down_epoch(log: EnteredEpochs, folder: Place, number: int, epoch: int, loop: str) -> None:
    """Takes down what one of Spark's epochs brings, which is an epoch of the sink, before that has it."""
    seen, before = log.seen or (number, SparkOffsets())
    if seen != number - 1:
        before = SparkOffsets.of(folder, number - 1)
    now = SparkOffsets.of(folder, number)
    log.take_down(epoch, before, now, heard_between(loop, before.heard, now.heard) if loop else ())
    log.save()
    log.seen = (number, now)


def heard_between(loop: str, start: int, end: int) -> list[Message]:
    """The feedback behind one number up to another, as it was given: each bucket has the same."""
    found: list[Message] = []
    log = LoopLog(loop)
    for name in log.all_feedback(start, end):
        rows = log.read(name)
        for row in rows.select(["stage", "label", "bucket", "origin", "seq", "data"]).to_pylist():
            packet = Packet.from_row(tuple(row.values()))
            if packet.bucket == 0:
                output = packet.label.removeprefix(FEEDBACK)
                found += [(output, item) for item in packet.items if isinstance(item, Punctuation)]
    return found


def _lanes(entry: str) -> set[tuple[str, str]]:
    """The lanes that an entry of the offset log names, of a source that has any."""
    offset = json.loads(entry)
    named = offset.items() if isinstance(offset, dict) else ()
    return {(name, lane) for name, lanes in named if isinstance(lanes, dict) for lane in lanes}


def _moved(before: Position, at: Position) -> dict[str, str]:
    return {place: entry for place, entry in at.items() if before.get(place) != entry}
