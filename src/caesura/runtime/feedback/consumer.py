"""The consumer of a running query speaks: what it will ignore, what it wants first, what it wants now.

Feedback is kept until it is withdrawn; `list` shows what stands, and what it comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import CaesuraError, PatternError, StreamError, closest
from caesura.events.chunks import Chunks, SavedJson
from caesura.feedback.messages import assumed
from caesura.feedback.predicates import Meant, patterns_of
from caesura.misuse import shown
from caesura.plan import here
from caesura.plan.feedback import as_definite, check_feedback
from caesura.punctuation import Intent, Pattern, Punctuation

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell

Send = Callable[[str, Punctuation], None]
"""Sends a message to the step behind an output."""


@dataclass(frozen=True)
class StandingFeedback:
    """Feedback of a consumer, which stands until it is withdrawn; the handle to withdraw it."""

    number: int
    intent: Intent
    output: str
    patterns: tuple[Pattern, ...]
    withdrawn: bool = False

    def __str__(self) -> str:
        rows = " or ".join(str(p) for p in self.patterns) or "nothing"
        return f"#{self.number} {self.intent}: {rows}"


class ConsumerFeedback:
    """The feedback of the consumer of a query."""

    def __init__(self, outputs: Mapping[str, Cell], cells: Sequence[Cell], send: Send) -> None:
        self._outputs, self._cells, self._send = outputs, cells, send
        self._standing: dict[int, StandingFeedback] = {}
        self._last = 0
        self._saved = SavedJson("standing_feedback")

    def send(self, intent: Intent, rows: Meant, output: str | None) -> StandingFeedback:
        """Sends feedback to the step behind an output, and keeps it."""
        name = self._output(output, intent.value)
        patterns = self._patterns(name, rows)
        self._last += 1
        given = StandingFeedback(self._last, intent, name, tuple(p for p in patterns if not p.is_empty))
        self._standing[self._last] = given
        for pattern in given.patterns:
            self._send(name, Punctuation(pattern, intent, (("standing", True),)))
        return given

    def demand(self, rows: Meant, output: str | None) -> None:
        """Asks for what there is now; nothing stands afterwards."""
        name = self._output(output, "demand")
        for pattern in self._patterns(name, rows):
            self._send(name, Punctuation(pattern, Intent.DEMANDED))

    def _patterns(self, output: str, rows: Meant) -> list[Pattern]:
        node = self._outputs[output].node
        try:
            return patterns_of(rows, node.schema, node.time)
        except CaesuraError as error:
            raise error.at(node.step, here()) from None

    def withdraw(self, which: StandingFeedback | int) -> None:
        """Takes feedback back; what has lost something stays suppressed until it closes."""
        number = number_of(which)
        given = self._standing.get(number)
        if given is None:
            raise not_standing(number, self._standing)
        del self._standing[number]
        for pattern in given.patterns if given.output in self._outputs else ():
            if given.intent is Intent.ASSUMED:
                message = assumed(pattern, standing=True, withdrawn=True)
            else:
                message = Punctuation(pattern, given.intent, (("withdrawn", True),))
            self._send(given.output, message)

    def list(self) -> list[str]:
        """What stands, what of it is over, and what is still suppressed."""
        lines = []
        for each in self._standing.values():
            if each.output not in self._outputs:
                lines.append(str(each) + no_such_output(each.output))
                continue
            responder = self._outputs[each.output].responder
            known = None if responder is None else responder.given
            over = known is not None and all(known.covers(as_definite(p)) for p in each.patterns)
            lines.append(f"{each}{' (over: punctuation covers it)' if over else ''}")
        for cell in self._cells:
            lines += [still_suppressed(cell.label, what) for what in suppressed_at(cell)]
        return lines

    def _output(self, output: str | None, step: str) -> str:
        outputs = self._outputs
        if output is None and len(outputs) == 1:
            return next(iter(outputs))
        if output is None or output not in outputs:
            problem = "no output is named" if output is None else f"there is no output '{output}'"
            error = StreamError(f"{problem}.", remedy=f"Name one. {closest(output or '', outputs)}")
            raise error.at(step, here())
        return output

    def snapshot(self) -> Chunks:
        standing = [
            [s.number, s.intent.value, s.output, [p.to_json() for p in s.patterns]]
            for s in self._standing.values()
        ]
        return self._saved.changed({"last": self._last, "standing": standing} if self._last else None)

    def restore(self, chunks: Mapping[str, bytes], *, again: bool = False) -> None:
        """Takes what `snapshot` gave; what is assumed is sent ``again`` to steps that have forgotten it."""
        data = self._saved.read(chunks)
        if data is None:
            return
        self._last = data["last"]
        for number, intent, output, patterns in data["standing"]:
            read = tuple(Pattern.from_json(p) for p in patterns)
            self._standing[number] = StandingFeedback(number, Intent(intent), output, read)
            if output not in self._outputs or (intent == Intent.ASSUMED.value and not again):
                continue
            for pattern in read:  # an order is no state: it is asked for again
                if fits(pattern, self._outputs[output].node.schema):
                    self._send(output, Punctuation(pattern, Intent(intent), (("standing", True),)))


def suppressed_at(cell: Cell) -> list[str]:
    """What a step keeps back after a withdrawal, since it lost something, until punctuation closes it."""
    return [] if cell.responder is None else [str(p) for p in cell.responder.guards.closing.patterns]


def fits(pattern: Pattern, schema: pa.Schema) -> bool:
    """Whether a stream has the columns that a pattern speaks of, in its types."""
    try:
        check_feedback(pattern, schema)
    except PatternError:
        return False
    return True


def no_such_output(output: str) -> str:
    """What the list says of feedback to an output that the query has no more."""
    return f" (over: there is no output '{output}' any more)"


def still_suppressed(step: str, what: str) -> str:
    """A line of the list of what stands."""
    return f"still suppressed at '{step}': {what}"


def number_of(which: StandingFeedback | int) -> int:
    """The number of what is to be withdrawn."""
    if isinstance(which, StandingFeedback):
        return which.number
    if isinstance(which, int):
        return which
    raise StreamError(
        f"withdraw() takes what assume() or desire() gave, or its number, and got {shown(which)}.",
        remedy="Keep it: told = query.assume(...), then query.withdraw(told). feedback() lists the numbers.",
    ).at("withdraw", here())


def not_standing(number: int, standing: Iterable[int]) -> CaesuraError:
    """What to say to who withdraws feedback that does not stand."""
    names = ", ".join(f"#{n}" for n in standing) or "none"
    return StreamError(
        f"no feedback #{number} is standing.",
        remedy=f"It was withdrawn already, or never said. There are: {names}.",
    ).at("withdraw", here())
