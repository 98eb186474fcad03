"""What users call to read a table of versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from caesura.errors import CaesuraError, PlanError
from caesura.io.changes.delta_log import DeltaLog
from caesura.io.changes.iceberg import IcebergSnapshots
from caesura.io.changes.lake_reader import CHANGE, TIME, VERSION, LakeReader, LakeTable
from caesura.io.ingress.arrival import IngestionTime
from caesura.io.ingress.policy import Policy
from caesura.io.ingress.refusals import Lateness
from caesura.io.places import Place
from caesura.io.sinks.iceberg_catalog import Catalog, IcebergName
from caesura.io.sources.read import source_of
from caesura.io.sources.source import Source
from caesura.plan import here


class VersionEvents(TypedDict, total=False):
    """How rows of a table become events; those with a key have the times of their commits."""

    time: str | IngestionTime
    end: str | None
    punctuate: Policy | None
    late: Lateness
    late_limit: int | None
    rename: Mapping[str, str] | None
    name: str


def read_delta(path: Any, *, keyed: bool, options: Mapping[str, Any], events: Mapping[str, Any]) -> Source:
    """A Delta table by version."""
    return _source(lambda: DeltaLog(Place.of(path)), keyed, options, events)


def read_iceberg(
    table: str, catalog: Catalog, *, keyed: bool, options: Mapping[str, Any], events: Mapping[str, Any]
) -> Source:
    """An Iceberg table by snapshot."""
    return _source(lambda: IcebergSnapshots(IcebergName(table, catalog)), keyed, options, events)


def _source(
    opened: Callable[[], LakeTable], keyed: bool, options: Mapping[str, Any], events: Mapping[str, Any]
) -> Source:
    time = events.get("time")
    try:
        for name, words in (("start", ("snapshot", "latest")), ("until", (None, "latest"))):
            if options[name] not in words:
                raise PlanError(
                    f"{name}={options[name]!r} tells a table's source nothing.",
                    remedy=f"Give {' or '.join(repr(word) for word in words)}.",
                )
        if keyed and time not in (None, TIME):
            raise PlanError(
                f"time={time!r}: changes of rows with a key count from when they are committed.",
                remedy="Leave time= out; or leave key= out, if rows are only ever appended.",
            )
    except CaesuraError as error:
        raise error.at(events.get("name") or "read", here()) from None
    meta = [CHANGE, VERSION, TIME] if keyed else [TIME] if time == TIME else []
    given = {**events, "time": TIME} if keyed else events
    return source_of(lambda: LakeReader(opened(), meta, **options), given)  # type: ignore[arg-type]
