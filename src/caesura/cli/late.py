"""``caesura late``: the rows that came too late, or could not be read; what was set aside comes back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import pyarrow as pa
import typer

from caesura.cli import shell
from caesura.cli.load import load
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.sinks.commits import generation_folder
from caesura.io.sinks.protocol import LATE
from caesura.io.sources.give_back import give_back, set_aside
from caesura.io.sources.quarantine import FOLDER, SetAside
from caesura.runtime.sinks.late_rows import FOLDER as KEPT
from caesura.runtime.sinks.late_rows import LateRows
from caesura.runtime.sinks.parquet import generations

Replay = Annotated[bool, typer.Option("--replay", help="give back what was set aside and is mended now")]


@shell.app.command()
@shell.reports_errors
def late(
    context: typer.Context,
    path: Annotated[str, typer.Argument(help="the folder of a sink, a checkpoint, or a Python file")],
    rows: Annotated[int, typer.Option(help="how many are shown of each source")] = shell.ROWS_SHOWN,
    replay: Annotated[
        bool, typer.Option("--replay", help="give back what was set aside and is mended")
    ] = False,
    strict: shell.Strict = False,
    as_json: shell.AsJson = False,
) -> None:
    """Shows the rows that came too late or could not be read, each with the reason.

    Of a folder that is read with on_bad="quarantine" it shows what is set aside there.
    """
    aside = {"strict": "what is set aside is no late row", "rows": "every line and file is told"}
    if replay:
        shell.refuse_unused(context, "with --replay", aside)
        _replay(Place.of(path), as_json)
        return
    if (Place.of(path) / FOLDER).is_folder():
        shell.refuse_unused(context, "for a folder with rows that are set aside", aside)
        _show_aside(set_aside(Place.of(path)), as_json)
        return
    if path.partition(":")[0].endswith(".py"):
        stream = load(path)
        with shell.working("running"):
            tables = stream.run().late
    else:
        tables = rejected(Place.of(path))
    if as_json:
        shell.refuse_unused(context, "with --json", {"rows": "it prints all rows"})
        shell.say_json({source: table.to_pylist() for source, table in tables.items()})
    else:
        shell.say("\n".join(listed(tables, rows)) or "no row was refused.")
    if strict and any(table.num_rows for table in tables.values()):
        raise typer.Exit(shell.LATE_ROWS)


def _replay(folder: Place, as_json: bool) -> None:
    found = list(give_back(folder))
    if as_json:
        told = [{"file": s.file, "rows": rows, "as": s.given_back, "problem": why} for s, rows, why in found]
        shell.say_json(told)
        return
    lines = [
        f"{some.name}: {problem}" if problem else f"{some.name}: {rows} rows come back as {some.given_back}"
        for some, rows, problem in found
    ]
    shell.say("\n".join(lines) or "nothing is set aside.")


def _show_aside(found: list[SetAside], as_json: bool) -> None:
    if as_json:
        shell.say_json([asdict(some) for some in found])
        return
    lines = []
    for some in found:
        lines += [f"{some.file}: {some.reason}"] if not some.lines else []
        lines += [f"{some.file}, line {bad.line}: {bad.reason}" for bad in some.lines]
        mended = f"{FOLDER}/{some.name}{some.ending}" if some.lines else some.file
        lines.append(f"  mend '{mended}', then: caesura late FOLDER --replay")
    shell.say("\n".join(lines) or "nothing is set aside.")


def rejected(folder: Place) -> dict[str, pa.Table]:
    """The late tables in a checkpoint, or beside the files of a Parquet sink, by source.

    Beside a sink only epochs that were committed count, of the last generation: a new one has the late rows
    of the whole input.
    """
    if (folder / KEPT).is_folder() and not (folder / "_commits").is_folder():
        return LateRows.beside(folder).read()
    folder = generation_folder(folder, generations(folder)[-1])
    if not (folder / LATE).is_folder():
        raise StreamError(
            f"'{folder}' holds no late table.",
            remedy="Give the folder that was sink= when the query was started, its checkpoint, or a Python "
            "file. A checkpoint has one from the first refused row on, where the sink keeps none.",
        )
    commits = folder / "_commits"
    return LateRows(folder / LATE).read(lambda epoch: (commits / f"{epoch:06d}.json").is_file())


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
