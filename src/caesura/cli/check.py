"""``caesura check``: does state stay bounded, and do answers come out?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from caesura.cli.load import load
from caesura.cli.shell import AsJson, Target, app, reports_errors, say, say_json
from caesura.contracts.bounds import loop_names
from caesura.errors import PlanError
from caesura.plan import Duration

Fix = Annotated[bool, typer.Option("--fix", help="Show the plan with the first remedy applied.")]
Rates = Annotated[
    list[str] | None,
    typer.Option(
        help="source=events/per/within, such as clicks=1000/5s/10s: how much is held at most. Loops too."
    ),
]
Lives = Annotated[
    list[str] | None,
    typer.Option(
        help="source=duration, such as spans=10m: no event of a source, or row of a loop, lives longer."
    ),
]


def _rate(text: str) -> tuple[str, tuple[int, Duration, Duration]]:
    name, _, numbers = text.partition("=")
    parts = numbers.split("/")
    if len(parts) != 3 or not parts[0].isdigit():
        raise PlanError(
            f"'{text}' is no rate of a source.", remedy="Write source=events/per/within: clicks=1000/5s/10s."
        ).at("check", "--rate")
    per, within = (int(part) if part.isdigit() else part for part in parts[1:])
    return name, (int(parts[0]), per, within)


def _lifetime(text: str) -> tuple[str, Duration]:
    name, _, length = text.partition("=")
    if not length:
        raise PlanError(
            f"'{text}' is no longest lifetime of a source.", remedy="Write source=duration: spans=10m."
        ).at("check", "--lifetime")
    return name, int(length) if length.isdigit() else length


@app.command()
@reports_errors
def check(
    target: Target,
    output: str = "changes",
    as_json: AsJson = False,
    fix: Fix = False,
    rate: Rates = None,
    lifetime: Lives = None,
) -> None:
    """Says before it runs whether state stays bounded and answers come out; exit code 1 if not.

    With rates of the sources, and of loops, it says how much each step holds at most.
    """
    stream = load(target)
    rates = dict(map(_rate, rate or ()))
    lives = dict(map(_lifetime, lifetime or ()))
    loops = loop_names(stream.node) if rates else ()  # how long their rows live counts for the bounds alone
    known: Any = {name: lived for name, lived in lives.items() if name not in loops}
    verdict = stream.check(output, fix=fix, lifetimes=known)  # type: ignore[arg-type]
    bounds = stream.bounds(rates, lifetimes=lives) if rates and verdict.safe else []
    if as_json:
        parts = {name: getattr(verdict, name) for name in ("findings", "cautions", "remedies", "notes")}
        texts = {name: [str(one) for one in some] for name, some in parts.items()}
        mended = None if verdict.mended is None else list(verdict.mended.drawn())
        numbers = [{"rows": b.rows, "bytes": b.bytes, "behind": b.behind} for b in bounds]
        say_json({"safe": verdict.safe, **texts, "mended": mended, "bounds": numbers})
    else:
        say("\n".join([str(verdict), *(["", *map(str, bounds)] if bounds else [])]))
    if not verdict.safe:
        raise typer.Exit(1)
