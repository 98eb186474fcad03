"""``caesura feedback``: what a stream would do with feedback, or feedback to a query that runs.

A Python file is asked what each step would do; a checkpoint names a query that runs, here or elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from caesura.cli.load import load
from caesura.cli.shell import (
    AsJson,
    Checkpoint,
    app,
    check_folder,
    refuse_unused,
    reports_errors,
    say,
    say_json,
    working,
)
from caesura.feedback.explain import responses
from caesura.feedback.predicates import patterns_of
from caesura.punctuation import Intent, Pattern
from caesura.punctuation.parsing import parse_punctuation

if TYPE_CHECKING:
    from caesura.spark.host.feedback import CheckpointFeedback

ACTIONS = ("assume", "desire", "demand", "withdraw", "list")


class TakesFeedback(Protocol):
    """A running query on any host."""

    def assume(self, what: Pattern) -> object: ...
    def desire(self, what: Pattern) -> object: ...


def read_pattern(text: str) -> Pattern:
    """The pattern that a text such as 'seg = 1, LE < 20' means."""
    return parse_punctuation(f"assumed: {text}").pattern


def send_feedback(query: TakesFeedback, assume: list[str] | None, desire: list[str] | None) -> None:
    """Gives feedback to a query, before its first row."""
    for text in assume or []:
        query.assume(read_pattern(text))
    for text in desire or []:
        query.desire(read_pattern(text))


@app.command()
@reports_errors
def feedback(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="a Python file, or the checkpoint of a query that runs")],
    action: Annotated[
        str, typer.Argument(help=f"of a file: a pattern, as in 'id = 4'; of a query: {', '.join(ACTIONS)}")
    ],
    what: Annotated[
        str | None, typer.Argument(help="a pattern, as in 'segment = 3, LE < 20'; the number to withdraw")
    ] = None,
    audit: Annotated[bool, typer.Option("--audit", help="of a file: run with and without, compare")] = False,
    output: Annotated[str | None, typer.Option(help="which output, where the query has several")] = None,
    as_json: AsJson = False,
) -> None:
    """Prints what each step of a stream would do with feedback, or gives feedback to a query that runs.

    A file: what each step would do if such rows were assumed away; with --audit the stream runs with that
    feedback and without it, and nothing else may be missing (exit code 1 if something is).

    A checkpoint: which rows will be ignored (assume), are wanted first (desire) or now (demand), from the
    next epoch on; `list` shows the standing feedback, and what is still suppressed after a withdrawal.
    """
    if not target.partition(":")[0].endswith(".py"):
        refuse_unused(context, "for a query that runs", {"audit": "give the Python file of its stream"})
        if action in ("list", "withdraw"):
            numbered = {"output": "feedback is listed and withdrawn by its number"}
            refuse_unused(context, f"with {action}", numbered)
        if action == "list":
            refuse_unused(context, "with list", {"what": "it lists all that stands"})
        give(target, action, what, output, as_json=as_json)
        return
    refuse_unused(context, "for a file", {"output": "name the stream: flow.py:NAME"})
    if what is not None:
        raise typer.BadParameter("a file takes one pattern, as in 'id = 4'", param_hint="WHAT")
    _foresee(target, read_pattern(action), audit=audit, as_json=as_json)


def _foresee(target: str, pattern: Pattern, *, audit: bool, as_json: bool) -> None:
    """What a stream would do under an assumption, or what it did."""
    stream = load(target)
    if audit:
        with working("running twice"):
            found = stream.audit(pattern)
        say_json(found.to_json()) if as_json else say(str(found))
        if not found.holds:
            raise typer.Exit(1)
    elif as_json:
        node = stream.node
        say_json([one.to_json() for one in responses(node, patterns_of(pattern, node.schema, node.time))])
    else:
        say(stream.explain("feedback", pattern=pattern))


def give(checkpoint: str, action: str, what: str | None, output: str | None, *, as_json: bool) -> None:
    """Gives feedback to the query of a checkpoint, and prints what stands."""
    if action not in ACTIONS:
        raise typer.BadParameter(f"'{action}' is none of {', '.join(ACTIONS)}", param_hint="ACTION")
    check_folder(checkpoint)
    from caesura.spark.host.feedback import CheckpointFeedback

    feedback = CheckpointFeedback.at(checkpoint)
    _give(feedback, action, what, output)
    standing = feedback.standing()
    if as_json:
        say_json(standing)
    else:
        say("\n".join(standing) or "no feedback stands.")


def _give(feedback: CheckpointFeedback, action: str, what: str | None, output: str | None) -> None:
    match action:
        case "assume" | "desire":
            if what is None:
                raise typer.BadParameter(f"{action} which rows?", param_hint="WHAT")
            intent = Intent.ASSUMED if action == "assume" else Intent.DESIRED
            feedback.give(intent, read_pattern(what), output)
        case "demand":
            feedback.demand(True if what is None else read_pattern(what), output)
        case "withdraw":
            if what is None or not what.lstrip("#").isdigit():
                raise typer.BadParameter("withdraw which number? See list.", param_hint="WHAT")
            feedback.withdraw(int(what.lstrip("#")))


@app.command(deprecated=True)
@reports_errors
def tell(
    checkpoint: Checkpoint,
    word: Annotated[str, typer.Argument()],
    what: Annotated[str | None, typer.Argument()] = None,
    output: Annotated[str | None, typer.Option()] = None,
    as_json: AsJson = False,
) -> None:
    """The former name of `caesura feedback CHECKPOINT ...`; it goes with the next version."""
    typer.echo("Write: caesura feedback CHECKPOINT ...", err=True)
    give(checkpoint, word, what, output, as_json=as_json)
