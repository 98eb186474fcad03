"""Which rows of a plan's input are meant: those that match a pattern, or those of a list.

>>> import pyarrow as pa
>>> rows = ListedRows(frozenset({InputRow("read", 0, 1)}))
>>> list(map(bool, rows.read("read", Raw(0, 0, pa.record_batch({"id": [7, 8]})))))
[False, True]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from caesura.errors import PlanError, closest
from caesura.events import Page
from caesura.io.sources.source import Source
from caesura.kernels.hashing import Mask
from caesura.plan import Node, Raw, walk
from caesura.punctuation import Pattern
from caesura.runtime.graph.edge import wanted


@dataclass(frozen=True, order=True)
class InputRow:
    """A row of the input: of a source by lane and offset, of an input that is fed by its number."""

    step: str
    lane: int
    offset: int

    def __str__(self) -> str:
        return f"row {self.offset} of '{self.step}'" + (f", lane {self.lane}" if self.lane else "")


class RowChoice(Protocol):
    """Says of rows whether they are meant."""

    def read(self, step: str, raw: Raw, /) -> Mask:
        """Which rows of a source."""

    def fed(self, label: str, first: int, page: Page, /) -> Mask:
        """Which rows of an input, of which so many came before."""


@dataclass(frozen=True)
class MatchingRows:
    """Rows with columns that match; a source without these columns has none."""

    pattern: Pattern

    def read(self, step: str, raw: Raw) -> Mask:
        if not set(self.pattern.attributes) <= set(raw.batch.schema.names):
            return np.zeros(raw.batch.num_rows, np.bool_)
        return self.pattern.check(raw.batch.schema, ticks=()).matches(raw.batch)

    def fed(self, label: str, first: int, page: Page) -> Mask:
        if not set(self.pattern.attributes) <= set(page.schema.names):
            return np.zeros(len(page), np.bool_)
        return wanted(page, [self.pattern.check(page.schema, ticks=())])


@dataclass(frozen=True)
class ListedRows:
    """Rows of a list."""

    rows: frozenset[InputRow]

    def read(self, step: str, raw: Raw) -> Mask:
        names = (InputRow(step, raw.lane, raw.offset_of(at)) for at in range(raw.batch.num_rows))
        return np.fromiter((name in self.rows for name in names), np.bool_, raw.batch.num_rows)

    def fed(self, label: str, first: int, page: Page) -> Mask:
        names = (InputRow(label, 0, first + at) for at in range(len(page)))
        return np.fromiter((name in self.rows for name in names), np.bool_, len(page))


def refuse_unknown(node: Node, chosen: Pattern) -> None:
    """Refuses columns that no one source has."""
    given = [n.reader.schema if isinstance(n, Source) else n.schema for n in walk(node) if not n.inputs]
    known = sorted({name for schema in given for name in schema.names})
    for name in chosen.attributes:
        if name not in known:
            raise PlanError(f"no source has a column '{name}'.", remedy=closest(name, known))
    if not any(set(chosen.attributes) <= set(schema.names) for schema in given):
        raise PlanError(
            f"no source has all of the columns {', '.join(chosen.attributes)}.",
            remedy="Choose rows by the columns of one source.",
        )
