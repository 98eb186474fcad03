"""Reading with a new plan what a query has read, while that query runs: so that a switch has little to read.

It looks at the last manifest of the checkpoint, reads the sources up to there, and saves what came of it in
`prepared`. Done again it goes on from there, up to the manifest that is the last one then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.places.lease import Lease
from caesura.plan import Node, Speculate
from caesura.runtime.durable.change import PlanChange, steps_of
from caesura.runtime.durable.manifest import Manifests
from caesura.runtime.durable.prepared import Prepared, PreparedFolder, PreparedPlan, compacted
from caesura.runtime.durable.rebuild import GivenOutput, refuse_unrepeatable, unrepeatable_parts
from caesura.runtime.durable.replay import Replay, entered_log, saved_positions
from caesura.runtime.query.query import Query

ON_SPARK = "caesura.json"
"""What the checkpoint of a query on Spark has."""


@dataclass(frozen=True)
class Preparation:
    """What was read with a new plan beside the query that runs.

    Given by `Stream.prepare_upgrade`.
    """

    rows: int
    """How many rows were read now."""
    rows_in_all: int
    """How many were read so far: as many as the query had saved when this began."""

    def __str__(self) -> str:
        return f"prepared: {self.rows:,} rows read now, {self.rows_in_all:,} in all"


def prepare(
    outputs: Mapping[str, Node],
    checkpoint: Place,
    *,
    speculate: Speculate = "arrival",
    every: float = 60.0,
    take_over: bool = False,
    now: Callable[[], float] = time.monotonic,
) -> Preparation:
    """Reads up to where the query is saved; what came of it is saved too, every so many seconds."""
    manifests = Manifests(checkpoint)
    saved = manifests.saved()
    if saved is None and (checkpoint / ON_SPARK).exists():
        raise runs_on_spark(checkpoint)
    if saved is None:
        raise nothing_saved(checkpoint)
    (last, chunks), query = saved, Query(outputs, speculate=speculate)
    steps = steps_of(query.graph.cells)
    change = PlanChange.between(last.known_steps, steps)
    if not change.alters and not GivenOutput(last.columns, last.forms).other_columns(outputs):
        raise nothing_to_prepare(checkpoint)
    entered, names, folder = entered_log(chunks), change.renamed, PreparedFolder(checkpoint)
    entered.carry(names)
    positions = {names[n]: at for n, at in saved_positions(chunks).items() if n in names}
    refuse_unrepeatable(unrepeatable_parts(query.parts, positions, entered))
    labels = {cell.node.fingerprint: cell.label for cell in query.graph.cells}
    with query, Lease.take(folder.place, take_over=take_over) as lease:
        begun = PreparedPlan.begun(last, steps, speculate)
        found = folder.found(begun, positions, labels, tag=f"-{lease.number}")
        found.restore(query)
        replay = Replay(query, positions, entered, seen=found.plan.seen)
        rows, saving = replay.rows, _Saving(replay, folder, found, lease, manifests, every, now)
        query.runner.onlookers.append(saving)
        replay.run("preparing", entered.settled(positions))
        replay.end()
        saving.save()
    return prepared_by(query, rows)


def prepared_by(query: Query, rows: int) -> Preparation:
    """What a query has read, of which some rows now."""
    readers = query.parts.readers.values()
    return Preparation(rows, sum(sum(reader.offsets.values()) for reader in readers))


def nothing_saved(place: Place) -> StreamError:
    """What to say of a place that no query has read anything for."""
    return StreamError(
        f"no query has saved anything in '{place}': there is nothing to prepare for.",
        remedy="Give the checkpoint of a query that runs; on a new one start the new plan at once.",
    )


def nothing_to_prepare(place: Place) -> StreamError:
    """What to say of a plan that is not another."""
    return StreamError(
        f"the plan is the one that '{place}' belongs to: there is nothing to prepare.",
        remedy="Give the new version of the query.",
    )


def runs_on_spark(place: Place) -> StreamError:
    """What to say of a query whose new plan reads when the old one has stopped."""
    return StreamError(
        f"'{place}' is of a query on Spark, for which nothing is prepared while it runs.",
        remedy="Stop the query and start the new plan with on_change='rebuild', which reads the sources "
        "from their beginning.",
    )


def gone_over(place: Place) -> StreamError:
    """What to say where another plan came first."""
    return StreamError(
        f"'{place}' has gone over to another plan while this one was prepared.",
        remedy="Prepare again, if the query is to change once more.",
    )


class _Saving:
    """Looks at a query that reads again, and saves now and then what has come of it."""

    def __init__(
        self,
        replay: Replay,
        folder: PreparedFolder,
        found: Prepared,
        lease: Lease,
        manifests: Manifests,
        every: float,
        now: Callable[[], float],
    ) -> None:
        self._replay, self._query, self._folder = replay, replay.query, folder
        self._plan, self._state = found.plan, found.state
        self._lease, self._manifests = lease, manifests
        self._every, self._now, self._saved_at = every, now, now()

    def look(self) -> None:
        """Between two batches, when all that was read is worked off."""
        if self._now() - self._saved_at >= self._every:
            self.save()

    def update(self) -> None:
        """Nothing: it is saved once more at the end."""

    def save(self) -> None:
        """Makes what was read so far count, unless the query has gone over to another plan meanwhile."""
        self._lease.check()
        last, plan = self._manifests.last(), self._plan
        if last is None or (last.query, last.version) != (plan.query, plan.version):
            self._folder.clear()
            raise gone_over(self._manifests.checkpoint)
        number, outputs = plan.number + 1, self._query.outputs
        items = {name: compacted(self._query.take(name), node.schema) for name, node in outputs.items()}
        state = self._state.save(number, self._query.snapshot())
        made = replace(plan, number=number, state=state, seen=self._replay.seen)
        self._plan = self._folder.save(made, items)
        self._folder.sweep(self._plan)
        self._saved_at = self._now()
