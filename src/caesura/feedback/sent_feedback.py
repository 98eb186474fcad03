"""What a step has sent to its inputs: nothing is sent twice, and what stands can be withdrawn."""

from __future__ import annotations

from caesura.feedback.agreement import still_ahead
from caesura.feedback.guard import drop_overtaken
from caesura.feedback.messages import assumed
from caesura.plan import Node, Operator, Up
from caesura.punctuation import Pattern, Promises


class SentFeedback:
    """The patterns that were sent, by input."""

    def __init__(self, node: Node, operator: Operator) -> None:
        self._reads, self._operator = not node.inputs, operator
        self._ports = max(1, len(node.inputs))  # a step that reads sends out of the plan
        self.clear()

    def clear(self) -> None:
        self.patterns = [Promises() for _ in range(self._ports)]
        self.standing: list[list[Pattern]] = [[] for _ in range(self._ports)]

    def known(self, port: int, given: Promises) -> Promises:
        """The punctuation that ends what was sent to an input."""
        return given if self._reads else self._operator.promises[port]

    def settle(self, given: Promises) -> None:
        """Forgets what punctuation covers."""
        for port, sent in enumerate(self.patterns):
            known = self.known(port, given)
            drop_overtaken(sent, known)
            if self.standing[port]:
                self.standing[port] = still_ahead(self.standing[port], known)


def changed(before: list[list[Pattern]], again: list[Up]) -> list[Up]:
    """The messages by which what was sent becomes what is sent again: withdrawals, then news."""
    messages: list[Up] = []
    for port, some in enumerate(before):
        mine = [m for p, m in again if p == port]
        upheld = [m.pattern for m in mine]
        ended = [old for old in some if old not in upheld]
        messages += [(port, assumed(old, standing=True, withdrawn=True)) for old in ended]
        messages += [(port, m) for m in mine if m.pattern not in some]
    return messages
