"""Conditions of any kind on what is matched so far, computed by columns.

A condition is computed for a run of rows at once, as if all of them were matched to its variable: the next
row of the run finds its answer there. Only steps behind which no such condition is asked fail for good.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import numpy.typing as npt

from caesura.expr import predicate_mask
from caesura.kernels.hashing import Mask
from caesura.ops.match.dependent import Matched, asked_behind, listed
from caesura.ops.match.values import Columns, Matches, RowColumns

LONGEST_RUN = 256


class ConditionRuns:
    """Conditions by variable, over rows of groups."""

    forgets = True

    def __init__(
        self, conditions: Mapping[int, Columns], steps: list[list[int]], tests: Mask, rows: RowColumns
    ) -> None:
        self._conditions, self._tests, self._rows = conditions, tests, rows
        asks = {variable: frozenset([variable]) for variable in conditions}
        self._alone = [not asked for asked in asked_behind(steps, asks)]
        self._low = self._high = self._number = 0

    def begin(self, low: int, high: int, number: int) -> None:
        self._low, self._high, self._number = low, high, number

    def key(self, step: int, at: int, path: Matched | None) -> Hashable | None:
        return (step, at) if self._alone[step] else None

    def take(self, path: Matched | None, at: int, step: int, variable: int) -> Matched | None:
        condition = self._conditions.get(variable)
        if condition is None:
            return Matched(path, at, step, variable, None)
        run, place = None, 0
        if path is not None and path.variable == variable:
            run, place = path.known, path.place + 1
        if not isinstance(run, np.ndarray) or place >= len(run):
            length = min(4 * len(run), LONGEST_RUN) if isinstance(run, np.ndarray) else 1
            run, place = self._run(condition, path, at, variable, length), 0
        return Matched(path, at, step, variable, run, place) if run[place] else None

    def _run(
        self, condition: Columns, path: Matched | None, at: int, variable: int, length: int
    ) -> npt.NDArray[np.bool_]:
        """Whether a condition holds for a row, and for those behind it if all before them are matched too."""
        last = min(at + length, self._high)
        fails = np.flatnonzero(~self._tests[at:last, variable])
        last = at + int(fails[0]) if len(fails) else last
        before = listed(path)
        rows = np.array([one.row for one in before] + list(range(at, last)), np.int64)
        variables = np.array([one.variable for one in before] + [variable] * (last - at), np.int64)
        one = (np.array([each]) for each in (self._number, self._low, self._high))
        found = Matches(np.array([0, len(rows)]), rows, variables, *one)
        upto = len(before) + 1 + np.arange(last - at)
        return predicate_mask(condition.at(self._rows, found, np.zeros(len(upto), np.int64), upto))
