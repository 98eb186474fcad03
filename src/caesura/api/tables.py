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
    """A table without times: its rows hold over all time, or from version to version.

    Parameters
    ----------
    data
        Rows, Arrow data, a pandas or Spark DataFrame, or the path of a file or folder; with ``reload`` a
        folder, or a function that gives the rows.
    schema
        The columns with their types; by default they are inferred.
    format
        What files are, where they do not end in .parquet, .csv or .json.
    name
        What the table is called in drawings and messages.
    max_bytes
        How large it may be: a worker process keeps a copy.
    reload
        After what time it is loaded again, or ``"changed"``: when the files do. A version then holds from
        the reading of the clock at which it was loaded until the next.
    correct
        ``"1h"``: a version holds from an hour before it was loaded, and corrects what was joined with the
        one before; results are final an hour later. ``"past"``: the last version holds over all time, and
        nothing is final before the end.
    history
        The folder that versions are written to, which Spark's workers must see; without one a query cannot
        be resumed in another process.
    tz
        The time zone of the clock's readings; UTC by default.

    Returns
    -------
    Stream
        For the right side of a `join`.

    Notes
    -----
    Promises: all, where it does not change; else what the clock tells. State: a join with it looks each row
    up and keeps none; one that changes joins as a stream does. Feedback: of a join with it, the left side
    is told. Spark: one copy in each worker process; no stage and no exchange.

    See Also
    --------
    Stream.join : pairs of rows with equal keys.
    sql : a query in SQL.

    Examples
    --------
    >>> import caesura as cz
    >>> names = cz.table([{"id": 3, "name": "Ada"}])
    >>> visits = cz.from_rows([{"ts": 1, "id": 3}, {"ts": 4, "id": 9}], time="ts")
    >>> print(visits.join(names, on="id", how="left").run())
     LE  RE | id name |
      1  2  | 3  Ada  | +
      4  5  | 9  null | +
    """
    if reload is not None:
        if max_bytes != TABLE_BYTES:
            raise PlanError(
                "max_bytes= limits a table of which every worker holds a copy, and one that is loaded again "
                "is a stream.",
                remedy="Leave max_bytes= out; or reload=, and the table stays as it is read first.",
            ).at(name or "table", here())
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
