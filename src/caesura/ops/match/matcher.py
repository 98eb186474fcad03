"""What a pattern finds in rows of groups, and what is shown of it: no state, columns in and columns out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.expr import predicate_mask
from caesura.kernels.hashing import I64, Mask
from caesura.ops.match.dependent import Conditions, DependentSearch
from caesura.ops.match.formula import Formula
from caesura.ops.match.node import MatchRows
from caesura.ops.match.pattern import program
from caesura.ops.match.registers import ConditionRegisters
from caesura.ops.match.runs import ConditionRuns
from caesura.ops.match.scalars import BeyondScalarsError
from caesura.ops.match.search import (
    NEXT_ROW,
    PAST_LAST,
    TO_FIRST,
    TO_LAST,
    Found,
    SearchRules,
    Segments,
    found_by_rows,
)
from caesura.ops.match.values import Columns, Matches, RowColumns, joined

SKIPS = {"past last row": PAST_LAST, "next row": NEXT_ROW, "first": TO_FIRST, "last": TO_LAST}


class RowMatcher:
    """The program of a pattern, its conditions and its measures, ready to run."""

    def __init__(self, node: MatchRows) -> None:
        self._shown = node.shown
        self._source, self._names = node.inputs[0], node.variables
        source = self._source
        target = np.array([name in node.skip.of for name in self._names], np.bool_)
        within = -1 if node.within is None else node.within
        code = program(node.pattern, self._names)
        self._rules = SearchRules(code, within, node.ahead, SKIPS[node.skip.to], target)
        self._by_rows: dict[int, Columns] = {}
        """By variable, what is asked of rows alone."""
        self._depending: dict[int, Columns] = {}
        """By variable, what depends on the rows that are matched before."""
        self._formulas: dict[str, Formula] = {}
        """The same, not compiled."""
        self._steps: list[list[int]] = code.tolist()
        for name, formula in node.define:
            alone = joined([part for part in formula.parts() if part.over_rows(name)])
            rest = joined([part for part in formula.parts() if not part.over_rows(name)])
            if rest is not None:
                self._formulas[name] = rest
            for made, to in ((alone, self._by_rows), (rest, self._depending)):
                if made is not None:
                    to[self._names.index(name)] = Columns(made, self._names, source.schema, source.time)
        self._measures = [Columns(one, self._names, source.schema, source.time) for _, one in node.measures]

    def found(self, columns: RowColumns, segments: Segments, owner: I64, numbers: I64) -> Found:
        """The matches of groups that have had so many before."""
        tests = self._tests(columns, segments, owner)
        if not self._depending:
            return found_by_rows(segments, self._rules, tests, columns.le)
        try:
            conditions = ConditionRegisters(self._formulas, self._names, self._steps, columns)
            return self._searched(conditions, columns, segments, tests, numbers)
        except BeyondScalarsError:
            runs = ConditionRuns(self._depending, self._steps, tests, columns)
            return self._searched(runs, columns, segments, tests, numbers)

    def has_registers(self) -> bool:
        """Whether what conditions know of a match fits into registers."""
        none = RowColumns(
            pa.RecordBatch.from_pylist([], self._source.schema), np.zeros(0, np.int64), self._source.time
        )
        try:
            ConditionRegisters(self._formulas, self._names, self._steps, none)
        except BeyondScalarsError:
            return False
        return True

    def _searched(
        self, conditions: Conditions, columns: RowColumns, segments: Segments, tests: Mask, numbers: I64
    ) -> Found:
        return DependentSearch(segments, self._rules, tests, conditions, columns.le, numbers).found()

    def _tests(self, columns: RowColumns, segments: Segments, owner: I64) -> Mask:
        """By row and variable, whether what its condition asks of rows alone holds."""
        low, high = segments.low[owner], segments.high[owner]
        tests = np.ones((len(owner), len(self._names)), np.bool_)
        for variable, condition in self._by_rows.items():
            tests[:, variable] = predicate_mask(condition.of_rows(columns, low, high))
        return tests

    def shown(
        self, found: Found, columns: RowColumns, segments: Segments, numbers: I64
    ) -> tuple[I64, I64, list[pa.Array]]:
        """Of each result the place of its row, where its search began, and its measures."""
        count = np.diff(found.first)
        number = np.arange(len(count)) - np.searchsorted(found.owner, found.owner) + numbers[found.owner] + 1
        bounds = segments.low[found.owner], segments.high[found.owner]
        matches = Matches(found.first, found.row, found.variable, number, *bounds)
        empty = np.flatnonzero(count == 0)
        if self._shown == "one":
            match, upto = np.arange(len(count)), found.first[1:]
            place = found.begin.copy()
            place[count > 0] = found.row[found.first[1:][count > 0] - 1]
        else:
            entry = np.flatnonzero(found.hidden == 0)
            match = np.repeat(np.arange(len(count)), count)[entry]
            upto, place = entry + 1, found.row[entry]
            if self._shown != "all without empty":
                match, upto = np.append(match, empty), np.append(upto, found.first[empty])
                place = np.append(place, found.begin[empty])
        measures = [one.at(columns, matches, match, upto) for one in self._measures]
        return place, found.begin[match], measures
