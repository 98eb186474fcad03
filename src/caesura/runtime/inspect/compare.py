"""What a step gives with some rows of its input, and without them, beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from caesura.events import History
from caesura.events.differences import drawn_difference
from caesura.events.history import Row
from caesura.misuse import checked_methods
from caesura.punctuation import Pattern
from caesura.punctuation.parsing import parse_punctuation
from caesura.runtime.inspect.choice import MatchingRows, refuse_unknown
from caesura.runtime.inspect.subset import input_rows, outcome, reduced
from caesura.runtime.query.recording import Recording
from caesura.runtime.query.result import query_of


@checked_methods
@dataclass(frozen=True)
class Comparison:
    """Two histories of a step: with the chosen rows, and without them."""

    step: str
    rows: int
    """How many rows were chosen."""
    present: History
    """What the step gives with them."""
    absent: History
    """What it gives without them."""

    @property
    def only_with(self) -> list[Row]:
        """Rows that are there because of them."""
        return self.present.difference(self.absent)[0]

    @property
    def only_without(self) -> list[Row]:
        """Rows that would be there without them."""
        return self.present.difference(self.absent)[1]

    def __str__(self) -> str:
        head = (
            f"with and without {self.rows} row{'s' * (self.rows != 1)} of the input, at step '{self.step}':"
        )
        if self.present == self.absent:
            return f"{head} the same"
        return f"{head}\n{drawn_difference(self.present, self.absent, ('only with', 'only without'))}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def compare(recording: Recording, rows: str | Pattern, *, step: str | None = None) -> Comparison:
    """Runs the plan over a stretch twice; the rows that match are left out of the second."""
    pattern = rows if isinstance(rows, Pattern) else parse_punctuation(rows).pattern
    refuse_unknown(recording.node, pattern)
    chosen = MatchingRows(pattern)
    left = reduced(recording, chosen)
    named = step or query_of(recording.plan(), "changes", None, None).parts.ends["out"].label
    count = len(input_rows(recording)) - len(input_rows(left))
    return Comparison(named, count, outcome(recording, step=step), outcome(left, step=step))
