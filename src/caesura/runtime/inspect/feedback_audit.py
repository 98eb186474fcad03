"""An audit: the same input with and without feedback, and whether what is missing was to be ignored.

Law: SR - subset(SR, f) is a part of S, and S is a part of SR, as bags of rows of the final history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from caesura.errors import PlanError
from caesura.events import History
from caesura.events.history import Row
from caesura.feedback.predicates import Meant, patterns_of
from caesura.ops.pace import Pace
from caesura.plan import Counters, Node, walk
from caesura.plan.prune import prune
from caesura.runtime.graph.edge import wanted
from caesura.runtime.query.query import Query


@dataclass(frozen=True)
class FeedbackAudit:
    """What two runs of a plan came to."""

    rows: int
    """How many rows there are without feedback."""
    left_out: int
    """How many of them feedback left out."""
    lost: list[Row] = field(default_factory=list)
    """Rows left out that no feedback covers; there must be none."""
    made_up: list[Row] = field(default_factory=list)
    """Rows that are not there without feedback; there must be none."""
    saved: dict[str, int] = field(default_factory=dict)
    """Per step, how many rows it took fewer."""

    @property
    def holds(self) -> bool:
        return not self.lost and not self.made_up

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain values."""
        own = {"holds": self.holds, "rows": self.rows, "left_out": self.left_out, "saved": self.saved}
        return {**own, "lost": [str(r) for r in self.lost], "made_up": [str(r) for r in self.made_up]}

    def __str__(self) -> str:
        head = f"{'holds' if self.holds else 'BROKEN'}: {self.left_out} of {self.rows} rows left out"
        lines = [f"lost, though nobody said so: {row}" for row in self.lost]
        lines += [f"made up: {row}" for row in self.made_up]
        lines += [f"{step}: {n} rows fewer" for step, n in self.saved.items() if n]
        return "\n".join([head, *lines])


def audit_feedback(node: Node, assumed: Sequence[tuple[int, Meant]]) -> FeedbackAudit:
    """Runs a plan twice: without feedback, and saying each thing once so many rows have come out."""
    paced = next((n for n in walk(node) if isinstance(n, Pace)), None)
    if paced is not None:
        raise PlanError(
            "what 'pace' lets through depends on arrival, so two runs need not agree.",
            remedy="Audit the plan with union in its place.",
        ).at(paced.step, paced.place)
    plain = _run(node, ())
    with_feedback = _run(node, assumed, listening=True)
    whole, got = plain[0], with_feedback[0]
    missing = whole.bag - got.bag
    lost = _uncovered(node, whole, missing, [s for _, s in assumed])
    before, after = plain[1], with_feedback[1]
    saved = {step: c.rows_in - after[step].rows_in for step, c in before.items() if step in after}
    return FeedbackAudit(
        len(whole), sum(missing.values()), lost, list((got.bag - whole.bag).elements()), saved
    )


def _run(
    node: Node, assumed: Sequence[tuple[int, Meant]], *, listening: bool = False
) -> tuple[History, dict[str, Counters]]:
    query = Query(prune({"out": node}), listens=listening)
    items, waiting = [], sorted(assumed, key=lambda pair: pair[0])
    seen = 0
    while True:
        while waiting and waiting[0][0] <= seen:
            query.assume(waiting.pop(0)[1])
        going = query.step()
        fresh = query.take("out")
        seen += sum(len(item) for item in fresh if not hasattr(item, "intent"))
        items += fresh
        if not going:
            return History.of(items, node.schema), query.counters()


def _uncovered(node: Node, whole: History, missing: dict[Row, int], assumed: list[Meant]) -> list[Row]:
    patterns = [p for each in assumed for p in patterns_of(each, node.schema, node.time)]
    page = whole.page
    if len(page) == 0:
        return []
    covered = wanted(page, patterns)
    keys = [next(iter(History(page.slice(i, 1)).bag)) for i in range(len(page))]
    free = {key for key, c in zip(keys, covered.tolist(), strict=True) if c}
    return [row for row in missing for _ in range(missing[row]) if row not in free]
