"""What a query has put aside: the rows that came too late, and what its steps remember."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from caesura.cli.load import load
from caesura.cli.shell import LATE_ROWS, AsJson, Strict, app, say, say_json, told, working
from caesura.errors import StreamError
from caesura.runtime.graph.rejected import together

SHOWN = 20


@app.command()
@told
def late(
    path: Annotated[str, typer.Argument(help="a folder that a query wrote to, or a Python file to run")],
    rows: Annotated[int, typer.Option(help="how many are shown of each source")] = SHOWN,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Shows the rows that came too late or could not be read, each with the reason."""
    if path.partition(":")[0].endswith(".py"):
        stream = load(path)
        with working("running"):
            tables = stream.run().late
    else:
        tables = _refused(Path(path))
    if as_json:
        say_json({source: table.to_pylist() for source, table in tables.items()})
    else:
        say("\n".join(listed(tables, rows)) or "no row was refused.")
    if strict and any(table.num_rows for table in tables.values()):
        raise typer.Exit(LATE_ROWS)


def _refused(folder: Path) -> dict[str, pa.Table]:
    """The late tables beside the files of a Parquet sink, by source; only of epochs that were committed."""
    if not (folder / "_late").is_dir():
        raise StreamError(
            f"'{folder}' holds no late table.",
            remedy="Give the folder that was sink= when the query was started, or a Python file.",
        )
    found: dict[str, list[pa.Table]] = {}
    for file in sorted((folder / "_late").glob("*.parquet")):
        source, _, epoch = file.stem.partition("-epoch-")
        if (folder / "_commits" / f"{epoch.partition('-')[0]}.json").is_file():
            found.setdefault(source, []).append(pq.read_table(file))
    return {name: table for source, some in found.items() for name, table in together(source, some)}


def listed(tables: dict[str, pa.Table], most: int) -> list[str]:
    """The refused rows of each source as lines, the first of them shown."""
    lines: list[str] = []
    for source, table in tables.items():
        if table.num_rows == 0:
            continue
        lines.append(f"{source}: {table.num_rows} refused")
        lines += [f"  {_told(row)}" for row in table.slice(0, most).to_pylist()]
        if table.num_rows > most:
            lines.append(f"  and {table.num_rows - most} more")
    return lines


def _told(row: dict[str, Any]) -> str:
    """A row that was refused where it is read, or that a step speaks of."""
    aside = ("reason", "kind", "LE", "RE", *(("lane", "offset", "RE_new") if "RE_new" in row else ()))
    values = " ".join(f"{name}={value}" for name, value in row.items() if name not in aside)
    where = f"row {row['offset']} of lane {row['lane']}: " if "RE_new" in row else ""
    return f"{where}{row['reason']} | {row['LE']} {row['RE']} | {values}"


@app.command()
@told
def state(
    checkpoint: Annotated[str, typer.Argument(help="the folder that was checkpoint= of the query")],
    op: Annotated[str | None, typer.Option(help="one step, with its rows")] = None,
    rows: Annotated[int, typer.Option(help="how many rows are shown of each table")] = SHOWN,
    as_json: AsJson = False,
) -> None:
    """Shows what each step of a checkpoint holds, or the rows that one step holds.

    Reads Spark's state store as of the last epoch; the query need not run.
    """
    from caesura.spark import session
    from caesura.spark.host.state import read_state

    if not Path(checkpoint).is_dir():
        raise StreamError(f"there is no folder '{checkpoint}'.", remedy="Give the checkpoint of a query.")
    with working("reading the state store"):
        held = read_state(session(), checkpoint, op)
    if as_json:
        say_json([{**h.to_json(), **({"rows": h.rows.to_pylist()} if op else {})} for h in held])
        return
    if not held:
        say("no step holds anything.")
    for one in held:
        say(
            f"stage {one.stage} {one.step} | bucket {one.bucket} | {one.table}: "
            f"{one.rows.num_rows} rows, {one.bytes} bytes"
        )
        if op:
            for row in one.rows.slice(0, rows).to_pylist():
                say("  " + " ".join(f"{name}={value}" for name, value in row.items()))


@app.command()
@told
def rescale(
    checkpoint: Annotated[str, typer.Argument(help="the folder that was checkpoint= of the query")],
    buckets: Annotated[int, typer.Option(help="over how many buckets its state shall lie")],
    as_json: AsJson = False,
) -> None:
    """Spreads the state of a stopped query over more or fewer buckets; it goes on where it stood.

    Start it again with a session of the new number: cz.session(buckets=n).
    """
    from caesura.spark import session
    from caesura.spark.host.rescale import rescale as move

    if not Path(checkpoint).is_dir():
        raise StreamError(f"there is no folder '{checkpoint}'.", remedy="Give the checkpoint of a query.")
    with working("moving the state"):
        had = move(session(), checkpoint, buckets)
    if as_json:
        say_json({"checkpoint": checkpoint, "had": had, "has": buckets})
    else:
        say(
            f"the state lay in {had} buckets and lies in {buckets}: start with cz.session(buckets={buckets})."
        )
