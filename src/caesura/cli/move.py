"""``caesura move``: a checkpoint that was copied or restored elsewhere, for Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from caesura.cli.shell import AsJson, Checkpoint, app, check_folder, reports_errors, say, say_json
from caesura.errors import StreamError
from caesura.io.places import Place


@app.command()
@reports_errors
def move(
    checkpoint: Checkpoint,
    files: Annotated[
        bool,
        typer.Option(help="The files that were read hold what they held: they were only copied or touched."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Lets a checkpoint of Spark that lies elsewhere than before go on there.

    A query that is started with start(...) does so by itself; a DataFrame of to_spark(...) needs it.
    With --files, the files that were read and have other times than then are taken as they are.
    """
    from caesura.spark.host.checkpoint import spark_folder
    from caesura.spark.host.moved import follow_move
    from caesura.spark.host.read_files import take_times

    check_folder(checkpoint)
    place = Place.of(checkpoint).absolute()
    folder = spark_folder(place)
    if not (folder / "metadata").is_file():
        raise StreamError(
            f"'{checkpoint}' is no checkpoint of a query on Spark.",
            remedy="Give the folder that was checkpoint= of start, or Spark's own option checkpointLocation. "
            "A checkpoint of query(...) goes on wherever it lies.",
        )
    notes = follow_move(folder)
    touched = take_times(folder) if files else 0
    if as_json:
        say_json({"checkpoint": checkpoint, "notes": notes, **({"files": touched} if files else {})})
        return
    say(
        f"{notes} notes of Spark's named another place: its query goes on here." if notes else "it lies here."
    )
    if files:
        say(f"{touched} files that were read had other times: they are taken to hold what they held.")
