"""The commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from caesura.cli.doctor import examine
from caesura.cli.feedback import embedded_run, read_pattern
from caesura.cli.load import load, load_pipeline
from caesura.errors import CaesuraError, PlanError

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Caesura: streams with lifetimes and promises."
)

Target = Annotated[str, typer.Argument(help="a Python file, or file.py:stream")]
Said = Annotated[list[str] | None, typer.Option(help="a pattern, like 'seg = 1, LE < 20'")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]


def told(command: Callable[..., Any]) -> Callable[..., Any]:
    """Diagnostics of ours as plain text, with exit code 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except CaesuraError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from None

    return run


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Checks Java, Python, libraries and settings, and says what to do."""
    findings = examine()
    if as_json:
        typer.echo(json.dumps([vars(f) for f in findings]))
    else:
        for finding in findings:
            typer.echo(finding.line())
    if not all(f.ok for f in findings):
        raise typer.Exit(1)


@app.command()
@told
def explain(target: Target) -> None:
    """Prints the plan: steps, columns, properties, punctuation."""
    typer.echo(load(target).explain())


@app.command()
@told
def feedback(target: Target, pattern: str) -> None:
    """Prints what each step would do if rows like 'seg = 1, LE < 20' were assumed away."""
    typer.echo(load(target).explain("feedback", pattern=read_pattern(pattern)))


@app.command()
@told
def check(target: Target) -> None:
    """Says before it runs whether state stays bounded and answers come out; exit code 1 if not."""
    verdict = load(target).check()
    typer.echo(str(verdict))
    if not verdict.safe:
        raise typer.Exit(1)


@app.command()
@told
def preview(target: Target, rows: int = 20, as_json: AsJson = False) -> None:
    """Runs in this process until some final rows have come out."""
    result = load(target).preview(rows)
    typer.echo(json.dumps(result.table().to_pylist(), default=str) if as_json else str(result))


@app.command()
@told
def audit(
    path: Annotated[str, typer.Argument(help="a folder that a pipeline was written to")],
    flow: Annotated[str | None, typer.Option(help="the pipeline, as flow.py:NAME")] = None,
    most: Annotated[int, typer.Option(help="how many claims to recompute; 0 for all")] = 50,
    as_json: AsJson = False,
) -> None:
    """Recomputes claimed prefixes in plain Python and compares; exit code 1 if anything is wrong."""
    from caesura.audit import audit as check_claims

    plan = None if flow is None else load_pipeline(flow).nodes
    report = check_claims(path, plan=plan, most=most or None)
    if as_json:
        found = [{"claim": f.claim.number, "view": f.view, "right": f.right} for f in report.findings]
        typer.echo(json.dumps({"right": report.right, "flaws": report.flaws, "states": found}))
    else:
        typer.echo(str(report))
    if not report.right:
        raise typer.Exit(1)


@app.command()
@told
def run(
    target: Target,
    sink: str = "console",
    checkpoint: str | None = None,
    output: str = "changes",
    trigger: str = "available",
    embedded: bool = False,
    assume: Said = None,
    desire: Said = None,
) -> None:
    """Runs a stream on Spark, or with --embedded in this process."""
    stream = load(target)
    if embedded:
        typer.echo(embedded_run(stream, output, assume or [], desire or []))
        return
    if assume or desire:
        raise PlanError("feedback from the command line is for --embedded.", remedy="Add --embedded.")
    from caesura.spark import session

    query = stream.start(
        session(),
        sink=sink,
        checkpoint=checkpoint,
        output=output,  # type: ignore[arg-type]
        trigger=trigger,
    )
    query.wait()


def main() -> None:
    """The entry point of the `caesura` command."""
    sys.exit(app())
