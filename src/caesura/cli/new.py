"""``caesura new``: a small project that runs at once."""

from __future__ import annotations

import re
import runpy
from importlib.resources import files
from typing import Annotated

import typer

from caesura.cli.shell import AsJson, app, reports_errors, say, say_json
from caesura.errors import PlanError, closest
from caesura.io.places import Place

COMMANDS = {
    "files": ["caesura preview pipeline.py", "caesura run pipeline.py", "pytest"],
    "sql": ["caesura preview pipeline.sql:revenue", "caesura sql pipeline.sql", "pytest"],
    "delta": ["caesura preview pipeline.py", "python pipeline.py", "pytest"],
    "kafka": ["pytest", "export KAFKA=localhost:9092", "python generate.py", "python pipeline.py"],
}
"""What to try in each kind of project."""


@app.command()
@reports_errors
def new(
    name: Annotated[str, typer.Argument(help="the folder to make")],
    template: Annotated[str, typer.Option(help=f"what it works with: {', '.join(COMMANDS)}")] = "files",
    as_json: AsJson = False,
) -> None:
    """Makes a small project: a pipeline, a generator of its data, a test, and some data to begin with."""
    if template not in COMMANDS:
        raise PlanError(f"there is no template '{template}'.", remedy=closest(template, list(COMMANDS)))
    folder = Place.of(name).on_this_machine("a new project")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PlanError(f"'{name}' is there already.", remedy="Choose another name, or remove it first.")
    if not re.fullmatch(r"[\w.-]+", folder.name):
        raise PlanError(f"'{folder.name}' is no good name.", remedy="Use letters, digits, '-' and '_'.")
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for file in sorted(files("caesura.cli").joinpath("template", template).iterdir(), key=lambda f: f.name):
        made.append(file.name.removesuffix(".txt"))
        (folder / made[-1]).write_text(file.read_text().replace("{{name}}", folder.name))
    if template != "kafka":  # its data goes to a broker
        runpy.run_path(str(folder / "generate.py"), run_name="__main__")
        made.append("data/")
    commands = [f"cd {name}", *COMMANDS[template]]
    if as_json:
        say_json({"folder": name, "files": made, "next": commands})
    else:
        say(f"made {name}: {', '.join(made)}")
        say("try:\n" + "\n".join(f"  {command}" for command in commands))
