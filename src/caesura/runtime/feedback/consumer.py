"""The consumer of a running query speaks: what it will ignore, what it wants first, what it wants now.

Every utterance is kept until it is withdrawn; `list` shows them with what they come to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.errors import CaesuraError, PatternError, StreamError, closest
from caesura.events.rows import Chunks
from caesura.expr import Expr
from caesura.feedback.messages import assumed
from caesura.feedback.predicates import patterns_of
from caesura.plan import here
from caesura.plan.feedback import as_definite, check_feedback
from caesura.punctuation import MIN_TIME, Intent, Pattern, Punctuation

if TYPE_CHECKING:
    from caesura.runtime.graph.graph import Cell
    from caesura.runtime.query.query import Query

META = "feedback/meta"
WISHES = "wishes"
SPOKEN = "spoken"


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


class Assumptions:
    """What the consumer of a query has said."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._spoken: dict[int, Spoken] = {}
        self._last = 0
        self._saved = b""

    def say(self, intent: Intent, said: Pattern | Expr | bool, output: str | None) -> Spoken:
        """Tells the step behind an output."""
        name = self._output(output, intent.value)
        node = self._query.outputs[name]
        try:
            patterns = patterns_of(said, node.schema, node.time)
        except CaesuraError as error:
            raise error.at(node.step, here()) from None
        self._last += 1
        spoken = Spoken(self._last, intent, name, tuple(p for p in patterns if not p.is_empty))
        self._spoken[self._last] = spoken
        for pattern in spoken.patterns:
            self._query.send_up(name, Punctuation(pattern, intent, (("standing", True),)))
        return spoken

    def demand(self, said: Pattern | Expr | bool, output: str | None) -> None:
        """Asks for what there is now; nothing stands afterwards."""
        name = self._output(output, "demand")
        node = self._query.outputs[name]
        try:
            patterns = patterns_of(said, node.schema, node.time)
        except CaesuraError as error:
            raise error.at(node.step, here()) from None
        for pattern in patterns:
            self._query.send_up(name, Punctuation(pattern, Intent.DEMANDED))

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
        for pattern in spoken.patterns if spoken.output in self._query.outputs else ():
            if spoken.intent is Intent.ASSUMED:
                message = assumed(pattern, standing=True, withdrawn=True)
            else:
                message = Punctuation(pattern, spoken.intent, (("withdrawn", True),))
            self._query.send_up(spoken.output, message)

    def list(self) -> list[str]:
        """What stands, what of it is over, and what is still suppressed."""
        lines = []
        for spoken in self._spoken.values():
            if spoken.output not in self._query.outputs:
                lines.append(str(spoken) + gone(spoken.output))
                continue
            cell = self._query.cell(spoken.output)
            given = cell.responder.given if cell.responder is not None else None
            over = given is not None and all(given.covers(as_definite(p)) for p in spoken.patterns)
            lines.append(f"{spoken}{' (over: punctuation covers it)' if over else ''}")
        for cell in self._query.graph.cells:
            lines += [still_suppressed(cell.label, what) for what in suppressed_at(cell)]
        return lines

    def _output(self, output: str | None, step: str) -> str:
        outputs = self._query.outputs
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
            if output not in self._query.outputs or (intent == Intent.ASSUMED.value and not again):
                continue
            for pattern in told:  # an order is no state: it is asked for again
                if fits(pattern, self._query.outputs[output].schema):
                    self._query.send_up(output, Punctuation(pattern, Intent(intent), (("standing", True),)))


def suppressed_at(cell: Cell) -> list[str]:
    """What a step keeps back after a withdrawal, since it lost something, until punctuation closes it."""
    return [] if cell.responder is None else [str(p) for p in cell.responder.closing.patterns]


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


def note_losses(cells: list[Cell]) -> dict[str, int]:
    """Tells every step how late the rows end that steps above it have lost; nothing may be queued.

    Gives by fingerprint how late the output ends that each step has lost.
    """
    lost: dict[str, int] = {}
    for cell in sorted(cells, key=lambda c: c.depth):
        above = max((lost.get(child.fingerprint, MIN_TIME) for child in cell.node.inputs), default=MIN_TIME)
        if cell.responder is None:
            lost[cell.node.fingerprint] = above
            continue
        cell.responder.lost = max(cell.responder.lost, above)
        lost[cell.node.fingerprint] = cell.responder.lost_out
    return lost


def start_over(cells: list[Cell]) -> None:
    """Forgets all feedback; what lost something to it stays suppressed until punctuation closes it."""
    note_losses(cells)
    for cell in cells:
        if cell.responder is not None:
            cell.responder.start_over()


def _wishes(cell: Cell) -> list[list[Pattern]]:
    """What is wanted first of a step, and of each of its inputs."""
    return [cell.desired, *(edge.desired for edge in cell.inputs)]


def snapshot_of(cell: Cell) -> Chunks:
    """What feedback holds at a step, as chunks of what changed."""
    responder, place = cell.responder, cell.node.fingerprint
    chunks: Chunks = {}
    wishes = json.dumps([[p.to_json() for p in some] for some in _wishes(cell)]).encode()
    if wishes != cell.wished and (cell.wished or any(_wishes(cell))):
        chunks[f"{place}/{WISHES}"] = cell.wished = wishes
    if responder is None:
        return chunks
    chunks |= {f"{place}/feedback/{name}": data for name, data in responder.rows().items()}
    meta = json.dumps(responder.meta()).encode()
    if meta != responder.saved:
        chunks[f"{place}/{META}"] = responder.saved = meta
    return chunks


def restore_into(cell: Cell, chunks: Mapping[str, bytes]) -> None:
    """Takes what `snapshot_of` gave."""
    if WISHES in chunks:
        cell.wished = chunks[WISHES]
        for mine, saved in zip(_wishes(cell), json.loads(cell.wished), strict=False):
            mine[:] = [Pattern.from_json(p) for p in saved]
        cell.operator.prefer(list(cell.desired))
    if META not in chunks:
        return
    prefix = "feedback/"
    rows = {n[len(prefix) :]: d for n, d in chunks.items() if n.startswith(prefix) and n != META}
    meta: dict[str, Any] = json.loads(chunks[META])
    cell.listen().restore(meta, rows)
    cell.listen().saved = chunks[META]
