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

from caesura.events import Item, Page
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.source import Source
from caesura.misuse import checked_methods
from caesura.plan import Node, Raw, walk
from caesura.plan.node import rebuilt


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
    """The first rows that each source of a query gave, and that each input was fed, since it was begun."""

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
        """How many rows came of each source and input, those behind the limit too."""
        return dict(self._rows)

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
