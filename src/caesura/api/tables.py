"""Tables without times, whose rows hold over all time, or from version to version."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from caesura import io
from caesura.api.stream import Stream
from caesura.errors import CaesuraError, PlanError
from caesura.io.sources.table import TABLE_BYTES, table_of
from caesura.plan import Duration, here


def table(
    data: Any,
    *,
    schema: pa.Schema | None = None,
    format: Literal["parquet", "csv", "json"] | None = None,
    name: str = "",
    max_bytes: int = TABLE_BYTES,
    reload: Duration | None = None,
    correct: str | None = None,
    history: str | Path | None = None,
    tz: str | None = None,
) -> Stream:
    """A table without times: its rows hold over all time.

    ``data`` is rows, Arrow data, a pandas or Spark DataFrame, or the path of a file or folder, whose files
    end in .parquet, .csv or .json unless ``format`` says what they are. A join with it looks each row up: no
    stage, no state, on every host, with one copy of the table in each worker process, of at most
    ``max_bytes``.

    >>> import caesura as cz
    >>> names = cz.table([{"id": 3, "name": "Ada"}])
    >>> visits = cz.from_rows([{"ts": 1, "id": 3}, {"ts": 4, "id": 9}], time="ts")
    >>> print(visits.join(names, on="id", how="left").run())
     LE  RE | id name |
      1  2  | 3  Ada  | +
      4  5  | 9  null | +

    ``reload`` makes it a table that changes: a folder, or a function that gives the rows, is loaded again
    after each such time, or with ``"changed"`` when the files do. A version then holds from the reading of
    the clock (UTC, or ``tz``) at which it was loaded until the next; it joins as a stream does. What was
    loaded is written to the folder ``history``, which Spark's workers must see; without one a query cannot
    be resumed in another process. With ``correct="1h"`` a version holds from an hour before it was loaded,
    and corrects what was joined with the one before; results are final an hour later. With
    ``correct="past"`` the last version holds over all time, and nothing is final before the end.
    """
    if reload is not None:
        return _changing(
            data, reload, correct, schema=schema, format=format, name=name, history=history, tz=tz
        )
    _refuse_unless_reloaded(name, correct=correct, history=history, tz=tz)
    if type(data).__module__.startswith("pyspark."):
        from caesura.spark.host.frames import collected

        data = collected(data, name)
    return Stream(table_of(data, schema=schema, format=format, name=name, max_bytes=max_bytes))


def _refuse_unless_reloaded(name: str, **given: object) -> None:
    wrong = next((option for option, value in given.items() if value), None)
    if wrong is not None:
        raise PlanError(
            f"{wrong}= says something of a table that changes, and this one does not.",
            remedy=f'Leave {wrong}= out; or say when it is loaded again: reload="10m", reload="changed".',
        ).at(name or "table", here())


def _changing(data: Any, reload: Duration, correct: str | None, **more: Any) -> Stream:
    """A table that is loaded again, as the rows that came and went with each version."""
    from caesura.io.sources.versions import CHANGE, COPY, VERSION, TableVersions, correcting

    name, tz = more.pop("name"), more.pop("tz")
    try:
        reader = TableVersions(data, reload=reload, **more)
        shape, policy = correcting(correct, tz)
        source = io.Source(reader=reader, shape=shape, policy=policy, name=name or "table")
    except CaesuraError as error:
        raise error.at(name or "table", here()) from None
    versions = Stream(source).changelog([*reader.rows.names, COPY], op=CHANGE, order=VERSION)
    return versions.drop(COPY, VERSION)
