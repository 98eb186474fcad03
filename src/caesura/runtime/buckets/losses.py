"""After a withdrawal: how late the rows end that earlier stages have lost to the feedback.

A step keeps back results that may lack something. What was left out in front of an exchange it cannot know,
so at first it keeps back everything that was assumed. The stage that gets the withdrawal answers how late
the rows end that it has left out, with its next packets or once none of them can end later any more; from
then on only results that start before are kept back. A stage that has to ask further up answers when it is
answered.

Law: a result that any lost row could have changed is kept back; one that starts later comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caesura.events.chunks import Chunks, SavedJson
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.runtime.feedback.losses import spread
from caesura.runtime.graph.cell import Cell


class Losses:
    """What the stages before this one answered, and whom this one still has to answer."""

    def __init__(
        self,
        cells: Sequence[Cell],
        arrivals: Mapping[str, Cell],
        departures: Mapping[str, Cell],
        buckets: int,
    ) -> None:
        self._cells, self._arrivals, self._departures = cells, arrivals, departures
        self.buckets = buckets
        self.answers: dict[str, dict[str, int]] = {}
        """By arrival that was asked, what each bucket in front of it answered."""
        self.owed: list[str] = []
        """Departures whose readers wait for an answer."""
        self._saved = SavedJson("losses")

    def withdrawn(self, departure: str | None) -> None:
        """A withdrawal came, from the readers of a departure, or of an output."""
        if departure is not None and departure not in self.owed:
            self.owed.append(departure)
        self.answers = {label: {} for label in self._arrivals if self._unknown(label)}

    def _unknown(self, label: str) -> bool:
        responder = self._arrivals[label].responder
        return responder is not None and responder.suppression.lost == INFINITY

    def answered(self, label: str, origin: str, until: int) -> None:
        """A bucket in front of an arrival says how late the rows end that it left out."""
        if label in self.answers:
            self.answers[label][origin] = until

    def settle(self, *, moving: bool) -> dict[str, int]:
        """Once all have answered: keeps back less here, and gives the answers that this stage owes.

        Not while rows that it left out are ``moving``, so that they may yet end later.
        """
        if not (self.owed or self.answers) or any(len(a) < self.buckets for a in self.answers.values()):
            return {}
        if moving or any(cell.responder is not None and cell.responder.guards.moving for cell in self._cells):
            return {}
        known = {label: max(a.values()) for label, a in self.answers.items()}
        lost = self._bounded(known)
        due = {label: lost[self._departures[label].node.fingerprint] for label in self.owed}
        self.answers, self.owed = {}, []
        return due

    def _bounded(self, known: Mapping[str, int]) -> dict[str, int]:
        """How late each step's losses end, now that it is known what was lost above."""
        responders = [cell.responder for cell in self._cells if cell.responder is not None]
        before = [responder.suppression.lost for responder in responders]
        for responder in responders if known else ():
            if responder.suppression.lost == INFINITY:
                responder.suppression.lost = MIN_TIME
        for label, until in known.items():
            above = self._arrivals[label].responder
            if above is not None:
                above.suppression.lost = until
        lost = spread(self._cells)
        for responder, was in zip(responders, before, strict=True):
            responder.narrow()
            responder.suppression.lost = was
        return lost

    def snapshot(self) -> Chunks:
        open_ = self.owed or self.answers
        return self._saved.changed({"answers": self.answers, "owed": self.owed} if open_ else None)

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes back what `snapshot` gave."""
        saved = self._saved.read(chunks)
        if saved is not None:
            self.answers, self.owed = saved["answers"], saved["owed"]
