"""What all commands share: how they speak, and how they end.

Exit codes: 0 all is well; 1 a diagnostic, an unsafe plan, something wrong with the installation;
2 the command was not understood; 3 all ran, but rows were refused and ``--strict`` asked to be told.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from caesura.errors import CaesuraError, StreamError, refused_by_machine
from caesura.io.places import Place
from caesura.waiting import shown_elsewhere

ORDER = (
    "new",
    "preview",
    "explain",
    "check",
    "run",
    "console",
    "sql",
    "trace",
    "feedback",
    "late",
    "state",
    "rescale",
    "move",
    "audit",
    "bench",
    "doctor",
    "tell",
)


class Commands(TyperGroup):
    """The commands in the order in which one meets them."""

    def list_commands(self, ctx: Any) -> list[str]:
        known = super().list_commands(ctx)
        return sorted(known, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Caesura: streams with lifetimes and promises.",
)

LATE_ROWS = 3
INTERRUPTED = 130
ROWS_SHOWN = 20

Target = Annotated[
    str, typer.Argument(help="a Python file or a script of SQL, or one stream of it: file.py:stream")
]
Checkpoint = Annotated[str, typer.Argument(help="the folder that was checkpoint= of the query")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]
Strict = Annotated[bool, typer.Option("--strict", help=f"exit code {LATE_ROWS} if rows were refused")]


def reports_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Diagnostics of ours on the standard error, as text or, with ``--json``, as JSON; exit code 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            with _path_errors():
                return command(*args, **kwargs)
        except CaesuraError as error:
            typer.echo(json.dumps(error.to_json()) if kwargs.get("as_json") else str(error), err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None

    return run


@contextmanager
def _path_errors() -> Iterator[None]:
    """A path that cannot be used is a diagnostic."""
    try:
        yield
    except OSError as error:
        raise refused_by_machine(error) from error


def refuse_unused(context: typer.Context, when: str, unused: Mapping[str, str]) -> None:
    """Refuses options that were written although they would do nothing; each with what to do instead."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in unused and source is not None and source.name == "COMMANDLINE":
            flag = option.opts[0] if option.param_type_name == "option" else option.name.upper()
            raise typer.BadParameter(f"it does nothing {when}: {unused[option.name]}", param_hint=flag)


def check_folder(path: str) -> None:
    """Refuses a checkpoint that is not there."""
    if not Place.of(path).is_folder():
        raise StreamError(f"there is no folder '{path}'.", remedy="Give the checkpoint of a query.")


def say(text: str) -> None:
    """Prints to the standard output."""
    typer.echo(text)


def say_json(value: Any) -> None:
    """Prints a value as JSON, on one line."""
    typer.echo(json.dumps(value, default=str))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows on a terminal that something takes its time, and how far it is where it says so."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with (
        Console(stderr=True).status(Text(what)) as status,
        shown_elsewhere(lambda text: status.update(Text(text or what))),
    ):
        yield
