"""The consumer of a running query speaks: what it will ignore, what it wants first, what it wants now.

Every utterance is kept until it is withdrawn; `list` shows them with what they come to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import CaesuraError, PatternError, StreamError, closest
from caesura.events.rows import Chunks
from caesura.expr import Expr
from caesura.feedback.messages import assumed
from caesura.feedback.predicates import patterns_of
from caesura.plan import here
from caesura.plan.feedback import as_definite, check_feedback
from caesura.punctuation import Intent, Pattern, Punctuation

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell

SPOKEN = "spoken"
Send = Callable[[str, Punctuation], None]
"""Sends a message to the step behind an output."""


@dataclass(frozen=True)
class Spoken:
    """One utterance of a consumer."""

    number: int
    intent: Intent
    output: str
    patterns: tuple[Pattern, ...]
    withdrawn: bool = False

    def __str__(self) -> str:
        said = " or ".join(str(p) for p in self.patterns) or "nothing"
        return f"#{self.number} {self.intent}: {said}"


class ConsumerFeedback:
    """The feedback of the consumer of a query."""

    def __init__(self, outputs: Mapping[str, Cell], cells: Sequence[Cell], send: Send) -> None:
        self._outputs, self._cells, self._send = outputs, cells, send
        self._spoken: dict[int, Spoken] = {}
        self._last = 0
        self._saved = b""

    def say(self, intent: Intent, said: Pattern | Expr | bool, output: str | None) -> Spoken:
        """Tells the step behind an output."""
        name = self._output(output, intent.value)
        patterns = self._patterns(name, said)
        self._last += 1
        spoken = Spoken(self._last, intent, name, tuple(p for p in patterns if not p.is_empty))
        self._spoken[self._last] = spoken
        for pattern in spoken.patterns:
            self._send(name, Punctuation(pattern, intent, (("standing", True),)))
        return spoken

    def demand(self, said: Pattern | Expr | bool, output: str | None) -> None:
        """Asks for what there is now; nothing stands afterwards."""
        name = self._output(output, "demand")
        for pattern in self._patterns(name, said):
            self._send(name, Punctuation(pattern, Intent.DEMANDED))

    def _patterns(self, output: str, said: Pattern | Expr | bool) -> list[Pattern]:
        node = self._outputs[output].node
        try:
            return patterns_of(said, node.schema, node.time)
        except CaesuraError as error:
            raise error.at(node.step, here()) from None

    def withdraw(self, which: Spoken | int) -> None:
        """Takes an utterance back; what has lost something stays suppressed until it closes."""
        number = which if isinstance(which, int) else which.number
        spoken = self._spoken.get(number)
        if spoken is None:
            names = ", ".join(f"#{n}" for n in self._spoken) or "none"
            error = StreamError(
                f"no feedback #{number} is standing.",
                remedy=f"It was withdrawn already, or never said. There are: {names}.",
            )
            raise error.at("withdraw", here())
        del self._spoken[number]
        for pattern in spoken.patterns if spoken.output in self._outputs else ():
            if spoken.intent is Intent.ASSUMED:
                message = assumed(pattern, standing=True, withdrawn=True)
            else:
                message = Punctuation(pattern, spoken.intent, (("withdrawn", True),))
            self._send(spoken.output, message)

    def list(self) -> list[str]:
        """What stands, what of it is over, and what is still suppressed."""
        lines = []
        for spoken in self._spoken.values():
            if spoken.output not in self._outputs:
                lines.append(str(spoken) + gone(spoken.output))
                continue
            cell = self._outputs[spoken.output]
            given = cell.responder.given if cell.responder is not None else None
            over = given is not None and all(given.covers(as_definite(p)) for p in spoken.patterns)
            lines.append(f"{spoken}{' (over: punctuation covers it)' if over else ''}")
        for cell in self._cells:
            lines += [still_suppressed(cell.label, what) for what in suppressed_at(cell)]
        return lines

    def _output(self, output: str | None, step: str) -> str:
        outputs = self._outputs
        if output is None and len(outputs) == 1:
            return next(iter(outputs))
        if output is None or output not in outputs:
            given = "no output is named" if output is None else f"there is no output '{output}'"
            error = StreamError(f"{given}.", remedy=f"Name one. {closest(output or '', outputs)}")
            raise error.at(step, here())
        return output

    def snapshot(self) -> Chunks:
        spoken = [
            [s.number, s.intent.value, s.output, [p.to_json() for p in s.patterns]]
            for s in self._spoken.values()
        ]
        data = json.dumps({"last": self._last, "spoken": spoken}).encode()
        if data == self._saved or (not self._last and not self._saved):
            return {}
        self._saved = data
        return {SPOKEN: data}

    def restore(self, chunks: Mapping[str, bytes], *, again: bool = False) -> None:
        """Takes what `snapshot` gave; what is assumed is said ``again`` to steps that have forgotten it."""
        if SPOKEN not in chunks:
            return
        self._saved = chunks[SPOKEN]
        data = json.loads(self._saved)
        self._last = data["last"]
        for number, intent, output, patterns in data["spoken"]:
            told = tuple(Pattern.from_json(p) for p in patterns)
            self._spoken[number] = Spoken(number, Intent(intent), output, told)
            if output not in self._outputs or (intent == Intent.ASSUMED.value and not again):
                continue
            for pattern in told:  # an order is no state: it is asked for again
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


def gone(output: str) -> str:
    """What is said of an utterance about an output that the query has no more."""
    return f" (over: there is no output '{output}' any more)"


def still_suppressed(step: str, what: str) -> str:
    """A line of the list of what stands."""
    return f"still suppressed at '{step}': {what}"
