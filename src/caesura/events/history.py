"""The canonical history table: what a stream says, whatever order and corrections said it.

Law: two physical streams mean the same exactly when their histories are equal as bags.

>>> insert = Page.of(pa.record_batch({"p": ["P1"]}), le=[1], re=[INFINITY])
>>> shorten = Page.of(pa.record_batch({"p": ["P1"]}), le=[1], re=[INFINITY], re_new=[5])
>>> History.of([insert, shorten], insert.schema).rows()
[(1, 5, ('P1',))]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.columns import empty_rows
from caesura.events.delta import fold
from caesura.events.item import Item, pages
from caesura.events.page import Page, concat
from caesura.misuse import checked_methods
from caesura.plain_arrays import plain_array
from caesura.punctuation import INFINITY

Row = tuple[int, int, tuple[object, ...]]


@checked_methods
@dataclass(frozen=True)
class History:
    """A bag of (LE, RE, payload)."""

    page: Page

    @staticmethod
    def of(items: Iterable[Item], schema: pa.Schema) -> History:
        """The history of a stream's items: what is left when all corrections are applied.

        Parameters
        ----------
        items
            Pages and punctuation, in the order in which they came.
        schema
            The payload's columns.

        Returns
        -------
        History
            The history.

        Raises
        ------
        StreamError
            Where a correction names an event that is not there.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import caesura as cz
        >>> items = cz.parse('''
        ...  LE RE   | id |
        ...   1 9    | 7  | +
        ...   1 9->5 | 7  | -
        ... ''')
        >>> cz.History.of(items, pa.schema([("id", pa.int64())]))
         LE  RE | id |
          1  5  | 7  | +
        """
        whole = concat(pages(items), schema)
        live, unmatched = fold(whole)
        if unmatched.any():
            row = whole.take(np.flatnonzero(unmatched)[:1]).rows()[0]
            raise StreamError(
                f"a retract of {row[3]} on [{row[0]}, {row[1]}) matches no event.",
                remedy="Retracts name an event by value: payload, LE and RE must be those last given.",
            )
        return History(live)

    @staticmethod
    def from_rows(rows: Iterable[Row], schema: pa.Schema) -> History:
        """A history of plain rows, for tests and small tables.

        Parameters
        ----------
        rows
            Each with its start, its end and the values of its columns: ``(1, 9, (7,))``.
        schema
            The payload's columns.

        Returns
        -------
        History
            The history.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import History
        >>> schema = pa.schema([("id", pa.int64())])
        >>> history = History.from_rows([(1, 9, (7,)), (3, 5, (8,))], schema)
        >>> history
         LE  RE | id |
          1  9  | 7  | +
          3  5  | 8  | +
        """
        some = list(rows)
        values = list(zip(*(r[2] for r in some), strict=True)) or [() for _ in schema]
        columns = [plain_array(list(v), f.type) for v, f in zip(values, schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema) if columns else empty_rows(len(some))
        return History(Page.of(batch, le=[r[0] for r in some], re=[r[1] for r in some]))

    def __len__(self) -> int:
        return len(self.page)

    @property
    def schema(self) -> pa.Schema:
        """The payload columns."""
        return self.page.schema

    def rows(self) -> list[Row]:
        """The rows in order of start, end and values.

        Returns
        -------
        list
            Tuples of a start, an end and the values.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import History
        >>> schema = pa.schema([("id", pa.int64())])
        >>> history = History.from_rows([(1, 9, (7,)), (3, 5, (8,))], schema)
        >>> history.rows()
        [(1, 9, (7,)), (3, 5, (8,))]
        """
        plain = [(le, re, row) for le, re, _, row in self.page.rows()]
        return sorted(plain, key=lambda r: (r[0], r[1], tuple(_sortable(v) for v in r[2])))

    @cached_property
    def bag(self) -> Counter[Row]:
        """The rows with their multiplicities, in a form where NaN equals NaN and -0.0 equals 0.0."""
        return Counter((le, re, tuple(map(comparable, row))) for le, re, row in self.rows())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.bag == other.bag

    def __hash__(self) -> int:
        return hash(frozenset(self.bag.items()))

    def difference(self, other: History) -> tuple[list[Row], list[Row]]:
        """What only one of two histories has.

        Parameters
        ----------
        other
            The other history.

        Returns
        -------
        tuple
            The rows only here, and the rows only there.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import History
        >>> schema = pa.schema([("id", pa.int64())])
        >>> history = History.from_rows([(1, 9, (7,)), (3, 5, (8,))], schema)
        >>> history.difference(History.from_rows([(1, 9, (7,))], schema))
        ([(3, 5, (8,))], [])
        """
        mine, theirs = self.bag, other.bag
        return sorted((mine - theirs).elements(), key=str), sorted((theirs - mine).elements(), key=str)

    def before(self, t: int) -> Counter[Row]:
        """The part of the history before a time, with lifetimes cut there.

        Parameters
        ----------
        t
            The time, in ticks.

        Returns
        -------
        Counter
            How often each row is there.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import History
        >>> schema = pa.schema([("id", pa.int64())])
        >>> history = History.from_rows([(1, 9, (7,)), (3, 5, (8,))], schema)
        >>> history.before(2)
        Counter({(1, 2, (7,)): 1})
        """
        cut: Counter[Row] = Counter()
        for (le, re, row), n in self.bag.items():
            if le < t:
                cut[(le, min(re, t), row)] += n
        return cut

    def at(self, t: int) -> Counter[tuple[object, ...]]:
        """What is alive at a time.

        Parameters
        ----------
        t
            The time, in ticks.

        Returns
        -------
        Counter
            How often each tuple of values is there.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import History
        >>> schema = pa.schema([("id", pa.int64())])
        >>> history = History.from_rows([(1, 9, (7,)), (3, 5, (8,))], schema)
        >>> history.at(4) == {(7,): 1, (8,): 1}
        True
        """
        alive: Counter[tuple[object, ...]] = Counter()
        for (le, re, row), n in self.bag.items():
            if le <= t < re:
                alive[row] += n
        return alive

    def table(self) -> pa.Table:
        """The history as an Arrow table.

        Returns
        -------
        pyarrow.Table
            The columns ``LE`` and ``RE``, then those of the payload.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import History
        >>> schema = pa.schema([("id", pa.int64())])
        >>> history = History.from_rows([(1, 9, (7,)), (3, 5, (8,))], schema)
        >>> history.table().to_pylist()
        [{'LE': 1, 'RE': 9, 'id': 7}, {'LE': 3, 'RE': 5, 'id': 8}]
        """
        columns: dict[str, Any] = {"LE": self.page.le, "RE": self.page.re}
        for name, column in zip(self.schema.names, self.page.payload.columns, strict=True):
            columns[name] = column
        return pa.table(columns)

    def __repr__(self) -> str:
        from caesura.events.draw import draw

        return draw([self.ordered()])

    def ordered(self) -> Page:
        """The rows in order, as a page.

        Returns
        -------
        Page
            One page.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import History
        >>> schema = pa.schema([("id", pa.int64())])
        >>> history = History.from_rows([(1, 9, (7,)), (3, 5, (8,))], schema)
        >>> len(history.ordered())
        2
        """
        return History.from_rows(self.rows(), self.schema).page

    def _repr_html_(self) -> str:
        from caesura.events.show.html import timeline_html

        return timeline_html(self.ordered(), self.schema)


def comparable(value: object) -> object:
    """A value in a form where NaN equals NaN and -0.0 equals 0.0."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, dict):
        return tuple((k, comparable(v)) for k, v in value.items())
    if isinstance(value, list):
        return tuple(map(comparable, _entries(value)))
    return tuple(map(comparable, value)) if isinstance(value, tuple) else value


def _sortable(value: object) -> tuple[int, Any]:
    """A value in a form that Python orders: null, then values, then NaN, at every depth."""
    if value is None:
        return (0, 0)
    if isinstance(value, float) and value != value:
        return (2, 0)
    if isinstance(value, dict):
        return (1, tuple(map(_sortable, value.values())))
    if isinstance(value, list):
        return (1, tuple(map(_sortable, _entries(value))))
    return (1, tuple(map(_sortable, value)) if isinstance(value, tuple) else value)


def _entries(value: list[Any]) -> list[Any]:
    """The elements of a list; of a map, which are pairs, by key."""
    if value and isinstance(value[0], tuple):
        return sorted(value, key=lambda entry: _sortable(entry[0]))
    return value


__all__ = ["INFINITY", "History", "Row"]
