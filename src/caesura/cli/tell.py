"""``caesura tell``: speaks to a query that runs elsewhere, by its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caesura.cli.feedback import read_pattern
from caesura.cli.shell import AsJson, app, say, say_json, told
from caesura.errors import StreamError
from caesura.punctuation import Intent

if TYPE_CHECKING:
    from caesura.spark.host.feedback import Speaking

WORDS = ("assume", "desire", "demand", "withdraw", "list")


@app.command()
@told
def tell(
    checkpoint: Annotated[str, typer.Argument(help="the folder that is checkpoint= of the query")],
    word: Annotated[str, typer.Argument(help=", ".join(WORDS))],
    what: Annotated[
        str | None, typer.Argument(help="a pattern, as in 'segment = 3, LE < 20'; the number to withdraw")
    ] = None,
    output: Annotated[str | None, typer.Option(help="which output, where the query has several")] = None,
    as_json: AsJson = False,
) -> None:
    """Says to a running query which rows will be ignored, are wanted first, or are wanted now.

    The next epoch hears it. `list` shows what stands, and what is still suppressed after a withdrawal.
    """
    if word not in WORDS:
        raise typer.BadParameter(f"'{word}' is none of {', '.join(WORDS)}", param_hint="WORD")
    if not Path(checkpoint).is_dir() and "://" not in checkpoint:
        raise StreamError(f"there is no folder '{checkpoint}'.", remedy="Give the checkpoint of a query.")
    from caesura.spark.host.feedback import Speaking

    speaking = Speaking.at(checkpoint)
    _say(speaking, word, what, output)
    standing = speaking.standing()
    if as_json:
        say_json(standing)
    else:
        say("\n".join(standing) or "nothing stands.")


def _say(speaking: Speaking, word: str, what: str | None, output: str | None) -> None:
    match word:
        case "assume" | "desire":
            if what is None:
                raise typer.BadParameter(f"{word} which rows?", param_hint="WHAT")
            intent = Intent.ASSUMED if word == "assume" else Intent.DESIRED
            speaking.say(intent, read_pattern(what), output)
        case "demand":
            speaking.demand(True if what is None else read_pattern(what), output)
        case "withdraw":
            if what is None or not what.lstrip("#").isdigit():
                raise typer.BadParameter("withdraw which number? See list.", param_hint="WHAT")
            speaking.withdraw(int(what.lstrip("#")))
