"""``caesura new``: a small project that runs at once."""

from __future__ import annotations

import re
import runpy
from importlib.resources import files
from typing import Annotated

import typer

from caesura.cli.shell import AsJson, app, reports_errors, say, say_json
from caesura.errors import PlanError
from caesura.io.places import Place

FILES = ("README.md", "pipeline.py", "generate.py", "test_pipeline.py")


@app.command()
@reports_errors
def new(name: Annotated[str, typer.Argument(help="the folder to make")], as_json: AsJson = False) -> None:
    """Makes a small project: a pipeline, a generator of its data, a test, and some data to begin with."""
    folder = Place.of(name).on_this_machine("a new project")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PlanError(f"'{name}' is there already.", remedy="Choose another name, or remove it first.")
    if not re.fullmatch(r"[\w.-]+", folder.name):
        raise PlanError(f"'{folder.name}' is no good name.", remedy="Use letters, digits, '-' and '_'.")
    folder.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        text = files("caesura.cli").joinpath("template", f"{file}.txt").read_text()
        (folder / file).write_text(text.replace("{{name}}", folder.name))
    runpy.run_path(str(folder / "generate.py"), run_name="__main__")
    commands = [f"cd {name}", "caesura preview pipeline.py", "caesura run pipeline.py", "pytest"]
    if as_json:
        say_json({"folder": name, "files": [*FILES, "data/"], "next": commands})
    else:
        say(f"made {name}: {', '.join(FILES)}, data/")
        say("try:\n" + "\n".join(f"  {command}" for command in commands))
