"""Whether a guard pays: what it costs against what the rows that it stops would cost the steps below.

Only guards that may be left out are weighed: those of steps that look at one row at a time, while no
retract may name a row that they stopped. Each looks at its first pages; if it then has cost more than it
saved, it looks at one page in many, ever fewer, until one of these says otherwise. Costs are counted in
prices that are constants, not readings of a clock, so that a run that is repeated decides alike.

Law: where a guard does not look, covered rows pass, which feedback allows; nothing else changes.

>>> worth = Worth(Saving(row=20, page=40_000))
>>> for _ in range(TRIAL): worth.looked(450, 3)
>>> worth.pays, [worth.looks() for _ in range(40)].count(True)
(False, 1)
"""

from __future__ import annotations

from typing import NamedTuple

LOOK_PAGE, LOOK_ROW = 45_000, 12
"""What it costs to find the rows of a page that match, in nanoseconds."""
CUT_PAGE, CUT_ROW = 45_000, 10
"""What it costs to cut a page to the rows that pass; a row counts that does."""
STEP_PAGE, PLAIN_ROW, STATE_ROW = 40_000, 12, 150
"""What a step costs for a page, for a row where it looks at one at a time, for a row where it has state."""
OUTPUT_ROW = 10
"""What it costs whoever takes a row that leaves the query, at the least."""
TRIAL = 8
"""So many pages a guard looks at before it is weighed."""
RECENT = 0.95
"""How much of what was counted before still counts a page later."""
SELDOM = 32
"""One in so many pages is looked at by a guard that does not pay."""
LONGEST_REST = 512
"""Each time that its guards do not pay a step rests for twice as many pages, up to so many."""


class Saving(NamedTuple):
    """What steps are saved, in nanoseconds: by a row that does not come, by a page none of which does."""

    row: float
    page: float


class Worth:
    """The account of one guard."""

    def __init__(self, saving: Saving) -> None:
        self._saving = saving
        self._balance = 0.0
        self._pages = 0
        self._passed = 0
        self._gained = False

    @property
    def pays(self) -> bool:
        """Whether it has saved as much as it cost, lately or with the last page, or is too new to tell."""
        return self._pages < TRIAL or self._gained or self._balance >= 0

    def looks(self) -> bool:
        """Whether the guard looks at the next page."""
        if self.pays:
            return True
        self._passed += 1
        return self._passed % SELDOM == 0

    def wake(self) -> None:
        """The next page is looked at."""
        self._passed = SELDOM - 1

    def looked(self, rows: int, stopped: int) -> None:
        """A page was looked at, and so many of its rows were stopped."""
        self._pages += 1
        cost = LOOK_PAGE + LOOK_ROW * rows
        if stopped == rows:
            saved = self._saving.row * rows + self._saving.page
        else:
            saved = self._saving.row * stopped
            cost += (CUT_PAGE + CUT_ROW * (rows - stopped)) if stopped else 0
        self._gained = saved >= cost
        self._balance = RECENT * self._balance + saved - cost
