"""``caesura move``: a checkpoint that was copied or restored elsewhere, for Spark."""

from __future__ import annotations

from caesura.cli.shell import AsJson, Checkpoint, app, check_folder, reports_errors, say, say_json
from caesura.errors import StreamError
from caesura.io.places import Place


@app.command()
@reports_errors
def move(checkpoint: Checkpoint, as_json: AsJson = False) -> None:
    """Lets a checkpoint of Spark that lies elsewhere than before go on there.

    A query that is started with start(...) does so by itself; a DataFrame of to_spark(...) needs it.
    """
    from caesura.spark.host.checkpoint import spark_folder
    from caesura.spark.host.moved import follow_move

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
    if as_json:
        say_json({"checkpoint": checkpoint, "notes": notes})
    else:
        say(
            f"{notes} notes of Spark's named another place: its query goes on here."
            if notes
            else "it lies here."
        )
