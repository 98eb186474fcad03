"""The guards of one step: before each input, at its output, and over what a withdrawal left incomplete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from caesura.events.chunks import Chunks, under
from caesura.events.page import Page
from caesura.feedback.guard import Guard
from caesura.feedback.worth import Saving, Worth
from caesura.plan import Node
from caesura.punctuation import MIN_TIME, Pattern, Promises

STOPPED_AT_INPUT, STOPPED_AT_OUTPUT = "stopped at the input", "stopped at the output"


class StepGuards:
    """All places of a step where rows are stopped on account of feedback."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.inputs = [Guard(child.schema, child.properties) for child in node.inputs]
        self.blind = [Guard(child.schema, child.properties, blind=True) for child in node.inputs]
        """Before groups that were given up whole."""
        given = node.properties.but(insert_only=False) if node.shows_early else node.properties
        self.output = Guard(node.schema, given)
        self.closing = Guard(node.schema, given)
        """What stays suppressed after a withdrawal, until punctuation closes it."""
        self.unshown = Guard(node.schema, given, blind=True)
        """Results among those of which nothing was shown: a step that has forgotten rows may retract such."""
        self._all = (*self.inputs, *self.blind, self.output, self.closing)
        self._keeping = [guard for guard in self._all if guard.bag is not None]
        self.moving = False
        """Whether rows that were stopped before a withdrawal may yet end later."""

    def weigh(self, at_inputs: Saving, at_output: Saving) -> None:
        """Lets guards that results do not depend on be weighed by what they save."""
        for guard in self.inputs:
            guard.worth = Worth(at_inputs)
        self.output.worth = Worth(at_output)

    def can_rest(self, above: StepGuards | None) -> bool:
        """Whether every guard that stands may be left out, and does not pay."""
        if self.closing.active or self.moving or any(guard.active for guard in self.blind):
            return False
        standing = [guard for guard in (*self.inputs, self.output) if guard.active]
        return all(guard.rests(None if above is None else above.output) for guard in standing)

    def wake(self) -> None:
        """Lets guards that did not pay look at the next page."""
        for guard in (*self.inputs, self.output):
            if guard.worth is not None:
                guard.worth.wake()

    @property
    def named(self) -> dict[str, Guard]:
        """All of them, under the names that they are saved by."""
        named = {f"input {i}": g for i, g in enumerate(self.inputs)}
        named |= {f"blind {i}": g for i, g in enumerate(self.blind)}
        return {**named, "output": self.output, "closing": self.closing, "unshown": self.unshown}

    @property
    def before(self) -> tuple[Guard, ...]:
        """Those in front of the step."""
        return *self.inputs, *self.blind

    @property
    def holds_rows(self) -> bool:
        """Whether any keeps rows that a retract may still name."""
        return any(guard.holds_rows for guard in self._keeping)

    def _note_moving(self) -> None:
        self.moving = any(guard.moving is not None for guard in self._all)

    @property
    def size(self) -> int:
        """Patterns and rows that the guards hold."""
        return sum(guard.size for guard in self.named.values())

    @property
    def lost_until(self) -> int:
        """The latest end of an input row that was stopped."""
        return max((guard.until for guard in self.before), default=MIN_TIME)

    def admit(self, port: int, page: Page, above: StepGuards | None) -> Page:
        """The rows of a page that reach the step; what the step above keeps back is not looked for again."""
        if port >= len(self.inputs):
            return page
        blind = self.blind[port]
        if self.moving:
            blind.follow(page)
        if blind.active:
            page = blind.stop(page)
        guard = self.inputs[port]
        if not guard.active and guard.bag is None:
            return page
        if above is not None and above.output.active and guard.implied_by(above.output):
            return page
        return guard.stop(page)

    def release(self, page: Page) -> Page:
        """The rows of a page that leave the step."""
        page = self.closing.stop(self.output.stop(page))
        return self.unshown.stop(page) if self.unshown.active else page

    def clear(self) -> None:
        """Stops nothing more on account of what consumers assume."""
        for guard in (*self.before, self.output):
            guard.replace([])

    def watch(self, promises: Sequence[Promises], given: Promises) -> None:
        """A withdrawal comes: follows the rows stopped so far until none of them can end later."""
        for guards in (self.inputs, self.blind):
            for guard, known in zip(guards, promises, strict=False):
                guard.watch(known.cti)
        for guard in (self.output, self.closing):
            guard.watch(given.cti)
        self._note_moving()

    def settle(self, promises: Sequence[Promises], given: Promises) -> int:
        """Lets go of what punctuation covers, at the inputs and the output; gives how many patterns went."""
        dropped = 0
        for port, known in enumerate(promises[: len(self.inputs)]):
            dropped += self.inputs[port].settle(known) + self.blind[port].settle(known)
        dropped += self.output.settle(given) + self.closing.settle(given)
        if self.unshown.active:
            dropped += self.unshown.settle(given)
        if self.moving:
            self._note_moving()
        return dropped

    def held(self) -> Iterator[Pattern]:
        """All patterns that are mounted, with `time` for LE."""
        for guard in self.named.values():
            yield from guard.held.patterns()

    def counts(self) -> dict[str, int]:
        """How many rows were stopped where, and what is held for it."""
        stopped = {
            STOPPED_AT_INPUT: sum(guard.hits for guard in self.before),
            STOPPED_AT_OUTPUT: self.output.hits + self.closing.hits,
        }
        held = {"guard state": self.size, "suppressed": len(self.closing.patterns)}
        return {place: n for place, n in stopped.items() if n} | held

    def rejected_rows(self) -> Iterator[tuple[Node, pa.Table]]:
        """The rows stopped for a reason that is known since the last call, with the step they are of."""
        for port, child in enumerate(self.node.inputs):
            for guard in (self.blind[port], self.inputs[port]):
                if (rows := guard.take_noted(child.time)) is not None:
                    yield child, rows
        if (rows := self.output.take_noted(self.node.time)) is not None:
            yield self.node, rows

    def to_json(self) -> dict[str, Any]:
        return {name: guard.to_json() for name, guard in self.named.items()}

    def rows(self) -> Chunks:
        """The rows that the guards keep."""
        return {f"{name}/{n}": data for name, g in self.named.items() for n, data in g.snapshot().items()}

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, bytes]) -> None:
        for name, guard in self.named.items():
            if name in meta:
                guard.restore(meta[name], under(f"{name}/", chunks))
        self._note_moving()
