"""A plan at work in this process: feed it or let it read, run it, take what comes out.

>>> import pyarrow as pa
>>> from caesura.events import draw, parse
>>> from caesura.ops.input import Input
>>> clicks = Input(label="clicks", payload=pa.schema([("id", pa.int64())]))
>>> query = Query({"out": clicks})
>>> for item in parse(" LE RE | id |\\n 1 2 | 7 | +\\n-- 5 --"):
...     query.feed("clicks", item)
>>> query.run()
>>> print(draw(query.take("out")))
 LE  RE | id |
  1  2  | 7  | +
-- definite: time < 5 --
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.consistency import Claim, Mode
from caesura.errors import StreamError, looked_up
from caesura.events.chunks import Chunks
from caesura.events.identity import Secret
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.paging import MemoryWatch, StatePages, memory_limit, memory_size
from caesura.feedback.predicates import Meant
from caesura.io.ingress.ingress import SourceIngress
from caesura.io.ingress.pushed import PushedIngress
from caesura.io.sinks.rows import history_table
from caesura.io.sources.protocol import Offsets
from caesura.plan import Counters, Duration, Node, Speculate, here, ticks
from caesura.plan.step_log import StepLog
from caesura.punctuation import Intent, Punctuation
from caesura.runtime.feedback.consumer import ConsumerFeedback, StandingFeedback
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.progress_meter import ProgressMeter
from caesura.runtime.graph.publication import Publication
from caesura.runtime.graph.rejected import noted_by, rejected_rows
from caesura.runtime.graph.schedule import Schedule, ScheduleName, schedule_of
from caesura.runtime.graph.source_reader import refused_by
from caesura.runtime.graph.utility import Utility
from caesura.runtime.metrics.read_rate import ReadRate
from caesura.runtime.metrics.spans import span, traced
from caesura.runtime.query.assembly import Assembly
from caesura.runtime.query.closing import Closing
from caesura.runtime.query.feedback_ports import FeedbackPorts, reader_of
from caesura.runtime.query.read_again import read_again
from caesura.runtime.query.recording import Recording
from caesura.runtime.query.runner import Runner
from caesura.runtime.query.saved import PUBLISHED, SavedState
from caesura.runtime.query.secret import Keeper

if TYPE_CHECKING:
    from caesura.console.web.own_page import OwnPage
    from caesura.console.web.server import ConsoleServer
    from caesura.runtime.claims.claiming import Claiming
    from caesura.runtime.claims.figures import TokenFigures
    from caesura.runtime.metrics.endpoint import MetricsEndpoint
    from caesura.runtime.metrics.status import Status

FEED_BYTES = 1 << 28
"""So much may wait at the inputs of a query that is fed and not run."""


class Query(Closing):
    """A plan at work in this process: it is fed or reads, is run or stepped, and its output taken.

    Made by `Stream.query` and `Pipeline.query`. Equal parts of plans run once.
    """

    folder = ""
    """Where its sink keeps Parquet files that others can read; empty where it has no such sink."""

    def __init__(
        self,
        outputs: Mapping[str, Node],
        *,
        schedule: Schedule | ScheduleName | None = None,
        capacity: int = 8,
        speculate: Speculate = "arrival",
        unused: Iterable[str] = (),
        claims: Mode | None = None,
        crossing: Mapping[str, Node] | None = None,
        readers: Mapping[str, int] | None = None,
        listens: bool = True,
        secret: Secret | None = None,
        patient: bool = False,
        state_memory: int | str | None = None,
    ) -> None:
        keeper = Keeper(secret)
        parts = self.parts = Assembly(
            outputs, capacity=capacity, speculate=speculate, secret=keeper.secret, crossing=crossing or {}
        )
        self.graph, self.outputs = parts.graph, parts.outputs
        self._unused = set(unused)
        """Inputs that may be fed although no output needs them."""
        self._taps: dict[str, list[Item]] = {name: [] for name in outputs}
        self._given: set[str] = set()
        """Outputs of which items were taken."""
        self._fed_bytes = 0
        """How much was fed since the inputs were looked at last."""
        self._published: dict[str, Publication] = {}
        for name, cell in parts.ends.items():
            count = (readers or {}).get(name, 1)
            cell.feedback.branches += [reader_of(name, n) for n in range(count)]
        self.claiming = self._watched(claims)
        mailbox = self.graph.mailbox
        mailbox.prompt, mailbox.closed = claims is not None, not listens
        self.runner = Runner(parts, schedule_of(schedule), self.claiming)
        self.ports = FeedbackPorts(parts, self.runner, self.claiming)
        self.consumer = ConsumerFeedback(parts.ends, self.graph.cells, self._send_feedback)
        self._saved = SavedState(parts, keeper, self.claiming, self.consumer, self._published)
        self._keeper, self._rate = keeper, ReadRate()
        self.recording: Recording | None = None
        for cell in self.graph.cells:
            cell.operator.attach(cell.feedback)
        if (limit := memory_limit()) is not None:
            self.runner.onlookers.append(MemoryWatch(limit))
        if state_memory is not None:
            self._page_to(StatePages(memory_size(state_memory)))
        self._patient: list[Edge] = []
        """Where small pages wait for windows to close."""
        if patient and claims is None and speculate == "watermark":
            from caesura.runtime.graph.patience import wait_for_windows

            self._patient = wait_for_windows(self.graph.cells)

    def _page_to(self, pages: StatePages) -> None:
        """Lets wide values of what the steps hold, beyond a budget for all, lie on the disk."""
        for cell in self.graph.cells:
            cell.operator.page_to(pages)

    def settle(self, *, for_good: bool = False) -> None:
        """Takes what waits although nothing follows from it yet: somebody looks at the steps, or will."""
        for edge in self._patient:
            assert edge.patience is not None
            edge.patience.release()
            edge.patience = None if for_good else edge.patience
        if self._patient:
            self.runner.take_queued()
        if for_good:
            self._patient = []

    def _watched(self, claims: Mode | None) -> Claiming | None:
        """Whoever makes claims about the outputs; without, plain lists take what leaves."""
        parts = self.parts
        if claims is None:
            for name, cell in parts.ends.items():
                cell.taps.append(self._taps[name])
            return None
        from caesura.runtime.claims.choose import claiming_for

        for reader in parts.readers.values():
            reader.reorders = False
        return claiming_for(claims, parts.graph, parts.ends, parts.readers, parts.inputs)

    def publish(self, output: str, *, name: str = "") -> Publication:
        """Opens an output to later queries; to be asked for before anything has left it.

        Parameters
        ----------
        output
            The output: ``"out"``, or a view of a pipeline.
        name
            Tells it from the same output of another query of the same plan.

        Returns
        -------
        Publication
            What `cz.subscribe` takes.

        See Also
        --------
        caesura.subscribe : what a running query publishes.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 3, "id": 7}], time="ts").query()
        >>> print(cz.subscribe(query.publish("out")).run())
         LE  RE | id |
          3  4  | 7  | +
        """
        self.settle(for_good=True)
        cell = looked_up(self.parts.ends, output, "output", "publish")
        if output in self._published:
            return self._published[output]
        if cell.responder is not None:
            raise StreamError(
                f"feedback was given to '{output}' already, which later readers have not agreed to.",
                remedy="Publish the output before you speak to it.",
            ).at(cell.node.step, cell.node.place)
        if cell.operator.counters.rows_out:
            raise StreamError(
                f"rows have left '{output}' already, and a publication must know those that may change.",
                remedy="Publish the output before the query runs.",
            ).at(cell.node.step, cell.node.place)
        published = self._published[output] = Publication(self.step, output, cell.node, name)
        cell.taps.append(published)
        cell.feedback.branches.append(PUBLISHED + output)
        return published

    def feed(self, label: str, item: Item) -> None:
        r"""Puts an item into an input; a row behind punctuation goes to the late table.

        Where much waits already, some of it is worked off first: whoever feeds is held up, not the memory.

        Parameters
        ----------
        label
            The label of a `cz.input_stream`.
        item
            A page or a punctuation.

        See Also
        --------
        caesura.input_stream : a stream that is fed by hand.

        Examples
        --------
        >>> import caesura as cz
        >>> import pyarrow as pa
        >>> query = cz.input_stream("clicks", pa.schema([("id", pa.int64())])).query()
        >>> for item in cz.parse(" LE RE | id |\n 1 2 | 7 | +"):
        ...     query.feed("clicks", item)
        >>> query.run()
        >>> print(cz.draw(query.take("out")))
         LE  RE | id |
          1  2  | 7  | +
        """
        inputs = self.parts.inputs
        if label not in inputs and label in self._unused:
            return
        cell = self.parts.fed_by(label)
        self._back_pressure(label, item)
        if self.recording is not None:
            self.recording.feed(label, item)
        ingress = cell.operator
        if self.claiming is None and not isinstance(ingress, PushedIngress):
            inputs[label].push(item)
            return
        for legal in cell.guarded(ingress.enter, item) if isinstance(ingress, PushedIngress) else (item,):
            if self.claiming is None:
                inputs[label].push(legal)
            else:
                self.claiming.feed(label, legal)

    def _back_pressure(self, label: str, item: Item) -> None:
        """Works off what waits at an input, half of it, once it holds more than `FEED_BYTES`."""
        self._fed_bytes += item.nbytes if isinstance(item, Page) else 0
        if self._fed_bytes <= FEED_BYTES:
            return
        waiting = self.parts.inputs[label].items
        while self.step():
            if sum(one.nbytes for one in waiting if isinstance(one, Page)) <= FEED_BYTES // 2:
                break
        self._fed_bytes = sum(one.nbytes for one in waiting if isinstance(one, Page))

    def _send_feedback(self, output: str, message: Punctuation) -> None:
        self.settle(for_good=True)
        self.ports.send(output, message)

    def upstream_feedback(self, label: str) -> list[Punctuation]:
        """The feedback for whoever feeds an `Input`, since the last call.

        Parameters
        ----------
        label
            The input, by its name.

        Returns
        -------
        list of Punctuation
            What was assumed, desired or demanded of its rows, in the input's own columns.

        Examples
        --------
        >>> import caesura as cz
        >>> import pyarrow as pa
        >>> clicks = cz.input_stream("clicks", pa.schema([("page", pa.int64())]))
        >>> query = clicks.where("page > 0").query()
        >>> _ = query.assume(cz.col("page") == 4)
        >>> print(*query.upstream_feedback("clicks"))
        assumed: page = 4 (standing)
        """
        return self.ports.upstream(label)

    def heard(self, label: str) -> list[Punctuation]:
        """The old name of `upstream_feedback`."""
        warnings.warn("heard() is now upstream_feedback().", DeprecationWarning, stacklevel=2)
        return self.upstream_feedback(label)

    def assume(self, what: Meant, *, output: str | None = None) -> StandingFeedback:
        """These rows will be ignored: steps need not make them.

        Parameters
        ----------
        what
            A predicate of the output's columns, ``col("id") == 4``, its text, or a `cz.Pattern`.
        output
            Which output; needed only where there are several.

        Returns
        -------
        StandingFeedback
            What ``withdraw`` takes.

        See Also
        --------
        caesura.runtime.Query.desire : rows that are wanted first.
        caesura.runtime.Query.demand : rows that are wanted now.
        caesura.runtime.Query.withdraw : feedback taken back.
        caesura.runtime.Query.feedback : the feedback that stands.
        caesura.Stream.feedback : what a step may do about feedback.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").query()
        >>> _ = query.assume("id = 7")
        >>> query.run()
        >>> print(cz.draw(query.take("out")))
         LE  RE | id |
          4  5  | 9  | +
        -- definite: * --
        """
        return self.consumer.send(Intent.ASSUMED, what, output)

    def desire(self, what: Meant, *, output: str | None = None) -> StandingFeedback:
        """These rows are wanted first: what waits is worked off in that order. Nothing else changes.

        Parameters
        ----------
        what
            A predicate of the output's columns, its text, or a `cz.Pattern`.
        output
            Which output; needed only where there are several.

        Returns
        -------
        StandingFeedback
            What ``withdraw`` takes.

        See Also
        --------
        caesura.runtime.Query.assume : rows that will be ignored.
        caesura.runtime.Query.demand : rows that are wanted now.
        caesura.runtime.Query.withdraw : feedback taken back.
        caesura.runtime.Query.feedback : the feedback that stands.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").query()
        >>> _ = query.desire("id = 9")
        >>> query.feedback()
        ['#1 desired: id = 9']
        """
        return self.consumer.send(Intent.DESIRED, what, output)

    def demand(self, what: Meant = True, *, output: str | None = None) -> None:
        r"""These rows are wanted now, as far as they are known: marked partial, and corrected later.

        Parameters
        ----------
        what
            A predicate of the output's columns, its text, or a `cz.Pattern`; ``True`` for all.
        output
            Which output; needed only where there are several.

        See Also
        --------
        caesura.runtime.Query.assume : rows that will be ignored.
        caesura.runtime.Query.desire : rows that are wanted first.
        caesura.runtime.Query.withdraw : feedback taken back.
        caesura.runtime.Query.feedback : the feedback that stands.

        Examples
        --------
        >>> import caesura as cz
        >>> import pyarrow as pa
        >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
        >>> query = clicks.tumbling(10).agg(n=cz.count()).query(output="final")
        >>> for item in cz.parse(" LE RE | id |\n 1 2 | 7 | +"):
        ...     query.feed("clicks", item)
        >>> query.run()
        >>> query.demand()
        >>> query.run()
        >>> print(cz.draw(query.take("out")))
         LE  RE | n |
          0  10 | 1 | ~
        """
        self.consumer.demand(what, output)

    def withdraw(self, feedback: StandingFeedback | int) -> None:
        """Takes feedback back; what lost state or input to it stays suppressed until it is closed.

        Parameters
        ----------
        feedback
            What ``assume`` or ``desire`` gave, or its number.

        See Also
        --------
        caesura.runtime.Query.assume : rows that will be ignored.
        caesura.runtime.Query.desire : rows that are wanted first.
        caesura.runtime.Query.demand : rows that are wanted now.
        caesura.runtime.Query.feedback : the feedback that stands.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query()
        >>> told = query.assume("id = 7")
        >>> query.withdraw(told)
        >>> query.feedback()
        []
        """
        self.consumer.withdraw(feedback)

    def feedback(self) -> list[str]:
        """The feedback that stands, and what is still suppressed.

        Returns
        -------
        list of str
            A line for each, with its number.

        See Also
        --------
        caesura.runtime.Query.assume : rows that will be ignored.
        caesura.runtime.Query.desire : rows that are wanted first.
        caesura.runtime.Query.demand : rows that are wanted now.
        caesura.runtime.Query.withdraw : feedback taken back.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query()
        >>> _ = query.assume("id = 7")
        >>> query.feedback()
        ['#1 assumed: id = 7']
        """
        return self.consumer.list()

    @property
    def inputs(self) -> frozenset[str]:
        """The labels of what can be fed."""
        return frozenset(self.parts.inputs)

    def cell_of(self, label: str) -> Cell:
        """The step that an input feeds, at work."""
        return self.parts.fed_by(label)

    def cell(self, output: str) -> Cell:
        """The step behind an output, at work."""
        return self.parts.behind(output)

    def run(self) -> None:
        """Works until nothing is queued and every source is at its end.

        It is an epoch for budgets: work that waits has a turn, also when no item came for it.

        See Also
        --------
        caesura.runtime.Query.step : one item.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query()
        >>> query.run()
        >>> query.table().to_pylist()
        [{'LE': 1, 'RE': 2, 'id': 7}]
        """
        if not traced():
            self.runner.run()
            return
        with span("run") as told:
            self.runner.run()
            told.tell_status(self.status)

    def step(self) -> bool:
        """Takes one item, or a batch of rows of a source, or work that waits.

        Returns
        -------
        bool
            False when there is nothing to do.

        See Also
        --------
        caesura.runtime.Query.run : to the end.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query()
        >>> while query.step():
        ...     pass
        >>> query.table().num_rows
        1
        """
        return self.runner.step()

    def close(self) -> None:
        """Releases what its sources hold open; where it is read on they are opened again.

        ``with stream.query() as query: ...`` calls it at the end.

        Examples
        --------
        >>> import caesura as cz
        >>> with cz.from_rows([{"ts": 1, "id": 7}], time="ts").query() as query:
        ...     query.run()
        """
        self.runner.close()

    def take(self, output: str) -> list[Item]:
        """What came out since the last call; with claims, a token stands wherever one holds.

        Parameters
        ----------
        output
            The output: ``"out"``, or a view of a pipeline.

        Returns
        -------
        list of items
            Pages and punctuation, for `cz.draw` and `cz.History`.

        See Also
        --------
        caesura.runtime.Query.table : what came out so far.
        caesura.runtime.Query.late : rows that were turned away.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query()
        >>> query.run()
        >>> print(cz.draw(query.take("out")))
         LE  RE | id |
          1  2  | 7  | +
        -- definite: * --
        """
        if self.claiming is not None:
            return looked_up(self.claiming.views, output, "output", "take").take()
        tap = looked_up(self._taps, output, "output", "take")
        self._given.add(output)
        items = tap[:]
        tap.clear()
        return items

    def untaken(self, output: str) -> Sequence[Item]:
        """What came out since the last `take`, and stays to be taken; nothing where claims are waited for."""
        return self._taps[output] if self.claiming is None else ()

    def table(self, output: str = "out") -> pa.Table:
        """What came out so far, as a history; in place of ``take``.

        Parameters
        ----------
        output
            The output: ``"out"``, or a view of a pipeline.

        Returns
        -------
        pyarrow.Table
            ``LE``, ``RE`` and the payload; a null RE never ends.

        See Also
        --------
        caesura.runtime.Query.take : what came out since the last call.
        caesura.runtime.Query.late : rows that were turned away.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query()
        >>> query.run()
        >>> query.table().to_pylist()
        [{'LE': 1, 'RE': 2, 'id': 7}]
        """
        if self.claiming is not None or output in self._given:
            raise StreamError(
                f"what came out at '{output}' was taken, or waits for claims, and is not kept here too.",
                remedy="Ask for table() in place of take(); or give the query a sink that holds its output.",
            ).at("query", here())
        node = looked_up(self.outputs, output, "output", "table")
        return history_table(self._taps[output], node.schema, node.time)

    @property
    def claims(self) -> list[Claim]:
        """The claims so far."""
        return [] if self.claiming is None else self.claiming.claims

    def token(self) -> None:
        """Puts a token into every source now, so that a claim comes soon; for queries with ``cz.tokens()``.

        See Also
        --------
        caesura.runtime.Query.token_figures : what tokens take.
        caesura.runtime.Query.marked : rows with the claims that cover them.
        caesura.tokens : claims where sources put marks.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"t": 1, "n": 2}], time="t").query(claims=cz.tokens(every=1000))
        >>> query.token()
        >>> query.run()
        >>> len(query.claims) > 0
        True
        """
        from caesura.runtime.claims.choose import put_token

        put_token(self._claiming())

    def token_figures(self) -> TokenFigures:
        """The present period of tokens, how long one takes, and how long an event waits for its claim.

        Returns
        -------
        caesura.runtime.claims.figures.TokenFigures
            The figures, in seconds; printed, a line.

        See Also
        --------
        caesura.runtime.Query.token : a token now.
        caesura.runtime.Query.marked : rows with the claims that cover them.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"t": 1, "n": 2}], time="t").query(claims=cz.tokens(every=1000))
        >>> print(query.token_figures())
        a token every 1000 events: none has left yet
        """
        from caesura.runtime.claims.choose import figures_of

        return figures_of(self._claiming())

    def marked(self, output: str = "out") -> pa.Table:
        """What came out since the last call, as rows with the first claim that covers each.

        Parameters
        ----------
        output
            The output: ``"out"``, or a view of a pipeline.

        Returns
        -------
        pyarrow.Table
            A row without a claim is incomplete as yet: it is covered once the last claim's ``output``
            counts it.

        See Also
        --------
        caesura.runtime.Query.token : a token now.
        caesura.runtime.Query.token_figures : what tokens take.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"t": 1, "n": 2}], time="t").query(claims=cz.tokens(every=1))
        >>> query.run()
        >>> query.marked().select(["n", "claim"]).to_pylist()
        [{'n': 2, 'claim': 1}]
        """
        from caesura.runtime.claims.views import marked_rows

        view = looked_up(self._claiming().views, output, "output", "marked")
        node = self.outputs[output]
        first, items = view.taken, view.take()
        return marked_rows(items, node.schema, node.time, first)

    def utility(self, within: Duration, *, output: str = "out") -> Utility:
        """Counts, from now on, how many rows of an output leave in time; the counts are read as it runs.

        Parameters
        ----------
        within
            How far behind the furthest start before it a row may leave and be in time.
        output
            The output: ``"out"``, or a view of a pipeline.

        Returns
        -------
        Utility
            ``rows``, ``useful`` (those in time) and ``share``.

        See Also
        --------
        caesura.runtime.Query.progress_meter : how far promises lie behind.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"id": 1, "t": 0}, {"id": 2, "t": 20}, {"id": 3, "t": 2}]
        >>> sensors = cz.from_rows(rows, time="t", punctuate=cz.delay(30))
        >>> query = sensors.query()
        >>> seen = query.utility(within=10)
        >>> query.run()
        >>> seen.rows, seen.useful
        (3, 2)
        """
        cell = looked_up(self.parts.ends, output, "output", "utility")
        seen = Utility(ticks(within, cell.node.time, "bound of utility"))
        cell.taps.append(seen)
        return seen

    def progress_meter(self, *, output: str = "out") -> ProgressMeter:
        """Measures, from now on, the lag and the liveliness of an output; both are read as it runs.

        Parameters
        ----------
        output
            The output: ``"out"``, or a view of a pipeline.

        Returns
        -------
        ProgressMeter
            ``lag`` and ``silence``, in the units of event time and of the clock.

        See Also
        --------
        caesura.runtime.Query.utility : how many rows leave in time.

        Examples
        --------
        >>> import caesura as cz
        >>> sensors = cz.from_rows([{"id": 1, "t": 0}, {"id": 2, "t": 20}], time="t", punctuate=cz.delay(5))
        >>> query = sensors.query()
        >>> meter = query.progress_meter()
        >>> query.run()
        >>> meter.events, meter.punctuations
        (2, 2)
        """
        cell = looked_up(self.parts.ends, output, "output", "progress_meter")
        seen = ProgressMeter()
        cell.taps.append(seen)
        return seen

    def waiting(self) -> str:
        """What the next claim waits for, in words; empty where nothing holds it up.

        Returns
        -------
        str
            The sources or steps that it waits for.

        Examples
        --------
        >>> import caesura as cz
        >>> sensors = cz.from_rows([{"id": 1, "t": 0}, {"id": 2, "t": 20}], time="t", punctuate=cz.delay(5))
        >>> query = sensors.query(claims=cz.tokens())
        >>> query.run()
        >>> query.waiting()
        ''
        """
        return self._claiming().waiting()

    def saved(self) -> list[tuple[Claim, Chunks]]:
        """Snapshots that were completed since the last call, each landing on its claim."""
        from caesura.runtime.claims.choose import saved_by

        found = saved_by(self._claiming())
        own = self.consumer.snapshot() | self._keeper.snapshot() if found else {}
        return [(claim, {**chunks, **own}) for claim, chunks in found]

    def _claiming(self) -> Claiming:
        if self.claiming is None:
            raise StreamError(
                "this query makes no claims.", remedy="Make it with query(claims=cz.tokens())."
            ).at("query", here())
        return self.claiming

    def late(self) -> dict[str, pa.Table]:
        """Rows that were turned away or stopped with a reason, since the last call.

        Returns
        -------
        dict of str to pyarrow.Table
            By source or step: ``reason``, ``kind``, times and the payload.

        See Also
        --------
        caesura.runtime.Query.take : what came out since the last call.
        caesura.runtime.Query.table : what came out so far.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 9, "id": 7}, {"ts": 1, "id": 8}]
        >>> query = cz.from_rows(rows, time="ts", punctuate=cz.delay(5)).query()
        >>> query.run()
        >>> query.late()["read"].select(["reason", "id"]).to_pylist()
        [{'reason': 'time 1 came after its lane had passed 4', 'id': 8}]
        """
        return refused_by(self.graph.cells) | self.notes() | rejected_rows(self.graph.cells)

    def notes(self) -> dict[str, pa.Table]:
        """Rows that steps have something to say of since the last call, by step.

        Returns
        -------
        dict of str to pyarrow.Table
            The rows, each with a ``reason``: those that a user's function raised for, for example.

        Examples
        --------
        >>> import caesura as cz
        >>> sensors = cz.from_rows([{"id": 1, "t": 0}, {"id": 2, "t": 20}], time="t", punctuate=cz.delay(5))
        >>> query = sensors.query()
        >>> query.run()
        >>> query.notes()
        {}
        """
        self.settle()
        return noted_by(self.graph.cells)

    def counters(self) -> dict[str, Counters]:
        """What each step has done and holds.

        Returns
        -------
        dict of str to Counters
            By step: rows in and out, rows and bytes of state, the last punctuation, feedback.

        See Also
        --------
        caesura.runtime.Query.log : what steps counted.
        caesura.runtime.Query.status : how the query stands.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}], time="ts").where("id > 7").query()
        >>> query.run()
        >>> query.counters()["where"].rows_out
        1
        """
        self.settle()
        self.ports.deliver()
        for cell in self.graph.cells:
            cell.feedback.measure()
        counted = {cell.label: cell.operator.measure() for cell in self.graph.cells}
        for loop in self.parts.loops:
            loop.measure()
        return counted

    def record(self, *, output: str = "out", limit: int = 10_000) -> Recording:
        """Keeps, from now on, the next rows that every source gives and every input is fed, to trace them.

        Parameters
        ----------
        output
            The output whose plan is traced.
        limit
            How many rows of each source are kept at most.

        Returns
        -------
        Recording
            What ``stream.trace(..., recording=)`` takes, and what can be asked by itself.

        See Also
        --------
        caesura.runtime.Query.replay : the last rows, read again.
        caesura.Stream.trace : what became of some rows.

        Examples
        --------
        >>> import caesura as cz
        >>> slow = cz.from_rows([{"ts": 3, "mph": 62}], time="ts").where("mph < 30")
        >>> query = slow.query()
        >>> recording = query.record()
        >>> query.run()
        >>> print(slow.trace("mph = 62", recording=recording))
        chosen: 1 row with mph = 62
        step 'read': emits 1 event because of them
          3  4  | 62 | +   by row 0 of 'read'
        step 'where' (mph < 30): drops them
        """
        node = looked_up(self.outputs, output, "output", "record")
        before = None if self.recording is None else self.recording.read
        self.recording = made = Recording(node, limit)
        for reader in self.parts.readers.values():
            reader.recorders = [*(own for own in reader.recorders if own != before), made.read]
        return made

    def replay(self, rows: int = 2_000, *, output: str = "out") -> Recording:
        """The last rows that the query has read, read again from its sources: a stretch to look into.

        To be asked by the thread that runs it.

        Parameters
        ----------
        rows
            How many of each lane, before where the query is.
        output
            The output whose plan runs over them.

        Returns
        -------
        Recording
            What can be traced, stepped through, compared and saved as a test.

        See Also
        --------
        caesura.runtime.Query.record : what comes next, kept.
        caesura.Stream.replay : the first rows of a stream's sources.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": n, "id": n} for n in range(9)], time="ts").query()
        >>> query.run()
        >>> dict(query.replay(3).rows)
        {'read': 3}
        """
        looked_up(self.outputs, output, "output", "replay")
        return self.stretch(output, self.read_to(), rows)

    def stretch(self, output: str, ends: Mapping[str, Offsets], rows: int) -> Recording:
        """The last rows before some offsets, by source, once more."""
        return read_again(self.outputs[output], ends, rows=rows)

    def read_to(self) -> dict[str, Offsets]:
        """How far each source was read, by its fingerprint."""
        cells = self.parts.cells.items()
        return {
            mark: dict(cell.operator.offsets)
            for mark, cell in cells
            if isinstance(cell.operator, SourceIngress)
        }

    def log(self, *steps: str) -> StepLog:
        """What steps have counted, with the keys that your own functions `cz.note`.

        Parameters
        ----------
        *steps
            Names of steps; without any, all.

        Returns
        -------
        StepLog
            Counts by step; printed, a table.

        See Also
        --------
        caesura.runtime.Query.counters : what steps have done and hold.
        caesura.runtime.Query.status : how the query stands.
        caesura.note : a count in the log of a step.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query()
        >>> query.run()
        >>> query.log()["read"]["rows out"]
        1
        """
        return StepLog(self.counters(), steps)

    def status(self) -> Status:
        """How the query stands, for each source and step, as a query on Spark tells it too.

        To be asked by the thread that runs it; ``serve_metrics`` shows it to others.

        Returns
        -------
        Status
            Rows, state, promises and rates; ``to_json()`` for programs.

        See Also
        --------
        caesura.runtime.Query.counters : what steps have done and hold.
        caesura.runtime.Query.log : what steps counted.
        caesura.runtime.Query.serve_metrics : figures for Prometheus.
        caesura.runtime.Query.console : pages that show the query.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query()
        >>> query.run()
        >>> query.status().sources["read"].rows
        1
        """
        from caesura.runtime.metrics.status import status_of

        self.settle()
        for loop in self.parts.loops:
            loop.measure()
        status = status_of(self.graph.cells, self._epoch())
        rate = self._rate.of(sum(source.rows for source in status.sources.values()))
        return replace(status, rows_per_second=rate)

    def serve_metrics(self, port: int | str = 9464, *, name: str = "query") -> MetricsEndpoint:
        """Serves metrics for Prometheus, and whether the query is alive and ready.

        Parameters
        ----------
        port
            A port of this machine, 0 for any that is free; ``"0.0.0.0:9464"`` lets other machines ask.
        name
            Tells the query from others.

        Returns
        -------
        MetricsEndpoint
            Its ``url``; ``close()`` ends it.

        See Also
        --------
        caesura.runtime.Query.status : how the query stands.

        Examples
        --------
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query()
        >>> served = query.serve_metrics(0)
        >>> served.url.startswith("http://127.0.0.1:")
        True
        >>> served.close()
        """
        from caesura.runtime.metrics.served import serve_query

        return serve_query(self, port, name)

    def console(
        self,
        port: int = 0,
        *,
        name: str = "query",
        host: str = "127.0.0.1",
        password_file: str | Path | None = None,
        proxy: str | None = None,
        read_only: bool = False,
        open_page: bool = True,
        pages: Sequence[OwnPage] = (),
    ) -> ConsoleServer:
        """Serves pages that show the query as it runs, and opens them in the browser.

        What the pages show is read between two steps, by whoever runs the query.

        Parameters
        ----------
        port
            A port, 0 for any that is free.
        name
            What the pages call the query.
        host
            Who may look: this machine alone, unless it is another address; then a ``password_file`` is
            needed.
        password_file
            A file with the password.
        read_only
            Whether the pages can send no feedback.
        open_page
            Whether the browser is opened.
        proxy
            Or the header that a proxy sets and where it asks from: ``"X-Forwarded-User@10.0.0.5"``.
        pages
            Pages of your own beside them; the first is opened.

        Returns
        -------
        ConsoleServer
            Its ``url``; ``close()`` ends it. Needs the extra ``console``.

        See Also
        --------
        caesura.runtime.Query.status : how the query stands.

        Examples
        --------
        Beside a query that runs::

            query = speeds.query()
            served = query.console()
            query.run()
        """
        from caesura.console.web.embedded import EmbeddedWatch
        from caesura.console.web.opening import opened

        return opened(
            EmbeddedWatch(self, name).watched(pages),
            host=host,
            port=port,
            password_file=password_file,
            proxy=proxy,
            read_only=read_only,
            open_page=open_page,
        )

    def _epoch(self) -> int:
        """The last epoch that was saved, where any are."""
        return -1

    def _repr_html_(self) -> str:
        heads = ("step", "rows in", "rows out", "state rows", "state bytes", "last promise")
        counted = self.counters().items()
        rows = ((n, c.rows_in, c.rows_out, c.state_rows, c.state_bytes, c.last_out) for n, c in counted)
        from caesura.events.show.html import table

        return table(heads, rows)

    @property
    def state_rows(self) -> int:
        return sum(c.state_rows for c in self.counters().values())

    def snapshot(self) -> Chunks:
        """The chunks of state that changed since the last snapshot, with what waits between the steps.

        Returns
        -------
        dict of str to bytes
            Named chunks; an empty one takes back a chunk of that name.

        See Also
        --------
        caesura.runtime.Query.restore : the state of another.

        Examples
        --------
        >>> import caesura as cz
        >>> counted = cz.from_rows([{"ts": 1, "id": 7}], time="ts").tumbling(10).agg(n=cz.count())
        >>> query = counted.query()
        >>> query.run()
        >>> len(query.snapshot()) > 0
        True
        """
        self.settle()
        self.ports.deliver()
        return self._saved.snapshot()

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        r"""Takes the state of a query of the same plan; a step that it has none for begins empty.

        Parameters
        ----------
        chunks
            All chunks of the other query's snapshots, the last of each name.

        See Also
        --------
        caesura.runtime.Query.snapshot : its state, as chunks.

        Examples
        --------
        >>> import caesura as cz
        >>> import pyarrow as pa
        >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
        >>> counted = clicks.tumbling(10).agg(n=cz.count())
        >>> one, other = counted.query(output="final"), counted.query(output="final")
        >>> first, closing = cz.parse(" LE RE | id |\n 1 2 | 7 | +\n-- 10 --")
        >>> one.feed("clicks", first)
        >>> one.run()
        >>> other.restore(one.snapshot())
        >>> other.feed("clicks", closing)
        >>> other.run()
        >>> print(cz.draw(other.take("out")))
         LE  RE | n |
          0  10 | 1 | +
        -- definite: time < 10 --
        """
        self._saved.restore(chunks)
