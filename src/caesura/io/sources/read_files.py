"""Readers of files as sources: a file, or a folder of them in the order of their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from caesura.errors import PlanError
from caesura.io.sources.appended import AppendedFileReader, may_be_logs
from caesura.io.sources.files import CSV, JSON, PARQUET, FileReader, Format
from caesura.io.sources.formats import UTF8, csv_in
from caesura.io.sources.lenient import LenientFileReader
from caesura.io.sources.memory import BATCH
from caesura.io.sources.quarantine import OnBad
from caesura.io.sources.read import Events, refuse_wrong, source_of
from caesura.io.sources.source import Source
from caesura.plan import here


def read_parquet(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    batch_size: int = BATCH,
    on_bad: OnBad = "stop",
    **events: Unpack[Events],
) -> Source:
    """Reads a Parquet file, or a folder of them in the order of their names."""
    return _files(path, PARQUET, columns, schema, batch_size, on_bad, events)


def read_csv(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    encoding: str = UTF8,
    batch_size: int = BATCH,
    on_bad: OnBad = "stop",
    appended: bool = False,
    **events: Unpack[Events],
) -> Source:
    """Reads a CSV file with a header line, or a folder of them; an empty field is null."""
    try:
        format_ = csv_in(encoding)
        given = "appended=True" if appended else f"on_bad={on_bad!r}"
        if format_ is not CSV and (appended or on_bad != "stop"):
            raise PlanError(
                f"{given} goes by the lines of UTF-8, and these files are in {encoding!r}.",
                remedy="Leave one of the two out, or write the files anew as UTF-8.",
            )
    except PlanError as error:
        raise error.at(events.get("name") or "read", here()) from None
    return _files(path, format_, columns, schema, batch_size, on_bad, events, appended=appended)


def read_json(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    batch_size: int = BATCH,
    on_bad: OnBad = "stop",
    appended: bool = False,
    **events: Unpack[Events],
) -> Source:
    """Reads a file of JSON lines, or a folder of them."""
    return _files(path, JSON, columns, schema, batch_size, on_bad, events, appended=appended)


def _files(
    path: str | Path,
    format_: Format,
    columns: Sequence[str] | None,
    schema: pa.Schema | None,
    batch_size: int,
    on_bad: OnBad,
    events: Events,
    *,
    appended: bool = False,
) -> Source:
    refuse_wrong(events)
    if not isinstance(appended, bool):
        raise PlanError(f"appended={appended!r} tells a source nothing.", remedy="Give true or false.").at(
            events.get("name") or "read", here()
        )
    if appended and on_bad != "stop":
        raise PlanError(
            f"appended=True reads whole lines as they come, and on_bad={on_bad!r} looks through whole files.",
            remedy="Leave one of the two out.",
        ).at(events.get("name") or "read", here())
    if columns is not None:
        policy = events.get("punctuate")
        time = events["time"] if isinstance(events["time"], str) else None
        read = [time, events.get("end"), events.get("kind"), events.get("new_end")]
        read.append(None if policy is None else policy.column)
        columns = [*columns, *(column for column in read if column is not None)]
    given: dict[str, Any] = {"schema": schema, "columns": columns, "batch_size": batch_size}

    def reader() -> FileReader:
        if appended:
            return AppendedFileReader(path, format_, **given)
        if on_bad == "stop":
            return may_be_logs(FileReader(path, format_, **given))
        return LenientFileReader(path, format_, on_bad=on_bad, **given)

    return source_of(reader, events)
