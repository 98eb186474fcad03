"""A source at work in a query: which rows come next, from where, and what the clock adds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from caesura.errors import RAISED, CaesuraError, StreamError
from caesura.events.item import Item
from caesura.io.sources.memory import TableReader
from caesura.io.sources.protocol import Reader, close
from caesura.io.sources.pruning import Pruning
from caesura.io.sources.python_rows import LIVE_BATCH
from caesura.io.sources.row_groups import read_up_to
from caesura.io.sources.source import Source
from caesura.plan import Ingress, NothingNow, Raw, SourceBatch, SourceNode
from caesura.plan.node import unchecked
from caesura.punctuation import INFINITY, Pattern, Punctuation
from caesura.runtime.graph.cell import Cell

CLOCK = "clock"
"""Under which a reading of the clock stands among the offsets of a source."""


class SourceReader:
    """A source being read: its iterator, its offsets, its heartbeat."""

    def __init__(self, node: SourceNode, cell: Cell) -> None:
        assert isinstance(cell.operator, Ingress)
        self.ingress: Ingress = cell.operator
        self.node = node
        self.cell = cell
        self.offsets: dict[int, int] = {}
        self.done = False
        self.ends = True
        """Whether nothing can follow the end of what is there."""
        self.rows = INFINITY
        """Of sources that are equally far the smallest in memory is read first: others may look up in it."""
        if isinstance(node, Source) and isinstance(node.reader, TableReader):
            self.rows = node.reader.table.num_rows
        self.turns = 0
        self.last = 0
        """When it was last chosen, among all readers of the query."""
        self.limit: int | None = None
        """How many rows it reads in a turn; None for whatever its source gives at once."""
        self._before: tuple[int, Punctuation | None] = (self.cti, None)
        self._rows: Iterator[SourceBatch] | None = None
        self._next: Raw | None = None
        """Rows that were read and not taken yet."""
        self._ended = self._over = False
        self.clock = 0
        """The last reading of the clock that entered."""
        self.on_reading: Callable[[int], None] | None = None
        """Told of every reading that enters, where that is taken down."""
        self.clock_stands = False
        """Whether the clock is not looked at: readings that were taken down come instead."""
        self._passed: Mapping[str, int] = {}
        """What the source said of the rows before its offsets, where it was left."""
        self.pruning: Pruning | None = None
        self.recorders: list[Callable[[str, Raw], None]] = []
        """Take what is read, where a stretch of it is recorded."""
        self.reorders = True
        """Whether rows that are wanted may be read first; not where claims speak of a prefix."""

    @property
    def cti(self) -> int:
        return self.ingress.promises[-1].cti

    @property
    def timeless(self) -> bool:
        """Whether its last rows brought promises, and none on time: how far it is behind tells nothing."""
        cti, last = self._before
        return self.cti == cti and self.ingress.counters.punctuation_out is not last

    @property
    def position(self) -> dict[str, int]:
        """Where it stands, as it is saved: the offset of each lane, and the last reading of the clock."""
        lanes = {str(lane): at for lane, at in self.offsets.items()}
        return {**lanes, **({CLOCK: self.clock} if self.clock else {}), **self._passed_now()}

    def seek(self, position: Mapping[str, int]) -> None:
        """Goes on from where it stood; what lies there no longer is refused."""
        self.clock = position.get(CLOCK, 0)
        self.offsets = lanes_of(position)
        self.close()
        self._passed = {name: at for name, at in position.items() if name != CLOCK and not _is_lane(name)}
        if isinstance(self.node, Source):
            check_passed(self.node, self._passed)
            check_position(self.node, self.offsets)

    def enlarge(self, rows: int) -> None:
        """Reads batches of about so many rows, where the source leaves the choice."""
        if isinstance(self.node, Source):
            self.node = unchecked(self.node, reader=self.node.reader.batched(rows))

    def close(self) -> None:
        """Releases what reading holds open; it is opened again where it is read on."""
        if self._rows is not None:
            self._passed = self._passed_now()
            close(self._rows)
        self._rows = self._next = None
        self._ended = False

    def _passed_now(self) -> Mapping[str, int]:
        own = self.node.reader.passed(self.offsets) if isinstance(self.node, Source) else {}
        return own or self._passed

    def replay(self, rows: Iterator[SourceBatch]) -> None:
        """Reads these first, which are rows of its beginning."""
        self.close()
        self._rows = rows

    def turn(self) -> None:
        """Takes one batch, or closes the stream."""
        self.cell.send(self.clock_items())
        raw = self.next(self.limit)
        if raw is None:
            self.cell.send(self.cell.guarded(partial(self.ingress.close, ends=self.ends)))
        else:
            self.cell.send(self.cell.guarded(self.ingress.raw, raw))
        self.cell.feedback.settle()

    def poll(self) -> bool:
        """Whether there are rows to take, or the end; asks the source unless it is known."""
        if self._next is not None or self._ended:
            return True
        given = self._asked()
        if isinstance(given, NothingNow):
            return False
        self._next, self._ended = given, given is None
        return True

    def _asked(self) -> SourceBatch | None:
        """What the source gives; an error that is not ours names the step that reads."""
        try:
            if self._rows is None:
                self._rows = self._opened()
            return next(self._rows, None)
        except CaesuraError:
            raise
        except RAISED as error:
            raise self.cell.told(error) from error

    @property
    def waiting(self) -> int:
        """How many rows its next turn gives, as far as they were read."""
        rows = 0 if self._next is None else self._next.batch.num_rows
        return rows if self.limit is None else min(rows, self.limit)

    @property
    def follows(self) -> bool:
        """Whether it ends where all others have."""
        return isinstance(self.node, Source) and self.node.reader.follows

    @property
    def rowless(self) -> bool:
        """Whether only the clock comes of it."""
        return isinstance(self.node, Source) and self.node.reader.rowless

    @property
    def grows(self) -> bool:
        """Whether there may be more another time, as in a folder."""
        if not isinstance(self.node, Source):
            return False
        return not (self.node.reader.in_memory or self.node.reader.complete)

    def saved(self) -> None:
        """Tells the source that nothing before this point is read again."""
        if isinstance(self.node, Source):
            self.node.reader.saved(self.offsets)

    def finish(self) -> None:
        """Ends where it stands: there is nothing now, and nobody waits for more."""
        self._ended = True

    def pass_over(self) -> None:
        """Lets the clock in where there are no rows."""
        self.cell.send(self.clock_items())
        self.cell.feedback.settle()

    def next(self, limit: int | None) -> Raw | None:
        """The rows that `poll` found, at most so many; None at the end."""
        self.turns += 1
        self._before = (self.cti, self.ingress.counters.punctuation_out)
        found = self.poll()
        assert found, "rows are taken from a source that has none now"
        raw, self._next = self._next, None
        if raw is None:
            self.done = True
            return None
        if self._over and raw.batch.num_rows:
            self._refuse_behind_end()
        if limit is not None and raw.batch.num_rows > limit:
            raw, self._next = raw.split(limit)
        if self.pruning is None:
            self.offsets[raw.lane] = raw.end
        else:
            read_up_to(self.offsets, raw.lane, raw.offset, raw.end)
            self._count_pruned(self.pruning, raw)
        self.ingress.counters.rows_in += raw.batch.num_rows
        for record in self.recorders:
            record(self.node.fingerprint, raw)
        return raw

    def _count_pruned(self, pruning: Pruning, raw: Raw) -> None:
        counts = self.ingress.counters.feedback
        if pruning.moved:
            counts["rows read first"] = pruning.moved
        if raw.skipped:
            counts["rows not read"], counts["bytes not read"] = pruning.rows, pruning.bytes
            if self.cell.responder is not None and raw.top is not None:
                guard = self.cell.responder.guards.output
                guard.until = max(guard.until, raw.top + 1)  # of points, which is all that is left unread

    def _opened(self) -> Iterator[SourceBatch]:
        self._over = self._ended_for_good
        if isinstance(self.node, Source):
            check_passed(self.node, self._passed)
            wanted = self._wanted if self.reorders else None
            self.pruning = self.node.pruned_by(self._ignored, wanted, self._top)
            return self.node.read(self.offsets, self.pruning)
        return iter(self.node.read(self.offsets))

    @property
    def _ended_for_good(self) -> bool:
        """Whether its end was taken for the end of all, where neither its user nor its rows said so."""
        node = self.node
        if not isinstance(node, Source) or node.punctuated or node.policy.node is not None:
            return False
        return self.cti == INFINITY and node.policy.closes is not True

    def _refuse_behind_end(self) -> None:
        raise StreamError(
            "rows have come behind its end, which promised that nothing follows: all of them would be late.",
            remedy="Start anew without the saved state. What is there as a whole when it is read, as rows in "
            "memory and a single file, must not grow; give punctuate=cz.at_end(closes=False) if it does, and "
            "appended=True to a log.",
        ).at(self.node.step, self.node.place)

    def _wanted(self) -> list[Pattern]:
        return self.cell.feedback.desired

    def _top(self) -> int:
        return self.ingress.top

    def _ignored(self) -> list[Pattern]:
        guard = None if self.cell.responder is None else self.cell.responder.guards.output
        return guard.patterns if guard is not None and guard.active else []

    def clock_items(self) -> list[Item]:
        """What enters because of the clock, where a policy asks for it."""
        period = self.node.heartbeat
        if period is None or self.clock_stands:
            return []
        now = self._now()
        if now < self.clock + period:
            return []
        if self.on_reading is not None:
            self.on_reading(now)
        return self.clock_reads(now)

    def clock_reads(self, now: int) -> list[Item]:
        """What enters because the clock reads so."""
        self.clock = now
        return self.cell.guarded(self.ingress.on_clock, now)

    def _now(self) -> int:
        return self.node.reader.clock() if isinstance(self.node, Source) else time.time_ns() // 1000

    def announce(self, wake: Callable[[], None]) -> None:
        """Has the source call a function when rows come."""
        if isinstance(self.node, Source):
            self.node.reader.on_arrival(wake)

    def seconds(self) -> float:
        """For how long nothing happens here without rows: until it is asked again, or reads the clock."""
        wait = self.node.reader.poll_seconds if isinstance(self.node, Source) else Reader.poll_seconds
        if self.node.heartbeat is None:
            return wait
        return min(wait, max(0, self.clock + self.node.heartbeat - self._now()) / 1e6)


def read_on_later(readers: Iterable[SourceReader]) -> None:
    """For a query that another start goes on with: the end of what may grow until then promises nothing."""
    for reader in readers:
        reader.ends = not reader.grows


T = TypeVar("T", bound="ReadableSource")


class ReadableSource(Protocol):
    """A source that may be read next."""

    last: int

    @property
    def cti(self) -> int: ...
    @property
    def turns(self) -> int: ...
    @property
    def timeless(self) -> bool: ...
    def poll(self) -> bool: ...
    def clock_items(self) -> list[Item]: ...


def next_of(live: Sequence[T]) -> T:
    """The source that is furthest behind in time; one that promises no time takes turns with all others."""
    chosen = min(live, key=lambda r: (r.cti, r.rows if isinstance(r, SourceReader) else INFINITY, r.turns))
    if chosen.timeless:
        chosen = min(live, key=lambda r: r.last)
    chosen.last = 1 + max(r.last for r in live)
    return chosen


class Ready(NamedTuple, Generic[T]):
    """Which source is read next, and which were passed over because they have nothing now."""

    chosen: T | None
    passed_over: list[T]


def next_ready(live: Sequence[T]) -> Ready[T]:
    """The source whose turn it is among those that have rows, or the end; others do not wait for the rest."""
    waiting = list(live)
    passed: list[T] = []
    while waiting:
        chosen = next_of(waiting)
        if chosen.poll():
            return Ready(chosen, passed)
        waiting.remove(chosen)
        passed.append(chosen)
    return Ready(None, passed)


class Waiter:
    """Waits where no source has anything, until one may have, or the clock is due."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._known: set[SourceReader] = set()

    def wait(self, readers: Iterable[SourceReader]) -> None:
        """Returns when a source says that rows have come, or when one has to be asked again."""
        some = list(readers)
        for reader in {*some} - self._known:
            reader.announce(self._arrived.set)
            self._known.add(reader)
        self._arrived.wait(min(reader.seconds() for reader in some))
        self._arrived.clear()


def share(readers: Sequence[SourceReader]) -> None:
    """Lets sources with punctuation in their data read few rows at a time, where others wait for it."""
    for reader in readers if len(readers) > 1 else ():
        if isinstance(reader.node, Source) and reader.node.declares == ("*",):
            reader.limit = LIVE_BATCH


def refused_by(cells: Iterable[Cell]) -> dict[str, pa.Table]:
    """The rows that sources and pushed inputs have refused since the last call, by their names."""
    tables: dict[str, pa.Table] = {}
    for cell in cells:
        table = cell.operator.drain_late() if isinstance(cell.operator, Ingress) else None
        if table is not None:
            tables[cell.node.fed or cell.label] = table
    return tables


def lanes_of(position: Mapping[str, int]) -> dict[int, int]:
    """The offset of each lane in a position that was saved."""
    return {int(lane): at for lane, at in position.items() if _is_lane(lane)}


def _is_lane(name: str) -> bool:
    """Whether an entry of a position is the offset of a lane, and nothing else that is saved with them."""
    return name.removeprefix("-").isdecimal()


def check_passed(source: Source, passed: Mapping[str, int]) -> None:
    """Refuses to go on where rows have other numbers than when they were read."""
    if reason := source.reader.displaced(passed):
        raise StreamError(
            f"{reason}: rows would be left out or read twice.",
            remedy=source.reader.put_back,
        ).at(source.step, source.place)


def check_position(source: Source, offsets: Mapping[int, int]) -> None:
    """Refuses an offset that a source no longer has, or does not have yet."""
    read = {lane: at for lane, at in offsets.items() if lane >= 0 and at}
    reader = source.reader
    earliest, latest = (reader.earliest(), reader.latest()) if read else ({}, None)
    for lane, at in read.items():
        begin, end = earliest.get(lane, 0), None if latest is None else latest.get(lane, 0)
        if end is not None and at > end:
            there, remedy = f"ends at {end}", reader.put_back
        elif at < begin and not reader.passes_gaps:
            there, remedy = f"begins at {begin}", reader.gap_remedy
        else:
            continue
        name = reader.lane_name(lane)
        raise StreamError(
            f"{name} is to be read on from {at}, and it {there} now: rows of it are gone.", remedy=remedy
        ).at(source.step, source.place)
