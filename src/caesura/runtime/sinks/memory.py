"""Sinks that take an epoch on the driver: a function, memory, the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import pyarrow as pa

from caesura.errors import RAISED, CaesuraError, StreamError, first_words, users_line
from caesura.events import Item, draw
from caesura.io.sinks.protocol import EpochSink
from caesura.plan import Node
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.graph.rejected import late_tables
from caesura.runtime.metrics.status import Board


class CallbackSink(EpochSink):
    """Hands every epoch to a function on the driver.

    Parameters
    ----------
    function
        It gets an epoch: its ``number``, its ``items`` by output, its ``late`` rows by source.

    Notes
    -----
    At least once: after a kill an epoch may be given again.

    Examples
    --------
    >>> import tempfile
    >>> import caesura as cz
    >>> from caesura.spark import CallbackSink
    >>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts")
    >>> seen = []
    >>> query = clicks.query(sink=CallbackSink(seen.append), checkpoint=tempfile.mkdtemp())
    >>> query.run()
    >>> print(cz.draw(seen[0].items["out"]))
     LE  RE | id |
      1  2  | 7  | +
    -- definite: * --
    """

    delivery = "at least once"
    at_home = True

    def __init__(self, function: Callable[[Epoch], object]) -> None:
        self._function = function
        self._last: int | None = None
        self.board = Board()

    def last_epoch(self) -> int | None:
        """The last that this start has seen: one that runs again after a kill is given again."""
        return self._last

    def take(self, epoch: Epoch) -> None:
        """Gives an epoch to the function."""
        self._last = epoch.number
        try:
            self._function(epoch)
        except RAISED as error:
            line = users_line(error)
            if not line or isinstance(error, CaesuraError | OSError):
                raise
            raise StreamError(
                f"the sink failed in epoch {epoch.number}: {first_words(error)}.",
                remedy=f"It was raised at {line}. Mend it and start again with the same checkpoint: the "
                "epoch is given again.",
            ) from error


class MemorySink(CallbackSink):
    """Keeps everything on the driver: for tests and notebooks. What ``sink="memory"`` means.

    Notes
    -----
    At least once, and gone with the process.
    """

    keeps_late = True

    def __init__(self) -> None:
        self.epochs: list[Epoch] = []
        super().__init__(self.epochs.append)

    def items(self, output: str = "out") -> list[Item]:
        """The items of an output, epoch after epoch.

        Parameters
        ----------
        output
            The output: ``"out"``, or a view.

        Returns
        -------
        list of items
            Pages and punctuation.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> from caesura.spark import MemorySink
        >>> sink = MemorySink()
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts")
        >>> clicks.query(sink=sink, checkpoint=tempfile.mkdtemp()).run()
        >>> print(cz.draw(sink.items()))
         LE  RE | id |
          1  2  | 7  | +
        -- definite: * --
        """
        return [item for epoch in self.epochs for item in epoch.items.get(output, [])]

    def late(self) -> dict[str, pa.Table]:
        """The late rows by source.

        Returns
        -------
        dict of str to pyarrow.Table
            ``reason``, ``kind``, times and the payload.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> from caesura.spark import MemorySink
        >>> sink = MemorySink()
        >>> rows = [{"ts": 9, "id": 7}, {"ts": 1, "id": 8}]
        >>> clicks = cz.from_rows(rows, time="ts", punctuate=cz.delay(5))
        >>> clicks.query(sink=sink, checkpoint=tempfile.mkdtemp()).run()
        >>> sink.late()["read"].select(["reason", "id"]).to_pylist()
        [{'reason': 'time 1 came after its lane had passed 4', 'id': 8}]
        """
        found: dict[str, list[pa.RecordBatch]] = {}
        for epoch in self.epochs:
            for source, batches in epoch.late.items():
                found.setdefault(source, []).extend(batches)
        return {name: table for source, some in found.items() for name, table in late_tables(source, some)}


class ConsoleSink(CallbackSink):
    """Draws every epoch in the terminal. What ``sink="console"`` means.

    Notes
    -----
    At least once: after a kill an epoch may be drawn again.
    """

    def __init__(self) -> None:
        super().__init__(self._show)
        self._times: dict[str, pa.DataType] = {}

    def open(self, outputs: Mapping[str, Node]) -> None:
        """Learns how each output counts time."""
        self._times = {name: node.time for name, node in outputs.items()}

    def _show(self, epoch: Epoch) -> None:
        for name, items in epoch.items.items():
            if items:
                drawn = draw(items, time=self._times.get(name))
                sys.stdout.write(f"epoch {epoch.number}, {name}\n{drawn}\n")
