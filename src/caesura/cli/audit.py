"""``caesura audit``: do the claims of a pipeline hold?"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from caesura.cli.load import load_pipeline
from caesura.cli.shell import AsJson, app, refuse_unused, reports_errors, say, say_json, working
from caesura.io.places import Place
from caesura.plan import Node


@app.command()
@reports_errors
def audit(
    context: typer.Context,
    path: Annotated[str, typer.Argument(help="a folder that a pipeline or a query wrote to")],
    flow: Annotated[str | None, typer.Option(help="the pipeline, as flow.py:NAME")] = None,
    stored_plan: Annotated[
        bool,
        typer.Option("--stored-plan", help="take the plan in the folder, a pickle: only if you trust it"),
    ] = False,
    plan_of: Annotated[
        list[str] | None,
        typer.Option("--plan-of", help="an earlier plan of the pipeline, by its number: 1=old.py:NAME"),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "--most", help="how many claims to recompute; 0 for all")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """Recomputes claimed prefixes in plain Python and compares; exit code 1 if anything is wrong.

    Each claim is recomputed with the plan that made it: --flow is the present one, --plan-of an earlier one.
    Of a query's output, which claims nothing, it compares every file with its commit.
    """
    from caesura.audit import audit as check_claims

    if (Place.of(path) / "_commits").is_folder() and not (Place.of(path) / "_claims").is_folder():
        none = "it claims nothing that a plan could recompute: its files are compared with its commits"
        unused = dict.fromkeys(("flow", "stored_plan", "plan_of", "limit"), none)
        refuse_unused(context, "for the output of a query", unused)
        _audit_files(Place.of(path), as_json)
        return
    if flow is not None:
        refuse_unused(context, "with --flow", {"stored_plan": "the plan is the one of --flow"})
    stored: Literal["stored"] | None = "stored" if stored_plan else None
    plan = load_pipeline(flow).nodes if flow is not None else stored
    earlier = dict(map(_numbered, plan_of or ()))
    with working("recomputing claims"):
        report = check_claims(path, plan=plan, earlier=earlier, limit=limit or None)
    if as_json:
        found = [{"claim": f.claim.number, "view": f.view, "right": f.right} for f in report.findings]
        say_json({"right": report.right, "flaws": report.flaws, "states": found})
    else:
        say(str(report))
    if not report.right:
        raise typer.Exit(1)


def _numbered(text: str) -> tuple[int, dict[str, Node]]:
    """A plan with its number, as a user writes it."""
    number, _, flow = text.partition("=")
    if not number.isdigit() or not flow:
        raise typer.BadParameter(f"'{text}' is not NUMBER=FILE.py:NAME", param_hint="--plan-of")
    return int(number), dict(load_pipeline(flow).nodes)


def _audit_files(folder: Place, as_json: bool) -> None:
    from caesura.runtime.sinks.verify import committed_flaws

    with working("comparing files"):
        files, flaws = committed_flaws(folder)
    if as_json:
        say_json({"right": not flaws, "files": files, "flaws": flaws})
    else:
        say("\n".join([*flaws, f"{files} files are named by commits, {len(flaws)} flaws were found."]))
    if flaws:
        raise typer.Exit(1)
