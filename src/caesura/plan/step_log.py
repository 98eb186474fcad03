"""What steps count, with keys of the user's own, as a report at the end (section 6.3 of the feedback thesis).

A function or module of the user's adds to its step's log while it works; everything stays in memory.

>>> log = StepLog({"where": Counters(rows_in=362, rows_out=297, extra={"sensors seen": 12})})
>>> log["where"]["rows out"]
297
>>> print(log)
where
  rows in       362
  rows out      297
  sensors seen   12
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from caesura.errors import looked_up
from caesura.plan.operator import Counters
from caesura.plan.tally import Number, Tally


class Working(threading.local):
    """The counters of the step that works in this thread; none between steps."""

    counters: Counters | None = None


WORKING = Working()


def note(key: str, by: int = 1) -> None:
    """Adds to the log of the step that is calling, under a key of your own; elsewhere it does nothing.

    Parameters
    ----------
    key
        What it is counted under.
    by
        How much is added.

    See Also
    --------
    caesura.runtime.Query.log : what steps counted.
    Stream.observe : counts of the rows that pass.
    set_log_level : how much is logged.

    Examples
    --------
    >>> import caesura as cz
    >>> @cz.udf
    ... def halved(n: int) -> int:
    ...     cz.note("odd", n % 2)
    ...     return n // 2
    >>> rows = cz.from_rows([{"ts": t, "n": t} for t in range(5)], time="ts")
    >>> done = rows.select(half=halved(cz.col("n"))).run()
    >>> done.log()["select"]["odd"]
    2
    """
    counters = WORKING.counters
    if counters is not None:
        counters.extra[key] = counters.extra.get(key, 0) + by


class StepCounts(Protocol):
    """What one step counted, in one process or over all buckets."""

    @property
    def rows_in(self) -> int: ...
    @property
    def rows_out(self) -> int: ...
    @property
    def state_rows(self) -> int: ...
    @property
    def feedback(self) -> Mapping[str, int]: ...
    @property
    def extra(self) -> Mapping[str, int]: ...
    @property
    def observed(self) -> Mapping[str, Tally]: ...


class StepLog(dict[str, dict[str, Number]]):
    """By step, what it counted, under the keys' names."""

    def __init__(self, counters: Mapping[str, StepCounts], steps: Sequence[str] = ()) -> None:
        for step in steps:
            looked_up(counters, step, "step", "log")
        super().__init__({step: _entries(c) for step, c in counters.items() if not steps or step in steps})

    def __str__(self) -> str:
        return "\n".join(line for step, entries in self.items() for line in _written(step, entries))


def _entries(counted: StepCounts) -> dict[str, Number]:
    own = {"rows in": counted.rows_in, "rows out": counted.rows_out}
    held = {"state rows": counted.state_rows} if counted.state_rows else {}
    observed = {name: tally.value for name, tally in counted.observed.items() if tally.value is not None}
    return {**own, **held, **counted.feedback, **counted.extra, **observed}


def observed_by(steps: Mapping[str, StepCounts]) -> dict[str, dict[str, Number | None]]:
    """What `observe` has counted, by its name, of the steps that do."""
    return {
        step: {name: tally.value for name, tally in counted.observed.items()}
        for step, counted in steps.items()
        if counted.observed
    }


def _written(step: str, entries: Mapping[str, Number]) -> list[str]:
    names, values = max(map(len, entries)), max(len(str(v)) for v in entries.values())
    return [step, *(f"  {key:<{names}}  {value:>{values}}" for key, value in entries.items())]
