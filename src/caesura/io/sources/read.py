"""What users call to read: files, folders, Arrow, pandas, Python rows.

>>> events = from_rows([{"ts": 3, "id": 7}, {"ts": 5, "id": 8}], time="ts")
>>> events.schema.names, str(events.time)
(['id'], 'int64')
>>> from_rows([{"ts": 3, "id": 7}], time="tsx")
Traceback (most recent call last):
...
caesura.errors.PlanError: step 'read' (<doctest caesura.io.sources.read[2]>:1): there is no column 'tsx'.
Did you mean 'ts'? There are: id, ts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack, get_type_hints

import pyarrow as pa

from caesura.errors import CaesuraError, PlanError, closest
from caesura.io.ingress.arrival import IngestionTime
from caesura.io.ingress.policy import Policy, at_end
from caesura.io.ingress.refusals import Lateness
from caesura.io.ingress.shape import Form, Shape
from caesura.io.sources.memory import BATCH, arrow_reader, pandas_reader
from caesura.io.sources.protocol import Reader
from caesura.io.sources.python_rows import RowsReader
from caesura.io.sources.source import Source
from caesura.misuse import described, fits, shown
from caesura.plan import here

if TYPE_CHECKING:
    import pandas as pd


class Events(TypedDict, total=False):
    """How rows become events; every way of reading takes these."""

    time: Required[str | IngestionTime]
    """The column that says when an event starts, or `ingestion_time`: the clock does."""
    end: str | None
    """The column that says when it ends; null means never."""
    kind: str | None
    """The column that tells starts from ends, or inserts from retracts."""
    new_end: str | None
    """The column with a retract's new end."""
    shape: Form | None
    """'point', 'interval', 'edge' or 'full', where the columns leave a doubt."""
    until_next: str | Sequence[str] | None
    """Columns of which each event lives until the next with the same values starts: samples of a signal.
    Streams take it; it is a step behind the source."""
    punctuate: Policy | None
    """The punctuation the source gives: delay, every, heartbeat, in_data, imported, at_end (default)."""
    late: Lateness
    """What becomes of late rows: 'reject', 'adjust' their start if they live on, or 'error': stop."""
    late_limit: int | None
    """How many late rows are kept at most until they are asked for, the latest; None (default) for all."""
    rename: Mapping[str, str] | None
    """Other names for payload columns: ``{"old": "new"}``; the columns above keep theirs."""
    name: str
    """What messages call the step."""


def from_arrow(data: Any, *, batch_size: int = BATCH, **events: Unpack[Events]) -> Source:
    """Reads an Arrow table or batch, or, once, an Arrow stream."""
    return source_of(lambda: arrow_reader(data, batch_size=batch_size), events)


def from_pandas(frame: pd.DataFrame, *, batch_size: int = BATCH, **events: Unpack[Events]) -> Source:
    """Reads a pandas frame, without its index."""
    return source_of(lambda: pandas_reader(frame, batch_size=batch_size), events)


def from_rows(
    rows: Iterable[Any],
    schema: pa.Schema | None = None,
    *,
    batch_size: int | None = None,
    **events: Unpack[Events],
) -> Source:
    """Reads dicts, tuples or dataclasses, with punctuation between them where there is any."""
    return source_of(lambda: RowsReader(rows, schema, batch_size=batch_size), events)


@cache
def _options() -> dict[str, Any]:
    """The options of a source, each with its type."""
    return get_type_hints(Events)


def refuse_wrong(events: Mapping[str, Any]) -> None:
    """Refuses what is no option of a source, and what an option cannot be."""
    wanted = _options()
    step, place = Source.kind, here()
    for name, given in events.items():
        if name not in wanted:
            raise PlanError(
                f"a source has no option '{name}'.",
                remedy=closest(name, [*wanted, "batch_size"]),
                step=step,
                place=place,
            )
        if name not in OWN_CHECKS and not fits(given, wanted[name]):
            raise PlanError(
                f"{name}={shown(given)} tells a source nothing.",
                remedy=f"Give {described(wanted[name])}.",
                step=step,
                place=place,
            )
    if "time" not in events:
        raise PlanError(
            "it is not said which column tells when an event starts.",
            remedy="Write time='ts', with the name of that column.",
            step=step,
            place=place,
        )


OWN_CHECKS = ("shape", "late")
"""Options with a word for each way, refused where the words are known."""


def _timed(events: Events) -> tuple[Shape, Policy]:
    """Which columns, or the clock, tell the times of events; and what the source promises."""
    time = events["time"]
    if isinstance(time, IngestionTime):
        return time.shape(dict(events)), time.policy
    shape = Shape.of(
        time=time,
        end=events.get("end"),
        kind=events.get("kind"),
        new_end=events.get("new_end"),
        form=events.get("shape"),
        rename=events.get("rename"),
    )
    return shape, events.get("punctuate") or at_end()


def source_of(make: Callable[[], Reader], events: Events) -> Source:
    refuse_wrong(events)
    name, place = events.get("name", ""), here()
    try:
        reader = make()
        shape, policy = _timed(events)
    except CaesuraError as error:
        raise error.at(name or Source.kind, place) from None
    return Source(
        reader=reader,
        shape=shape,
        policy=policy,
        late=events.get("late", "reject"),
        limit=events.get("late_limit"),
        name=name,
        place=place,
    )
