"""A query in this process that is saved as it runs, and goes on in another process where it was saved last.

Now and then it saves an epoch: what its steps hold, where its sources are, and what came out since the epoch
before, all named by one manifest. Whatever is killed between two puts, the next start goes on from the last
manifest; a sink that knows its last epoch gets every epoch once.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping

import pyarrow as pa

from caesura.errors import CaesuraError, StreamError, looked_up
from caesura.events import Item
from caesura.io.places import Place
from caesura.io.sinks.protocol import Sink
from caesura.plan import Node
from caesura.runtime.durable.delivery import Delivery, TakenOutput
from caesura.runtime.durable.manifest import Manifests, SavedEpoch
from caesura.runtime.graph.rejected import late_tables
from caesura.runtime.graph.schedule import Schedule
from caesura.runtime.query.assembly import Speculate
from caesura.runtime.query.pipelines import StateLog
from caesura.runtime.query.query import Query
from caesura.runtime.query.stored_plan import another_plan, described
from caesura.runtime.sinks.held import held_table


class DurableQuery(Query):
    """A query with a checkpoint: it begins where the last start was saved, and is saved as it runs."""

    def __init__(
        self,
        outputs: Mapping[str, Node],
        *,
        checkpoint: Place,
        sink: Sink | None = None,
        every: float = 10.0,
        now: Callable[[], float] = time.monotonic,
        schedule: Schedule | None = None,
        speculate: Speculate = "arrival",
    ) -> None:
        self._sink = TakenOutput() if sink is None else sink
        self._sink.reach()
        super().__init__(outputs, schedule=schedule, speculate=speculate)
        for reader in self.parts.readers.values():
            reader.ends = not reader.grows
        self._every, self._now = every, now
        self._manifests = Manifests(checkpoint.reach())
        cells = self.graph.cells
        plan = {cell.label: described(cell.node) for cell in cells if not cell.node.row_wise}
        before = self._manifests.last()
        if before is not None and before.plan != plan:
            then, now_ = ({f"{k}: {v}": v for k, v in some.items()} for some in (before.plan, plan))
            raise another_plan(then, now_)
        self._last = self._manifests.begin(SavedEpoch(uuid.uuid4().hex, plan))
        self._log = StateLog(
            checkpoint / "state",
            {cell.node.fingerprint: cell.label for cell in cells},
            tag=f"-{self._last.start}",
        )
        if self._last.state:
            self.restore(self._log.load(self._last.state))
        self._delivery = Delivery(self._sink, self.outputs, checkpoint)
        self._delivery.begin(self._last)
        self._log.sweep()
        self._saved_at = now()
        self._failed: BaseException | None = None
        """Why an epoch could not be saved: what it took from the steps is lost to this query."""

    def step(self) -> bool:
        """As a query without a checkpoint does; saves an epoch when it is due."""
        self._refuse_failed()
        going = super().step()
        if self._now() - self._saved_at >= self._every:
            self.save()
        return going

    def run(self) -> None:
        """Works until every source is at its end, saving as it goes, and once more at the end."""
        while self.step():
            pass
        self.save()

    def save(self) -> int:
        """Saves an epoch now, unless nothing has changed; gives the number of the last manifest."""
        self._refuse_failed()
        try:
            return self._save()
        except BaseException as error:
            self._failed = error
            raise

    def _save(self) -> int:
        self.ports.deliver()  # what that gives belongs to this epoch
        output = {name: super(DurableQuery, self).take(name) for name in self.outputs}
        late = super().late()  # before the snapshot, which holds late rows that nobody took
        chunks = self.snapshot()
        self._saved_at = self._now()
        if not chunks and not late and not any(output.values()):
            return self._last.number
        before, number = self._last, self._last.number + 1
        state = self._log.save(number, chunks)
        made = SavedEpoch(before.query, before.plan, number, before.start, before.epoch, state)
        made = self._delivery.write(made, output, late)
        self._manifests.add(made)
        self._last = made
        self._delivery.deliver(made)
        self._delivery.forget(before)
        for reader in self.parts.readers.values():
            reader.saved()
        return number

    def take(self, output: str) -> list[Item]:
        """What came out in the epochs saved since the last call, where the query has no sink."""
        looked_up(self.outputs, output, "output", "take")
        return self._taken("take").items.pop(output, [])

    def table(self, output: str = "out") -> pa.Table:
        """What the sink holds as of the last epoch that was saved: a table by key, or a history."""
        return held_table(self._sink, output, looked_up(self.outputs, output, "output", "table"))

    def late(self) -> dict[str, pa.Table]:
        """Rows with reasons of the epochs saved since the last call, where the query has no sink."""
        waiting = self._taken("late")
        late, waiting.late = waiting.late, {}
        return {name: table for source, rows in late.items() for name, table in late_tables(source, rows)}

    def _refuse_failed(self) -> None:
        if self._failed is None:
            return
        if isinstance(self._failed, CaesuraError):
            raise self._failed
        raise StreamError(
            f"an epoch could not be saved: {type(self._failed).__name__} {self._failed}.",
            remedy="Make the query again: it goes on from the last epoch that was saved.",
        ) from self._failed

    def _taken(self, what: str) -> TakenOutput:
        if isinstance(self._sink, TakenOutput):
            return self._sink
        raise StreamError(
            f"what comes out goes to the sink, and {what}() has none of it.",
            remedy="Read what the sink has; or make the query without sink=.",
        )
