"""A verdict as HTML: the plan, inputs first, with a badge for what each edge promises."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from caesura.contracts.analysis import Step
from caesura.contracts.verdict import held, shown

if TYPE_CHECKING:
    from caesura.contracts.verdict import Verdict

GOOD, BAD, PLAIN = "#1a7f37", "#b3261e", "#57606a"
_BADGE = "display:inline-block;border-radius:8px;padding:0 6px;color:white;font-size:85%;background:{}"


def rendered(verdict: Verdict) -> str:
    """The verdict for a notebook: one table row per step, what grows in red."""
    head = _badge("safe", GOOD) if verdict.safe else _badge("unsafe", BAD)
    rows = "".join(_row(verdict, step) for step in verdict.steps)
    parts = [f"<p>{head}</p>", *_listed("Look at this first", list(verdict.cautions))]
    parts += [f'<table style="text-align:left"><tbody>{rows}</tbody></table>']
    parts += _listed("What grows", [str(f) for f in verdict.findings])
    parts += _listed("Any one of these makes it safe", [str(r) for r in verdict.remedies])
    parts += [f"<p><small>{escape(note)}</small></p>" for note in verdict.notes]
    return f'<div class="caesura-verdict">{"".join(parts)}</div>'


def _row(verdict: Verdict, step: Step) -> str:
    inputs = " ".join(
        f"r{number} {_edge(verdict.steps[number], step, port)}" for port, number in enumerate(step.inputs)
    )
    colour = BAD if step.derived.unmet or step.rule.undeclared else PLAIN
    cells = (
        f"<b>r{step.number}</b>",
        f"{escape(step.node.kind)} <small>{escape(shown(step.node.describe()))}</small>",
        inputs,
        _badge(held(step), colour),
        _badge(shown(step.scheme), GOOD if step.scheme.kind == "some" else BAD)
        if _last(verdict, step)
        else "",
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _edge(source: Step, target: Step, port: int) -> str:
    """The badge of one edge: what it promises, red where its receiver waits for more."""
    lacks = any(unmet.need.port == port for unmet in target.derived.unmet)
    return _badge(shown(source.scheme), BAD if lacks else GOOD)


def _last(verdict: Verdict, step: Step) -> bool:
    return step.number == len(verdict.steps) - 1


def _badge(text: str, colour: str) -> str:
    return f'<span style="{_BADGE.format(colour)}">{escape(text)}</span>'


def _listed(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        yield f"<p>{escape(title)}:</p><ul>{items}</ul>"
