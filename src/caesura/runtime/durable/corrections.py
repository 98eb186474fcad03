"""What makes the new history of an output of the old one, and which final rows that would touch.

Rows are counted by value: how often the sink holds each, how often the new plan gives it, and how often
either has said that it is final. The difference is a correction, as long as no row that was final is taken
back or is final no more, and none is added to time that final rows have covered.

     old   0 10 | 3 | +  final           new   0 10 | 4 | +  final
     differs:  - (3) on [0, 10)   + (4) on [0, 10)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events import History, Item, Page
from caesura.events.delta import net_page
from caesura.events.identity import LOCAL
from caesura.events.page import concat, take_rows
from caesura.io.sinks.rows import changed_page
from caesura.kernels.hashing import I64
from caesura.ops.deliver import Deliver
from caesura.plan import Node
from caesura.punctuation import INFINITY, MIN_TIME

FinalRows = Literal["refuse", "keep", "new_generation"]
"""Where rows that were final would differ: stop and list them, keep them, or begin a new generation."""
Form = Literal["changes", "final", "marked"]
SHOWN = 10
"""So many of the rows that would differ are listed."""


def form_of(node: Node) -> Form:
    """What the rows of an output say of being final."""
    return node.mode if isinstance(node, Deliver) else "changes"


def forms_of(outputs: Mapping[str, Node]) -> dict[str, str]:
    """The same of all outputs."""
    return {name: form_of(node) for name, node in outputs.items()}


@dataclass(frozen=True)
class Differing:
    """Rows that were final and would differ, of one output."""

    output: str
    lost: Page
    gained: Page

    def __len__(self) -> int:
        return len(self.lost) + len(self.gained)

    def lines(self) -> list[str]:
        signed = [("-", row) for row in self.lost.rows()] + [("+", row) for row in self.gained.rows()]
        signed.sort(key=lambda one: (one[1][0], one[1][1], one[0] == "+", str(one[1][-1])))
        shown = [f"  {sign} {row[-1]} on [{row[0]}, {row[1]}) of '{self.output}'" for sign, row in signed]
        more = len(shown) - SHOWN
        return shown[:SHOWN] + ([f"  and {more} more of '{self.output}'"] if more > 0 else [])


@dataclass(frozen=True)
class Correction:
    """What a sink gets of an output, and the final rows that are not as the new plan has them."""

    pages: list[Page]
    differing: Differing
    behind: bool = False
    """Whether the new plan can still change what was final."""


def correction(
    rows: pa.Table, then: str, output: str, node: Node, items: Sequence[Item], *, keep: bool
) -> Correction:
    """The correction of an output of which the sink holds these rows; ``keep`` leaves final rows alone."""
    schema, time = node.schema, node.time
    old = History.of([changed_page(rows, schema, time)], schema).page
    new = History.of(items, schema).page
    old_final = old if then == "final" else changed_page(rows, schema, time, kinds=("=",))
    new_final = new if form_of(node) == "final" else _marks(items, schema)
    kinds = _Kinds([old, new, old_final, new_final])
    held, given, was_final, is_final = kinds.counts
    lost = np.maximum(was_final - is_final, 0)
    finite = (was_final > 0) & (kinds.re < INFINITY)
    covered = int(kinds.re[finite].max(initial=MIN_TIME))
    gained = np.where(kinds.re <= covered, np.maximum(given - held, 0), 0)
    target, marks = given, is_final
    if keep:
        target = np.where(gained > 0, held, np.maximum(given, was_final))
        marks = np.where(gained > 0, 0, is_final)
    pages = [kinds.changes(target - held)]
    if form_of(node) == "marked":
        pages.append(replace(kinds.times(np.maximum(marks - was_final, 0)), settled=True))
    differing = Differing(output, kinds.times(lost), kinds.times(gained))
    return Correction([page for page in pages if len(page)], differing, promised(items) < covered)


def _marks(items: Sequence[Item], schema: pa.Schema) -> Page:
    return concat([replace(i, settled=False) for i in items if isinstance(i, Page) and i.settled], schema)


def promised(items: Sequence[Item]) -> int:
    """Up to where nothing changes any more."""
    alone = [i.pattern for i in items if not isinstance(i, Page) and not i.pattern.without_time().attributes]
    return max((p.time_bound for p in alone if p.time_bound is not None), default=MIN_TIME)


class _Kinds:
    """Rows of several pages by value, and how often each page has each."""

    def __init__(self, pages: Sequence[Page]) -> None:
        whole = concat(pages, pages[0].schema)
        high, low = whole.ids(LOCAL)
        keys = np.stack([high.view(np.int64), low.view(np.int64), whole.le, whole.re], axis=1)
        _, first, kind = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        kind = kind.reshape(-1)
        ends = np.cumsum([0, *map(len, pages)])
        self._whole, self._first = whole, first
        self.counts: list[I64] = [np.bincount(kind[a:b], minlength=len(first)) for a, b in pairwise(ends)]
        self.le, self.re = whole.le[first], whole.re[first]

    def times(self, often: I64) -> Page:
        """Each row so often."""
        rows = np.repeat(self._first, often)
        return Page(self._whole.le[rows], self._whole.re[rows], take_rows(self._whole.payload, rows))

    def changes(self, weight: I64) -> Page:
        """The smallest page that adds each row so often, or takes it back."""
        kinds = np.repeat(np.arange(len(weight)), np.abs(weight))
        payload = take_rows(self._whole.payload, self._first[kinds])
        return net_page(payload, self.le[kinds], self.re[kinds], np.sign(weight[kinds]))


def settle(made: Mapping[str, Correction], final_rows: FinalRows, *, only_final: bool) -> bool:
    """Whether a new generation begins; refuses what is not to be touched, or cannot be kept."""
    differing = [one.differing for one in made.values() if len(one.differing)]
    if not differing:
        return False
    if final_rows == "new_generation":
        return True
    lines = [line for one in differing for line in one.lines()]
    listed = "\n".join([*lines, ""])
    number = sum(map(len, differing))
    count = f"{number} row{'s' if number > 1 else ''}"
    if only_final or final_rows == "refuse":
        keep = "" if only_final else ", or final_rows='keep', which leaves these rows as they are"
        raise StreamError(
            f"{count} that were final would differ:",
            remedy=f"{listed}Take final_rows='new_generation', which begins the output anew beside the old"
            f"{keep}; or put the steps back.",
        )
    if any(one.behind for one in made.values()):
        raise StreamError(
            f"{count} that were final cannot be kept, since the new plan can still change that time:",
            remedy=f"{listed}Take final_rows='new_generation', or a plan that promises as much as the old.",
        )
    return False
