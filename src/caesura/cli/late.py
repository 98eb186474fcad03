"""``caesura late``: the rows that came too late, or could not be read."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from caesura.cli import shell
from caesura.cli.load import load
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.runtime.graph.rejected import together


@shell.app.command()
@shell.reports_errors
def late(
    path: Annotated[str, typer.Argument(help="a folder that a query wrote to, or a Python file to run")],
    rows: Annotated[int, typer.Option(help="how many are shown of each source")] = shell.ROWS_SHOWN,
    strict: shell.Strict = False,
    as_json: shell.AsJson = False,
) -> None:
    """Shows the rows that came too late or could not be read, each with the reason."""
    if path.partition(":")[0].endswith(".py"):
        stream = load(path)
        with shell.working("running"):
            tables = stream.run().late
    else:
        tables = _rejected(Place.of(path))
    if as_json:
        shell.say_json({source: table.to_pylist() for source, table in tables.items()})
    else:
        shell.say("\n".join(listed(tables, rows)) or "no row was refused.")
    if strict and any(table.num_rows for table in tables.values()):
        raise typer.Exit(shell.LATE_ROWS)


def _rejected(folder: Place) -> dict[str, pa.Table]:
    """The late tables beside the files of a Parquet sink, by source; only of epochs that were committed."""
    if not (folder / "_late").is_folder():
        raise StreamError(
            f"'{folder}' holds no late table.",
            remedy="Give the folder that was sink= when the query was started, or a Python file.",
        )
    found: dict[str, list[pa.Table]] = {}
    for file in (folder / "_late").files(".parquet"):
        source, _, epoch = file.stem.partition("-epoch-")
        if (folder / "_commits" / f"{epoch.partition('-')[0]}.json").is_file():
            found.setdefault(source, []).append(pq.read_table(file.open()))
    return {name: table for source, some in found.items() for name, table in together(source, some)}


def listed(tables: dict[str, pa.Table], limit: int) -> list[str]:
    """The refused rows of each source as lines, the first of them shown."""
    lines: list[str] = []
    for source, table in tables.items():
        if table.num_rows == 0:
            continue
        lines.append(f"{source}: {table.num_rows} refused")
        lines += [f"  {_line(row)}" for row in table.slice(0, limit).to_pylist()]
        if table.num_rows > limit:
            lines.append(f"  and {table.num_rows - limit} more")
    return lines


def _line(row: dict[str, Any]) -> str:
    """A row that was refused where it is read, or that a step speaks of."""
    aside = ("reason", "kind", "LE", "RE", *(("lane", "offset", "RE_new") if "RE_new" in row else ()))
    values = " ".join(f"{name}={value}" for name, value in row.items() if name not in aside)
    where = f"row {row['offset']} of lane {row['lane']}: " if "RE_new" in row else ""
    return f"{where}{row['reason']} | {row['LE']} {row['RE']} | {values}"
