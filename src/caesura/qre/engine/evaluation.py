"""A whole query at work on pages: compiled stages where they will do, the plain-Python twin elsewhere.

>>> import pyarrow as pa
>>> from caesura.expr import col
>>> from caesura.qre.language.build import atom, iter_
>>> from caesura.qre.language.folds import sum_
>>> from caesura.qre.language.items import items
>>> query = iter_(atom(items=items(pa.schema([("v", pa.int64())])), op=col("v")), sum_())
>>> evaluate(query, pa.record_batch({"v": [1, 2, 3]}))
[1, 3, 6]
>>> explain(query)
'kernel: 1 position, 2 states, 2 registers'
"""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa

from caesura.errors import PlanError
from caesura.kernels.hashing import I64
from caesura.qre.engine.choice import Kernel, machine_for
from caesura.qre.engine.machine import Answered, Timed
from caesura.qre.engine.outputs import output_schema
from caesura.qre.language.arguments import KERNELS, batch_of, one_of, queried
from caesura.qre.language.query import Query


class Evaluator:
    """Runs a query page by page; the state is one value that can be saved."""

    def __init__(self, query: Query, *, kernel: Kernel = "auto") -> None:
        if queried("evaluate", query).items is None:
            raise PlanError(
                "the items of this query are not known.", remedy="Call query.on(qre.items(schema)) first."
            )
        one_of("evaluate", kernel, KERNELS, "kernel")
        self.query = query
        self.schema = output_schema(query)
        self.machine = machine_for(query, kernel)

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        """The answers at the rows of a page.

        Parameters
        ----------
        batch
            The next rows of the word.
        le, re
            The rows' lifetimes, where the query reads them.

        Returns
        -------
        Answered
            For every answer its row of the page, and the output rows; a map is as many rows as it has
            keys.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> v = qre.atom(op=col("v"), items=items)
        >>> running = qre.Evaluator(qre.iter(v, qre.sum()))
        >>> running.run(pa.record_batch({"v": [1, 2, 3]}))[0]
        array([0, 1, 2])
        """
        return self.machine.run(batch, le, re)

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        """The value at each row of a page, for people and tests.

        Parameters
        ----------
        batch
            The next rows of the word.
        le, re
            The rows' lifetimes, where the query reads them.

        Returns
        -------
        list
            A value for each row; UNDEFINED where it has none.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> v = qre.atom(op=col("v"), items=items)
        >>> running = qre.Evaluator(qre.iter(v, qre.sum()))
        >>> running.values(pa.record_batch({"v": [1, 2, 3]}))
        [1, 3, 6]
        >>> running.values(pa.record_batch({"v": [10]}))
        [16]
        """
        return self.machine.values(batch, le, re)

    def timed(self, batch: pa.RecordBatch, le: I64, ticks: I64 | None = None) -> Timed:
        """The answers with their times, for events in order and ticks between them.

        Parameters
        ----------
        batch
            The next rows of the word.
        le
            When the rows start.
        ticks
            When ticks come.

        Returns
        -------
        Timed
            Times, output rows, and the numbers of their answers.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> v = qre.atom(op=col("v"), items=items)
        >>> running = qre.Evaluator(qre.iter(v, qre.sum()))
        >>> import numpy as np
        >>> running.timed(pa.record_batch({"v": [1, 2, 3]}), np.array([1, 2, 3]))[0]
        array([1, 2, 3])
        """
        return self.machine.timed(batch, le, ticks)

    def save(self) -> bytes:
        """Everything that must survive a restart.

        Returns
        -------
        bytes
            Bytes that `load` takes back.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> v = qre.atom(op=col("v"), items=items)
        >>> running = qre.Evaluator(qre.iter(v, qre.sum()))
        >>> isinstance(running.save(), bytes)
        True
        """
        return self.machine.save()

    def load(self, saved: bytes) -> None:
        """Takes back what `save` gave.

        Parameters
        ----------
        saved
            What `save` of the same query gave.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> v = qre.atom(op=col("v"), items=items)
        >>> running = qre.Evaluator(qre.iter(v, qre.sum()))
        >>> _ = running.values(pa.record_batch({"v": [1, 2, 3]}))
        >>> again = qre.Evaluator(running.query)
        >>> again.load(running.save())
        >>> again.values(pa.record_batch({"v": [10]}))
        [16]
        """
        self.machine.load(saved)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.machine.nbytes

    @property
    def held(self) -> int:
        """How many keys and values are held besides a fixed number of registers."""
        return self.machine.held

    @property
    def keys(self) -> int:
        """How many keys hold state."""
        return self.machine.keys

    @property
    def departures(self) -> int:
        """How many items led out of the rate's language."""
        return self.machine.departures

    @property
    def left(self) -> int:
        """The old name of `departures`."""
        warnings.warn("Evaluator.left is now Evaluator.departures.", DeprecationWarning, stacklevel=2)
        return self.departures

    @property
    def operations(self) -> int:
        """The most instructions that one item took so far, counted by the table-driven kernel."""
        return self.machine.operations

    def explain(self) -> str:
        """How the query runs, and why where it runs in Python.

        Returns
        -------
        str
            One line.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> v = qre.atom(op=col("v"), items=items)
        >>> running = qre.Evaluator(qre.iter(v, qre.sum()))
        >>> running.explain()
        'kernel: 1 position, 2 states, 2 registers'
        """
        return self.machine.explain()


def evaluate(query: Query, batch: pa.RecordBatch | pa.Table, *, kernel: Kernel = "auto") -> list[Any]:
    """The value of every prefix of a word but the empty one.

    Parameters
    ----------
    query
        What is computed; its items must be known.
    batch
        The word: a record batch or a table.
    kernel
        ``"table"`` runs tables by compiled code, ``"generated"`` compiles code for this query, ``"twin"``
        runs in Python; ``"auto"`` takes the fastest that can.

    Returns
    -------
    list
        A value for each row: what the query gives of the rows up to it; UNDEFINED where it has none.

    See Also
    --------
    Stream.match : over a stream.
    qre.denote : by the definition, slowly.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter_n(v, 2, qre.sum()), pa.record_batch({"v": [1, 2, 3]}))
    [undefined, 3, undefined]
    """
    running = Evaluator(query, kernel=kernel)
    assert query.items is not None
    return running.values(batch_of("evaluate", batch, query.items.schema))


def explain(query: Query) -> str:
    """How a query would run.

    Parameters
    ----------
    query
        What is looked at; its items must be known.

    Returns
    -------
    str
        One line: compiled, with its size, or in Python and why.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.explain(qre.iter(v, qre.sum()))
    'kernel: 1 position, 2 states, 2 registers'
    """
    return Evaluator(query).explain()
