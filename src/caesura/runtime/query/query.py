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
from caesura.feedback.predicates import Meant
from caesura.io.ingress.pushed import PushedIngress
from caesura.io.sinks.rows import history_table
from caesura.plan import Counters, Duration, Node, Speculate, here, ticks
from caesura.plan.step_log import StepLog
from caesura.punctuation import Intent, Punctuation
from caesura.runtime.feedback.consumer import ConsumerFeedback, StandingFeedback
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.progress_meter import ProgressMeter
from caesura.runtime.graph.publication import Publication
from caesura.runtime.graph.rejected import rejected_rows
from caesura.runtime.graph.schedule import Schedule, ScheduleName, schedule_of
from caesura.runtime.graph.source_reader import refused_by
from caesura.runtime.graph.utility import Utility
from caesura.runtime.metrics.status import ReadRate, Status, status_of
from caesura.runtime.query.assembly import Assembly
from caesura.runtime.query.closing import Closing
from caesura.runtime.query.feedback_ports import FeedbackPorts, reader_of
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

FEED_BYTES = 1 << 28
"""So much may wait at the inputs of a query that is fed and not run."""


class Query(Closing):
    """Runs the nodes behind some outputs; equal sub-plans run once."""

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
        self._recording: Recording | None = None
        for cell in self.graph.cells:
            cell.operator.attach(cell.feedback)
        self._patient: list[Edge] = []
        """Where small pages wait for windows to close."""
        if patient and claims is None and speculate == "watermark":
            from caesura.runtime.graph.patience import wait_for_windows

            self._patient = wait_for_windows(self.graph.cells)

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

        A name tells it from the same output of another query of the same plan.
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
        """Queues an item at an `Input`; at a pushed one, what its laws let in.

        Where much waits already, some of it is worked off first: whoever feeds is held up, not the memory.
        """
        inputs = self.parts.inputs
        if label not in inputs and label in self._unused:
            return
        cell = self.parts.fed_by(label)
        self._back_pressure(label, item)
        if self._recording is not None:
            self._recording.feed(label, item)
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
        """The feedback for whoever feeds an `Input`, since the last call."""
        return self.ports.upstream(label)

    def heard(self, label: str) -> list[Punctuation]:
        """The old name of `upstream_feedback`."""
        warnings.warn("heard() is now upstream_feedback().", DeprecationWarning, stacklevel=2)
        return self.upstream_feedback(label)

    def assume(self, what: Meant, *, output: str | None = None) -> StandingFeedback:
        """These rows will be ignored: steps need not make them. Gives a handle to withdraw."""
        return self.consumer.send(Intent.ASSUMED, what, output)

    def desire(self, what: Meant, *, output: str | None = None) -> StandingFeedback:
        """These rows are wanted first: what waits is worked off in that order. Nothing else changes."""
        return self.consumer.send(Intent.DESIRED, what, output)

    def demand(self, what: Meant = True, *, output: str | None = None) -> None:
        """These rows are wanted now, as far as they are known: marked partial, and corrected later."""
        self.consumer.demand(what, output)

    def withdraw(self, feedback: StandingFeedback | int) -> None:
        """Takes feedback back; what lost state or input to it stays suppressed until it is closed."""
        self.consumer.withdraw(feedback)

    def feedback(self) -> list[str]:
        """The feedback that stands, and what is still suppressed."""
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
        """Works until nothing is queued and every source is at its end: an epoch, for budgets.

        Work that waits has a turn, also when no item came for it.
        """
        self.runner.run()

    def step(self) -> bool:
        """Takes one item, or a batch of raw rows at rest and between rounds of a loop, or work that waits.

        False when there is nothing to do.
        """
        return self.runner.step()

    def close(self) -> None:
        """Releases what its sources hold open; where it is read on they are opened again.

        ``with stream.query() as query: ...`` calls it at the end.
        """
        self.runner.close()

    def take(self, output: str) -> list[Item]:
        """What came out since the last call; with claims, a token stands wherever one holds."""
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
        """What came out so far, as a history with LE and RE: an Arrow table; a null RE never ends."""
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
        """Puts a token into every source now, where tokens are aligned."""
        from caesura.runtime.claims.choose import put_token

        put_token(self._claiming())

    def token_figures(self) -> TokenFigures:
        """The present period of tokens, how long one takes, and how long an event waits for its claim."""
        from caesura.runtime.claims.choose import figures_of

        return figures_of(self._claiming())

    def marked(self, output: str = "out") -> pa.Table:
        """What came out since the last call, as rows with the first claim that covers each.

        A row without one is incomplete as yet: it is covered once the last claim's ``output`` counts it.
        """
        from caesura.runtime.claims.views import marked_rows

        view = looked_up(self._claiming().views, output, "output", "marked")
        node = self.outputs[output]
        first, items = view.taken, view.take()
        return marked_rows(items, node.schema, node.time, first)

    def utility(self, within: Duration, *, output: str = "out") -> Utility:
        """Counts, from now on, how many rows of an output leave in time; the counts are read as it runs."""
        cell = looked_up(self.parts.ends, output, "output", "utility")
        seen = Utility(ticks(within, cell.node.time, "bound of utility"))
        cell.taps.append(seen)
        return seen

    def progress_meter(self, *, output: str = "out") -> ProgressMeter:
        """Measures, from now on, the lag and the liveliness of an output; both are read as it runs."""
        cell = looked_up(self.parts.ends, output, "output", "progress_meter")
        seen = ProgressMeter()
        cell.taps.append(seen)
        return seen

    def waiting(self) -> str:
        """What the next claim waits for, in words; empty where nothing holds it up."""
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
        """Rows that sources refused, that steps speak of, or that were stopped above, since the last call."""
        return refused_by(self.graph.cells) | self.notes() | rejected_rows(self.graph.cells)

    def notes(self) -> dict[str, pa.Table]:
        """Rows that steps have something to say of since the last call, by step."""
        self.settle()
        tables: dict[str, pa.Table] = {}
        for cell in self.graph.cells:
            table = cell.operator.drain_notes()
            if table is not None:
                tables[cell.label if cell.node.step in tables else cell.node.step] = table
        return tables

    def counters(self) -> dict[str, Counters]:
        """What each step has done and holds; feedback that waits is delivered first."""
        self.settle()
        self.ports.deliver()
        for cell in self.graph.cells:
            cell.feedback.measure()
        counted = {cell.label: cell.operator.measure() for cell in self.graph.cells}
        for loop in self.parts.loops:
            loop.measure()
        return counted

    def record(self, *, output: str = "out", limit: int = 10_000) -> Recording:
        """Keeps, from now on, the next rows that every source gives and every input is fed: to trace them."""
        node = looked_up(self.outputs, output, "output", "record")
        self._recording = made = Recording(node, limit)
        for reader in self.parts.readers.values():
            reader.recorder = made.read
        return made

    def log(self, *steps: str) -> StepLog:
        """What these steps, or all, have counted, with the keys that functions of the user's `note`."""
        return StepLog(self.counters(), steps)

    def status(self) -> Status:
        """How the query stands: for each source and step rows, state, promises, as a query on Spark tells.

        To be asked by the thread that runs it; `serve_metrics` shows it to others.
        """
        self.settle()
        for loop in self.parts.loops:
            loop.measure()
        status = status_of(self.graph.cells, self._epoch())
        rate = self._rate.of(sum(source.rows for source in status.sources.values()))
        return replace(status, rows_per_second=rate)

    def serve_metrics(self, port: int | str = 9464, *, name: str = "query") -> MetricsEndpoint:
        """Serves metrics for Prometheus at a port of this machine, and whether the query is alive and ready.

        ``"0.0.0.0:9464"`` lets other machines ask. ``name`` tells the query from others.
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

        This machine alone may look, unless ``host`` is another address: then a ``password_file`` is needed,
        or a ``proxy``: ``"X-Forwarded-User@10.0.0.5"``, the header that it sets and where it asks from.
        What the pages show is read between two steps, by whoever runs the query. ``pages`` are pages of
        your own beside them; the first is opened.
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
        """The chunks of state that changed since the last snapshot; with what waits between the steps."""
        self.settle()
        self.ports.deliver()
        return self._saved.snapshot()

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes the state of a query of the same plan; a step that it has none for begins empty."""
        self._saved.restore(chunks)
