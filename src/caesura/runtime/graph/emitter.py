"""Where a source's items enter a query: they are counted, so that a claim can name a prefix.

>>> from caesura.punctuation import cti
>>> some = Emitter("clicks", lambda item: None)
>>> some.send([cti(5)])
>>> print(some.prefix())
0 rows + 1 punctuation (time < 5)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from caesura.consistency import Prefix
from caesura.consistency.reading import Break
from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.plan import Raw
from caesura.punctuation import Intent, Promises
from caesura.runtime.graph.cell import Cell


class Emitter:
    """Counts what one source gives."""

    def __init__(self, label: str, push: Callable[[Item], None], cell: Cell | None = None) -> None:
        self.label = label
        self.push = push
        self.cell = cell
        self.rows = 0
        self.punctuations = 0
        self.offsets: dict[int, int] = {}
        self.promises = Promises()
        self.closed = False
        self.tokens = 0
        """How many tokens it has given."""
        self.breaks: deque[Break] = deque()
        """Where another pipeline's claims stand among its rows."""
        self.passed = 0
        """How many of those it has passed."""
        self.passed_at: dict[int, int] = {}
        """How many of those it had passed at each of its tokens that is no claim yet."""
        self.behind: dict[str, Prefix] = {}
        """What the last of those claims answers for."""
        self.since = 0
        """How many events it has given, or read, since the last round."""

    @property
    def items(self) -> int:
        return self.rows + self.punctuations

    @property
    def root(self) -> bool:
        """Whether tokens start here; a source that imports punctuation passes on those that come to it."""
        return self.cell is None or not self.cell.inputs

    def send(self, items: Iterable[Item]) -> None:
        """Lets items in."""
        for item in items:
            self.count(item)
            self.push(item)

    def count(self, item: Item) -> None:
        if isinstance(item, Page):
            self.rows += len(item)
            return
        self.punctuations += 1
        if item.intent is Intent.DEFINITE:
            self.promises.add(item.pattern)

    def read(self, raw: Raw) -> None:
        """Notes that a lane was read; refuses one that goes back."""
        expected = self.offsets.get(raw.lane, 0)
        if raw.offset < expected:
            raise StreamError(
                f"lane {raw.lane} of '{self.label}' repeats offset {raw.offset}; {expected} were read.",
                remedy="Read from the offsets that are asked for; no claim covers a row twice.",
            )
        end = raw.offset + raw.batch.num_rows + raw.skipped  # what feedback lets go counts as read
        self.offsets = {**self.offsets, raw.lane: end}

    def pass_break(self) -> None:
        """Its rows are now those of another pipeline's next claim."""
        _, self.behind = self.breaks.popleft()
        self.passed += 1

    def prefix(self) -> Prefix:
        """What has entered so far."""
        return Prefix(
            self.rows, self.punctuations, self.offsets, tuple(self.promises.patterns()), self.closed
        )

    def go_on(self, prefix: Prefix) -> None:
        """Counts on from where a snapshot was taken."""
        self.rows, self.punctuations, self.closed = prefix.rows or 0, prefix.punctuations or 0, prefix.closed
        self.offsets = dict(prefix.offsets)
        self.promises = Promises(prefix.definite)
