"""What has entered a query besides rows, each with where the sources stood: for whoever reads them again.

Feedback of the consumer and readings of the clock decide which rows are left out, which are late and what is
final. So a rebuild lets them in again where they came first:

    {"at": {"in": {"0": 24}}, "output": "out", "message": ...}    feedback, behind row 24 of 'in'
    {"at": {"in": {"0": 36}}, "clock": 1700000000000000}          a reading for 'in', behind row 36

Readings between which nothing was read are one: the last. So the log grows with what is read, as a list of
files does, and not with time.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from caesura.events.chunks import Chunks, SavedJson
from caesura.punctuation import Punctuation
from caesura.runtime.graph.source_reader import lanes_of

HEAD = "entered"
SEGMENT = 500
"""So many entries lie in a chunk; those before the last are not written again."""
Position = Mapping[str, Mapping[str, int]]
"""Where sources stand, by label and lane."""


class EnteredLog:
    """Takes down what enters, in order, and saves it with the state."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.whole = True
        """Whether everything since the first row is in it; not in a checkpoint of an earlier version."""
        self._saved: dict[str, SavedJson] = {}
        self._sealed = 0
        """So many segments are saved and cannot change any more: an epoch does not look at them again."""

    def feedback(self, at: Position, output: str, message: Punctuation) -> None:
        """A message of the consumer."""
        self.entries.append({"at": _plain(at), "output": output, "message": message.to_json()})

    def clock(self, at: Position, reading: int) -> None:
        """A reading that has entered one source."""
        made = {"at": _plain(at), "clock": reading}
        if self.entries and "clock" in self.entries[-1] and self.entries[-1]["at"] == made["at"]:
            self.entries[-1] = made
        else:
            self.entries.append(made)

    @property
    def feedback_given(self) -> bool:
        """Whether a consumer has ever spoken."""
        return any("message" in entry for entry in self.entries)

    def snapshot(self) -> Chunks:
        """The chunks that have changed; none where the log is not whole, or empty."""
        chunks: Chunks = {}
        if not self.whole or not self.entries:
            return chunks
        last = (len(self.entries) - 1) // SEGMENT  # its last entry may be replaced
        for number in range(self._sealed, last + 1):
            name = f"{HEAD}:{number:06d}"
            saved = self._saved.setdefault(name, SavedJson(name))
            chunks |= saved.changed(self.entries[number * SEGMENT : (number + 1) * SEGMENT])
        self._sealed = last
        return chunks

    def restore(self, chunks: Mapping[str, bytes], *, spoken: bool) -> None:
        """Goes on with what was saved; ``spoken``: feedback was given, or a clock was read."""
        self.entries, self._sealed = [], 0
        for number in count():
            name = f"{HEAD}:{number:06d}"
            if name not in chunks:
                break
            self._saved[name] = SavedJson(name)
            self.entries += self._saved[name].read(chunks)
        self.whole = bool(self.entries) or not spoken

    def carry(self, names: Mapping[str, str]) -> None:
        """Takes other names of sources; what was said of one that is gone says nothing any more."""
        self._sealed = 0
        for entry in self.entries:
            entry["at"] = {names.get(label, label): at for label, at in entry["at"].items()}

    def begin_anew(self) -> None:
        """Has the next snapshot hold everything."""
        self._saved, self._sealed = {}, 0

    def settled(self, positions: Position) -> int:
        """How many entries stay, if sources stand there: a reading that came last may be replaced."""
        count = len(self.entries)
        if count and "clock" in self.entries[-1]:
            ((label, at),) = self.entries[-1]["at"].items()
            stands = {str(lane): row for lane, row in lanes_of(positions.get(label, {})).items()}
            return count - 1 if stands == at else count
        return count


def _plain(at: Position) -> dict[str, dict[str, int]]:
    return {label: dict(lanes) for label, lanes in at.items()}
