"""Feedback from the command line: patterns as texts, said before the first row."""

from __future__ import annotations

from caesura.api import Stream
from caesura.errors import PatternError
from caesura.events import draw
from caesura.events.draw import parse_punctuation
from caesura.punctuation import Pattern


def read_pattern(text: str) -> Pattern:
    """The pattern that a text such as 'seg = 1, LE < 20' says."""
    try:
        return parse_punctuation(f"assumed: {text}").pattern
    except (ValueError, KeyError) as error:
        raise PatternError(
            f"'{text}' is no pattern: {error}.",
            remedy="Write comparisons with constants, like 'seg = 1, LE < 20'.",
        ) from None


def embedded_run(stream: Stream, output: str, assume: list[str], desire: list[str]) -> str:
    """Runs a stream to its end under feedback, and draws what came out."""
    query = stream.query(output=output)  # type: ignore[arg-type]
    for text in assume:
        query.assume(read_pattern(text))
    for text in desire:
        query.desire(read_pattern(text))
    query.run()
    drawn = draw(query.take("out"), schema=stream.schema, time=stream.node.time)
    said = query.feedback()
    return "\n".join([drawn, *said])
