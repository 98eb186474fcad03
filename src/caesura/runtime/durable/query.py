"""A query in this process that is saved as it runs, and goes on in another process where it was saved last.

Now and then it saves an epoch: what its steps hold, where its sources are, and what came out since the epoch
before, all named by one manifest. Whatever is killed between two puts, the next start goes on from the last
manifest; a sink that knows its last epoch gets every epoch once.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial

import pyarrow as pa

from caesura.errors import CaesuraError, StreamError, looked_up
from caesura.events import Item
from caesura.io.places import Place
from caesura.io.places.lease import Lease
from caesura.io.sinks.protocol import Sink, TableSink
from caesura.io.sources.protocol import Offsets
from caesura.misuse import checked_methods
from caesura.plan import Duration, Node, Speculate
from caesura.punctuation import Punctuation
from caesura.runtime.durable.change import OnChange, PlanChange, carried_offsets, check_choices, steps_of
from caesura.runtime.durable.corrections import FinalRows, forms_of
from caesura.runtime.durable.delivery import Delivery, TakenOutput
from caesura.runtime.durable.entered import EnteredLog
from caesura.runtime.durable.finality import refuse_never_final
from caesura.runtime.durable.manifest import Manifests, SavedEpoch
from caesura.runtime.durable.prepared import PreparedFolder, PreparedPlan
from caesura.runtime.durable.rebuild import (
    CONSUMER,
    GivenOutput,
    columns_of,
    corrected,
    refuse_assembled,
    refuse_columns,
)
from caesura.runtime.durable.replay import Replay, entered_log, saved_positions
from caesura.runtime.graph.rejected import late_tables
from caesura.runtime.graph.schedule import Schedule, ScheduleName
from caesura.runtime.graph.source_reader import read_on_later
from caesura.runtime.metrics.plan_shape import shape_of_query
from caesura.runtime.metrics.saved_status import IN_A_PROCESS, save_shape, save_status
from caesura.runtime.metrics.served import timed
from caesura.runtime.metrics.status import Board, log_steps
from caesura.runtime.query.pipelines import StateLog
from caesura.runtime.query.query import Query
from caesura.runtime.query.recorded_rows import RecordedRows, TakenIn
from caesura.runtime.query.recording import Recording
from caesura.runtime.query.stored_plan import described
from caesura.runtime.sinks.held import held_table

log = logging.getLogger("caesura.epochs")


READ = {
    "take": "Read what the sink has",
    "late": "`caesura late` shows them, of the sink's folder or of the checkpoint",
}
"""Where that is which goes to a sink."""


@checked_methods
class DurableQuery(Query):
    """A query with a checkpoint: it begins where the last start was saved, and is saved as it runs.

    Made by `Stream.query` with ``checkpoint=`` or ``sink=``, and by `Script.query`.
    """

    def __init__(
        self,
        outputs: Mapping[str, Node],
        *,
        checkpoint: Place,
        sink: Sink | None = None,
        every: float = 10.0,
        now: Callable[[], float] = time.monotonic,
        schedule: Schedule | ScheduleName | None = None,
        speculate: Speculate = "arrival",
        take_over: bool = False,
        on_change: OnChange = "refuse",
        final_rows: FinalRows = "refuse",
        state_memory: int | str | None = None,
        record: Duration | None = None,
    ) -> None:
        ring = None if record is None else RecordedRows.at(checkpoint, record)
        check_choices(on_change, final_rows)
        self._sink = TakenOutput() if sink is None else sink
        Board.given_to(self._sink)
        self._sink.reach()
        self.folder = self._sink.folder
        super().__init__(outputs, schedule=schedule, speculate=speculate, state_memory=state_memory)
        refuse_never_final(outputs)
        read_on_later(self.parts.readers.values())
        self._every, self._now = every, now
        self._taking_down = False
        self._manifests = Manifests(checkpoint.reach())
        self._lease = Lease.take(checkpoint, take_over=take_over)
        self._saved_at = now()
        self._failed: BaseException | None = None
        """Why an epoch could not be saved: what it took from the steps is lost to this query."""
        self._delivery = Delivery(self._sink, self.outputs, checkpoint)
        self._checkpoint = checkpoint
        self._ring, self._taken_in = ring, TakenIn()
        self._entered = EnteredLog()
        self._prepared, self._speculate = PreparedFolder(checkpoint), speculate
        self._go_on(checkpoint, on_change, final_rows, take_over=take_over)
        if ring is not None:
            labels = {cell.node.fingerprint: cell.label for cell in self.graph.cells}
            for reader in self.parts.readers.values():
                reader.recorders.append(lambda source, raw: self._taken_in.add(labels[source], raw))
        save_shape(
            checkpoint,
            shape_of_query(self),
            name="",
            timed=timed(self.outputs.values()),
            folder=self.folder,
            host=IN_A_PROCESS,
        )

    def _go_on(
        self, checkpoint: Place, on_change: OnChange, final_rows: FinalRows, *, take_over: bool
    ) -> None:
        """Takes what was saved, if anything was; goes over from another plan to this one."""
        cells = self.graph.cells
        plan = {cell.label: described(cell.node) for cell in cells if not cell.node.row_wise}
        steps = steps_of(cells)
        before = self._manifests.last()
        self.change = PlanChange.between({} if before is None else before.known_steps, steps)
        """What became of the steps of the plan that was saved."""
        given = None if before is None else GivenOutput(before.columns, before.forms, before.generation)
        columns = "" if given is None else given.other_columns(self.outputs, self._sink)
        asked = on_change == "rebuild" and self.change.alters
        changed = before is not None and (self.change.differs or bool(columns) or asked)
        if changed:
            self.change.refuse(on_change)
            refuse_columns(columns if on_change == "continue" else "")
        self._last = self._manifests.begin(SavedEpoch(uuid.uuid4().hex, plan, steps=steps))
        self._log = StateLog(
            checkpoint / "state",
            {cell.node.fingerprint: cell.label for cell in cells},
            tag=f"-{self._last.start}",
        )
        saved = self._log.load(self._last.state) if self._last.state else {}
        self._entered = entered_log(saved)
        if changed and on_change == "rebuild":
            with self._prepared.taken(take_over=take_over):
                self._rebuild(saved, final_rows)
        else:
            if saved:
                self.restore(self._carried(saved))
            self._delivery.begin(self._last)
        self._take_down()
        version, forms = self._last.version + changed, forms_of(self.outputs)
        self._last = replace(
            self._last, plan=plan, steps=steps, version=version, columns=columns_of(self.outputs), forms=forms
        )
        self._delivery.enter(self._last)
        if before is not None and before.known_steps != steps:
            self._save(whole=True)
        self._log.sweep()
        self._prepared.forget(self._last)

    def _carried(self, chunks: dict[str, bytes]) -> dict[str, bytes]:
        """The state that was saved, under the names that steps have now."""
        names = self.change.renamed
        self.change.refuse_waiting(chunks)
        dropped = [step.before for step in self.change.steps if step.fate == "dropped"]
        if not dropped and all(then == now for then, now in names.items()):
            return chunks
        self._entered.carry(names)
        return carried_offsets(self._log.carry(names, dropped), names)

    def _take_down(self) -> None:
        """Notes from here on what enters besides rows; a clock that comes later was not there before."""
        for label, reader in self.parts.readers.items():
            if reader.node.heartbeat is not None and reader.offsets and not reader.clock:
                self._entered.whole = False
            reader.on_reading = partial(self._note_clock, label)
        self._taking_down = True

    def _note_clock(self, label: str, reading: int) -> None:
        self._entered.clock(self._stand(label), reading)

    def _stand(self, *labels: str) -> dict[str, dict[str, int]]:
        """Where sources stand."""
        readers = self.parts.readers
        return {one: {str(lane): at for lane, at in readers[one].offsets.items()} for one in labels}

    def _send_feedback(self, output: str, message: Punctuation) -> None:
        if self._taking_down:
            self._entered.feedback(self._stand(*self.parts.readers), output, message)
        super()._send_feedback(output, message)

    def _rebuild(self, chunks: dict[str, bytes], final_rows: FinalRows) -> None:
        """Reads the sources again up to where they were read, and gives what corrects the output."""
        before = GivenOutput(self._last.columns, self._last.forms, self._last.generation)
        names = self.change.renamed
        self._entered.carry(names)
        positions = {names[n]: at for n, at in saved_positions(chunks).items() if n in names}
        begun = PreparedPlan.begun(self._last, steps_of(self.graph.cells), self._speculate)
        refuse_assembled(self.parts, self._sink, before, positions, final_rows, self._entered)
        prepared = self._prepared.found(begun, positions, self._log.labels)
        prepared.restore(self)
        for name, given in self._prepared.history(prepared.plan).items():
            self._taps[name] += given
        replay = Replay(self, positions, self._entered, seen=prepared.plan.seen)
        self._delivery.begin(self._last)
        standing = {name: data for name, data in chunks.items() if name == CONSUMER}
        self._log.begin_anew(prepared.state.whole | standing)
        replay.run("reading again")
        replay.end()
        self.consumer.restore(chunks)
        self._entered.begin_anew()
        assert isinstance(self._sink, TableSink)
        items = {name: list(self._taps[name]) for name in self.outputs}
        pages = corrected(self._sink.read_back, self.outputs, items, before, final_rows)
        if pages is None:
            self._last = replace(self._last, generation=before.generation + 1)
            return
        super().late()  # the sink has them, of the first time
        for name, corrections in pages.items():
            self._taps[name][:] = corrections

    def feed(self, label: str, item: Item) -> None:
        """As a query without a checkpoint takes it; recorded, where that was asked for."""
        super().feed(label, item)
        if self._ring is not None:
            self._taken_in.add(label, item)

    def stretch(self, output: str, ends: Mapping[str, Offsets], rows: int) -> Recording:
        """What was recorded and saved; read again from the sources where nothing is recorded."""
        if self._ring is None:
            return super().stretch(output, ends, rows)
        return self._ring.recording(self.outputs[output])

    def _epoch(self) -> int:
        return self._last.number - 1  # the first was saved before anything was read

    @property
    def starts(self) -> int:
        """How often a query was started on this checkpoint."""
        return self._lease.number

    def step(self) -> bool:
        """As a query without a checkpoint does; saves an epoch when it is due.

        Returns
        -------
        bool
            False when there is nothing to do.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query(checkpoint=tempfile.mkdtemp())
        >>> while query.step():
        ...     pass
        >>> query.close()
        """
        self._refuse_failed()
        going = super().step()
        if self._now() - self._saved_at >= self._every:
            self.save()
        return going

    def run(self) -> None:
        """Works until every source is at its end, saving as it goes, and once more at the end.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts")
        >>> folder = tempfile.mkdtemp()
        >>> query = clicks.query(checkpoint=folder)
        >>> query.run()
        >>> print(cz.draw(query.take("out")))
         LE  RE | id |
          1  2  | 7  | +
        -- definite: * --
        >>> again = clicks.query(checkpoint=folder)
        >>> again.run()  # nothing is read twice
        >>> again.status().sources["read"].rows
        1
        """
        while self.step():
            pass
        self.save()
        self.runner.rest()
        self._lease.release()

    def close(self) -> None:
        """Releases what its sources hold open, and gives the checkpoint back to whoever starts next."""
        super().close()
        self._lease.release()

    def save(self) -> int:
        """Saves an epoch now, unless nothing has changed.

        Returns
        -------
        int
            The number of the last manifest.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query(checkpoint=tempfile.mkdtemp())
        >>> before = query.save()
        >>> _ = query.step()
        >>> query.save() > before
        True
        >>> query.close()
        """
        self._refuse_failed()
        try:
            return self._save()
        except BaseException as error:
            self._failed = error
            raise

    def _save(self, *, whole: bool = False) -> int:
        self.ports.deliver()  # what that gives belongs to this epoch
        output = {name: super(DurableQuery, self).take(name) for name in self.outputs}
        late = super().late()  # before the snapshot, which holds late rows that nobody took
        chunks = self.snapshot() | self._entered.snapshot()
        self._saved_at = self._now()
        if not whole and not chunks and not late and not any(output.values()):
            return self._last.number
        before, number, began = self._last, self._last.number + 1, self._saved_at
        state = self._log.save(number, chunks)
        made = replace(before, number=number, state=state)
        made = self._delivery.write(made, output, late)
        self._manifests.add(made)
        self._last = made
        self._delivery.deliver(made)
        self._delivery.forget(before)
        if self._ring is not None:
            self._ring.write(number, "", self._taken_in.take())
            self._ring.sweep()
        self._tell(number, self._now() - began)
        log.info("epoch %d saved", number, extra={"query": made.query, "epoch": number})
        if log.isEnabledFor(logging.DEBUG):
            log_steps(self.status(), number, made.query)
        for reader in self.parts.readers.values():
            reader.saved()
        return number

    def _tell(self, number: int, seconds: float) -> None:
        """Writes how the query stands, for whoever looks from another process."""
        status, board = self.status(), self._sink.board
        steps = {name: asdict(step) for name, step in status.steps.items()}
        kept = ("rows", "late", "latest", "promised")
        sources = {n: {key: getattr(one, key) for key in kept} for n, one in status.sources.items()}
        board.take("0:0", {"steps": steps, "sources": sources})
        save_status(self._checkpoint, board, number, seconds)

    def take(self, output: str) -> list[Item]:
        """What came out in the epochs saved since the last call, where the query has no sink.

        After a restart the last saved epoch is given again, for nobody knows whether it was used: a sink
        knows.

        Parameters
        ----------
        output
            The output: ``"out"``.

        Returns
        -------
        list of items
            Pages and punctuation.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> query = cz.from_rows([{"ts": 1, "id": 7}], time="ts").query(checkpoint=tempfile.mkdtemp())
        >>> query.run()
        >>> print(cz.draw(query.take("out")))
         LE  RE | id |
          1  2  | 7  | +
        -- definite: * --
        """
        looked_up(self.outputs, output, "output", "take")
        return self._taken("take").items.pop(output, [])

    def table(self, output: str = "out") -> pa.Table:
        """What the sink holds as of the last epoch that was saved: a table by key, or a history."""
        return held_table(self._sink, output, looked_up(self.outputs, output, "output", "table"))

    def late(self) -> dict[str, pa.Table]:
        """Rows with reasons of the epochs saved since the last call, where the query has no sink.

        Returns
        -------
        dict of str to pyarrow.Table
            By source or step, as of a query without a checkpoint.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> rows = [{"ts": 9, "id": 7}, {"ts": 1, "id": 8}]
        >>> clicks = cz.from_rows(rows, time="ts", punctuate=cz.delay(5))
        >>> query = clicks.query(checkpoint=tempfile.mkdtemp())
        >>> query.run()
        >>> query.late()["read"].select(["reason", "id"]).to_pylist()
        [{'reason': 'time 1 came after its lane had passed 4', 'id': 8}]
        """
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
            remedy=f"{READ[what]}; or make the query without sink=.",
        )
