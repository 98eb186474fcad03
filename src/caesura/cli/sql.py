"""``caesura sql``: a script of statements in this process, statements behind ``-c``, or a shell for them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from caesura.cli.shell import AsJson, app, reports_errors, say, say_json, working
from caesura.errors import CaesuraError, PlanError
from caesura.io.places import Place
from caesura.plan.outline import outline
from caesura.sql.script import Question, Script
from caesura.sql.text import script_text

HISTORY = Path("~/.caesura_history")
PROMPT, MORE = "caesura> ", "    ...> "
FIRST = ("SELECT", "WITH", "VALUES", "CREATE", "EXPLAIN", "CHECK", "PREVIEW", "INSERT", "SET", "DROP")
"""What statements begin with, and few files do."""
WELCOME = "Statements end with ';'. CREATE, SELECT, EXPLAIN, CHECK, PREVIEW, INSERT INTO; quit with Ctrl-D."


@app.command()
@reports_errors
def sql(
    file: Annotated[
        str | None, typer.Argument(help="a script that ends in .sql; without one, a shell")
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "--command", "-c", "-e", help="statements to run, behind those of a script; several in order"
        ),
    ] = None,
    script: Annotated[
        str | None, typer.Option("--file", "-f", help="a script, as without -f; '-' is the standard input")
    ] = None,
    checkpoint: Annotated[str | None, typer.Option(help="where INSERTs go on from after a stop")] = None,
    as_json: AsJson = False,
) -> None:
    """Runs a script in SQL in this process, or statements behind -c, or opens a shell.

    SELECT prints its rows, EXPLAIN a plan, CHECK whether it is safe, PREVIEW the first rows. All INSERTs of a
    script are one query, run when the script has been read; on Spark: caesura run SCRIPT.sql. The first
    error ends it, with exit code 1.
    """
    if file is not None and script is not None:
        raise typer.BadParameter("the script is given already, without it", param_hint="--file")
    file = script if file is None else file
    made = Script()
    if checkpoint is not None:
        made.settings["checkpoint"] = checkpoint
    if file is None and not command:
        _answer(made, as_json=as_json)
        return
    if file is not None:
        made.file = "standard input" if file == "-" else Path(file).name
        _execute(made, script_text(_content(file)), as_json=as_json)
    for at, text in enumerate(command or (), 1):
        made.inserts.clear()
        made.file = "-c" if len(command or ()) == 1 else f"-c {at}"
        _execute(made, text, as_json=as_json)


def _content(file: str) -> bytes:
    """A script's content; a text that was meant to be run is told from a file that is not there."""
    if file == "-":
        return sys.stdin.buffer.read()
    first = file.split(maxsplit=1)
    if len(first) > 1 and first[0].upper() in FIRST and not Place.of(file).exists():
        raise PlanError(f"{file!r} is no file.", remedy=f"Write caesura sql -c {shlex.quote(file)}.")
    return Place.of(file).read_bytes()


def _answer(made: Script, *, as_json: bool) -> None:
    """Runs what is typed or piped in; an error of one statement does not keep the others from running."""
    if sys.stdin.isatty():
        say(WELCOME)
    failed = False
    for text in _statements():
        try:
            _execute(made, text, as_json=as_json)
        except CaesuraError as error:
            failed = True
            typer.echo(json.dumps(error.to_json()) if as_json else str(error), err=True)
        except KeyboardInterrupt:
            typer.echo("stopped.", err=True)
        made.inserts.clear()
    if failed and not sys.stdin.isatty():
        raise typer.Exit(1)


def _execute(script: Script, text: str, *, as_json: bool) -> None:
    for question in script.execute(text):
        (_show_json if as_json else _show)(question)
    if script.inserts:
        with working("writing"):
            query = script.query()
            query.run()
        if as_json:
            say_json({"written": list(script.inserts)})
        else:
            say(f"written: {', '.join(script.inserts)}.")


def _show(question: Question) -> None:
    match question.what:
        case "explain":
            say(question.stream.explain())
        case "check":
            say(str(question.stream.check(question.output)))
        case "preview":
            say(str(question.stream.preview()))
        case "select":
            with working("running"):
                result = question.stream.run(output=question.output)
            say(result.draw())


def _show_json(question: Question) -> None:
    """Rows line by line; a plan, a verdict, first rows as one line each."""
    stream = question.stream
    match question.what:
        case "explain":
            say_json([step.to_json() for step in outline(stream.node)])
        case "check":
            verdict = stream.check(question.output)
            say_json({"safe": verdict.safe, "findings": [str(one) for one in verdict.findings]})
        case "preview":
            say_json(stream.preview().table().to_pylist())
        case "select":
            for row in stream.run(output=question.output).changes().to_pylist():
                say_json(row)


def _statements() -> Iterator[str]:
    """What is typed or piped in, a statement at a time."""
    if not sys.stdin.isatty():
        yield from _piped()
        return
    _remember()
    lines: list[str] = []
    while True:
        try:
            line = input(MORE if lines else PROMPT)
        except EOFError:
            break
        except KeyboardInterrupt:
            lines.clear()
            say("")
            continue
        lines.append(line)
        if line.rstrip().endswith(";"):
            yield "\n".join(lines)
            lines.clear()
    if any(line.strip() for line in lines):
        yield "\n".join(lines)


def _piped() -> Iterator[str]:
    """A script that is piped in; empty lines in front of a statement keep its errors on their own lines."""
    lines: list[str] = []
    for number, content in enumerate(sys.stdin.buffer, 1):
        lines.append(script_text(content, line=number).rstrip("\r\n"))
        if lines[-1].rstrip().endswith(";"):
            yield "\n".join(lines)
            lines = [""] * number
    if any(line.strip() for line in lines):
        yield "\n".join(lines)


def _remember() -> None:
    """History of what was typed, kept between shells where the platform has readline."""
    try:
        import readline
    except ImportError:
        return
    import atexit

    path = HISTORY.expanduser()
    if path.exists():
        readline.read_history_file(path)
    readline.set_history_length(1000)
    atexit.register(readline.write_history_file, path)
