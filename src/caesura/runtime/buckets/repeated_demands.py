"""Demands that are repeated: earlier stages get them an epoch later each, and what they show comes later.

A stage gives what it has when a demand comes, and once more for every stage in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from caesura.events.chunks import Chunks, SavedJson
from caesura.punctuation import Intent, Punctuation

REPEATED = "again"
"""The note of a demand that stays in its stage: those before it have got it."""
Send = Callable[[str, Punctuation, int], None]


class RepeatedDemands:
    """The demands of one stage in one bucket for which answers may still come."""

    def __init__(self, stages_before: int) -> None:
        self._epochs = stages_before
        self._waiting: list[tuple[str, int, Punctuation, int]] = []
        """By output and reader, the demand, and for how many epochs answers may come."""
        self._saved = SavedJson("demands")

    def note(self, output: str, message: Punctuation, reader: int) -> None:
        """Takes note of a message that was given to the stage."""
        if message.intent is Intent.DEMANDED and self._epochs:
            self._waiting.append((output, reader, message, self._epochs))

    def repeat(self, send: Send) -> None:
        """Demands once more what earlier stages have sent on demand."""
        waiting, self._waiting = self._waiting, []
        for output, reader, message, epochs in waiting:
            if not message.noted(REPEATED):  # it came in this epoch
                self._waiting.append((output, reader, replace(message, note=((REPEATED, True),)), epochs))
                continue
            send(output, message, reader)
            if epochs > 1:
                self._waiting.append((output, reader, message, epochs - 1))

    def snapshot(self) -> Chunks:
        return self._saved.changed([[o, r, m.to_json(), n] for o, r, m, n in self._waiting] or None)

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        waiting = self._saved.read(chunks) or ()
        self._waiting = [(o, r, Punctuation.from_json(m), n) for o, r, m, n in waiting]
