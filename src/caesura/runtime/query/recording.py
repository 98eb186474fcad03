"""A stretch of what a query takes in, kept so that it can be traced: rows read once, items fed by hand.

>>> import caesura as cz
>>> import pyarrow as pa
>>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
>>> plan = clicks.where(cz.col("id") > 7)
>>> query = plan.query()
>>> recording = query.record(limit=100)
>>> for item in cz.parse(" LE RE | id |\\n 1 2 | 7 | +\\n 2 3 | 8 | +"):
...     query.feed("clicks", item)
>>> query.run()
>>> print(plan.trace("id = 8", recording=recording))
chosen: 1 row with id = 8
step 'input' (clicks): emits 1 event because of them
  2  3  | 8 | +   by row 1 of 'clicks'
step 'where' (id > 7): emits 1 event because of them
  2  3  | 8 | +   by row 1 of 'clicks'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from caesura.events import Item, Page
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.source import Source
from caesura.misuse import checked_methods
from caesura.plan import Node, Raw, walk
from caesura.plan.labelled import labelled
from caesura.plan.node import rebuilt
from caesura.punctuation import Pattern

if TYPE_CHECKING:
    from caesura.runtime.inspect.compare import Comparison
    from caesura.runtime.inspect.step_through import PunctuationStep
    from caesura.runtime.inspect.trace import Trace
    from caesura.runtime.inspect.trace_back import RowOrigin


class RecordedReader(Reader):
    """Gives what was recorded of another reader."""

    in_memory = True

    def __init__(self, inner: Reader, raws: list[Raw]) -> None:
        self.schema, self.lanes, self.key = inner.schema, inner.lanes, f"{inner.key}:recorded"
        self.punctuates, self.unordered = inner.punctuates, inner.unordered
        self._inner, self._raws = inner, raws

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        return iter(self._raws)

    def describe(self) -> str:
        return self._inner.describe()


@checked_methods
@dataclass
class Recording:
    """A stretch of what a query takes in, and what can be asked of it.

    ``query.record()`` keeps what comes next, ``query.replay()`` and ``stream.replay()`` read the last or the
    first rows from the sources again. A plan runs over a stretch in this process, from an empty state.
    """

    node: Node
    limit: int
    raws: dict[str, list[Raw]] = field(default_factory=dict)
    """By source, its fingerprint, in the order in which they came."""
    fed: list[tuple[str, Item]] = field(default_factory=list)
    """What was fed, with the input's label."""
    _rows: dict[str, int] = field(default_factory=dict)

    def read(self, source: str, raw: Raw) -> None:
        """A source gave rows."""
        room = self._room(source, raw.batch.num_rows)
        some = self.raws.setdefault(source, [])
        if room > 0:
            some.append(raw if raw.batch.num_rows <= room else raw.split(room)[0])

    def feed(self, label: str, item: Item) -> None:
        """An item was fed."""
        if not isinstance(item, Page):
            self.fed.append((label, item))
            return
        room = self._room(label, len(item))
        if room > 0:
            self.fed.append((label, item.slice(0, room)))

    def _room(self, name: str, rows: int) -> int:
        """How many of so many further rows are kept."""
        before = self._rows.get(name, 0)
        self._rows[name] = before + rows
        return max(0, self.limit - before)

    @property
    def rows(self) -> Mapping[str, int]:
        """How many rows came of each source and input, those behind the limit of `Query.record` too."""
        if self._rows:
            return {self.sources.get(name, name): count for name, count in self._rows.items()}
        found = {
            label: sum(int(raw.batch.num_rows) for raw in self.raws.get(source, []))
            for source, label in self.sources.items()
        }
        for label, item in self.fed:
            found[label] = found.get(label, 0) + (len(item) if isinstance(item, Page) else 0)
        return found

    @property
    def sources(self) -> Mapping[str, str]:
        """The names that its sources have in a query, by fingerprint."""
        steps = labelled({"out": self.node}).items()
        return {own.fingerprint: label for label, own in steps if isinstance(own, Source)}

    def plan(self) -> Node:
        """The query's plan over what was recorded; sources of which nothing was are as they are."""
        made: dict[str, Node] = {}
        for own in walk(self.node):
            inputs = tuple(made[child.fingerprint] for child in own.inputs)
            fresh = rebuilt(own, inputs) if inputs else own
            if isinstance(fresh, Source) and own.fingerprint in self.raws:
                fresh = replace(fresh, reader=RecordedReader(fresh.reader, self.raws[own.fingerprint]))
            made[own.fingerprint] = fresh
        return made[self.node.fingerprint]

    def trace(self, rows: str | Pattern, *, assume: str | Pattern | None = None) -> Trace:
        """What became of some rows of the stretch, step by step.

        Parameters
        ----------
        rows
            Which rows: a pattern as text, ``"ts = 18, segment in {1, 3}"``, or a `cz.Pattern`.
        assume
            Feedback from the start, as a pattern.

        Returns
        -------
        caesura.runtime.inspect.trace.Trace
            What each step said because of the rows.

        See Also
        --------
        caesura.runtime.Recording.trace_back : where rows of a step came from.
        caesura.runtime.Recording.compare : the output with the rows and without them.
        caesura.runtime.Recording.step_through : from promise to promise.

        Examples
        --------
        >>> import caesura as cz
        >>> slow = cz.from_rows([{"ts": 3, "mph": 62}], time="ts").where("mph < 30")
        >>> slow.replay().trace("mph = 62")["where"].fate
        'drops them'
        """
        from caesura.runtime.inspect.trace import trace

        return trace(self.plan(), rows, assume=assume, fed=self.fed)

    def trace_back(self, rows: str | Pattern, *, step: str | None = None) -> RowOrigin:
        """Where some rows of a step came from: the rows of the stretch that they need.

        Parameters
        ----------
        rows
            Which rows: a pattern of the step's columns, ``LE`` and ``RE``, as in ``"n = 2, LE = 10"``.
        step
            The step; by default the last.

        Returns
        -------
        caesura.runtime.inspect.trace_back.RowOrigin
            The rows, and what each step said because of them, from that step back to the sources.

        See Also
        --------
        caesura.runtime.Recording.trace : what became of rows of the input.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "mph": 62}, {"ts": 4, "mph": 12}, {"ts": 5, "mph": 9}]
        >>> slow = cz.from_rows(rows, time="ts").where("mph < 30").tumbling(10).agg(least=cz.min("mph"))
        >>> origin = slow.replay().trace_back("least = 9")
        >>> [str(row) for group in origin.needed for row in group]
        ["row 2 of 'read': 5 9"]
        """
        from caesura.runtime.inspect.trace_back import trace_back

        return trace_back(self, rows, step=step)

    def step_through(self) -> list[PunctuationStep]:
        """The stretch from one promise of the sources to the next: what every step said and holds.

        Returns
        -------
        list of PunctuationStep
            Each prints as the rows that were read, and what every step made of them.

        See Also
        --------
        caesura.runtime.Recording.trace : what became of rows of the input.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "id": 7}, {"ts": 14, "id": 8}]
        >>> counted = cz.from_rows(rows, time="ts", punctuate=cz.delay(1)).tumbling(10).agg(n=cz.count())
        >>> print(counted.replay().step_through()[1])
        2: 'read' promises time < 13
        read: row 1 of 'read'
        step 'read': 1 event; promises time < 13
          14  15  | 8 | +   by row 1 of 'read'
        step 'tumbling' (10; n=count()): 1 event; promises time < 10; holds 2 rows
          10  20  | 1 | +   by row 1 of 'read'
        """
        from caesura.runtime.inspect.step_through import step_through

        return step_through(self)

    def compare(self, rows: str | Pattern, *, step: str | None = None) -> Comparison:
        """What a step gives with some rows of the stretch, and what without them.

        Parameters
        ----------
        rows
            Which rows of the input, as in `trace`.
        step
            The step; by default the last.

        Returns
        -------
        caesura.runtime.inspect.compare.Comparison
            Both histories; printed, one table in which a mark says what only one of them has.

        See Also
        --------
        caesura.runtime.Recording.trace : what became of rows of the input.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "id": 7}, {"ts": 4, "id": 8}]
        >>> counted = cz.from_rows(rows, time="ts").tumbling(10).agg(n=cz.count())
        >>> print(counted.replay().compare("id = 7"))
        with and without 1 row of the input, at step 'tumbling':
         LE  RE | n |
          0  10 | 1 | only without
          0  10 | 2 | only with
        """
        from caesura.runtime.inspect.compare import compare

        return compare(self, rows, step=step)

    def save_test(self, path: str | Path, *, stream: str | None = None, name: str | None = None) -> Path:
        """Saves the stretch as a test: its rows, and what the plan makes of them now.

        Parameters
        ----------
        path
            The file, as in ``"tests/test_speeds.py"``; one that is there is not written over.
        stream
            Where the stream is found: ``"flow.py:speeds"``, ``"views.sql:speeds"`` or
            ``"package.module:speeds"``; by default the variable of a module that holds it.
        name
            What the test is called, behind ``test_``.

        Returns
        -------
        pathlib.Path
            The file, which pytest runs.

        See Also
        --------
        caesura.testing.assert_replay : what such a test calls.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> slow = cz.from_rows([{"ts": 3, "mph": 12}], time="ts").where("mph < 30")
        >>> file = slow.replay().save_test(f"{tempfile.mkdtemp()}/test_slow.py", stream="flows:slow")
        >>> file.read_text().splitlines()[2]
        'from flows import slow'
        """
        from caesura.runtime.inspect.saved_test import save_test

        return save_test(self, Path(path), stream=stream, name=name)
