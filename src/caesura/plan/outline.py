"""A plan as a list of steps, and the list as text, Mermaid, HTML or JSON.

>>> import caesura as cz
>>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts").where(cz.col("id") > 6)
>>> print(mermaid(outline(clicks.node)))
flowchart TD
  r0["read<br/>rows, time 'ts' (point); gives all at the end of input"]
  r1["where<br/>id #gt; 6"]
  r0 -->|punctuation only at the end| r1
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from html import escape
from typing import Any

import pyarrow as pa

from caesura.plan.duration import shown
from caesura.plan.node import Node, walk
from caesura.printable import printable


@dataclass(frozen=True)
class OutlineStep:
    """One step of a plan, in words."""

    number: int
    kind: str
    name: str
    does: str
    place: str
    inputs: tuple[int, ...]
    columns: tuple[tuple[str, str], ...]
    known: str
    """What holds for every event."""
    promises: str
    """The punctuation that leaves it."""

    @property
    def title(self) -> str:
        return self.name or self.kind

    def lines(self) -> list[str]:
        head = f"r{self.number} := {self.kind}"
        head += "".join(f" r{number}" for number in self.inputs)
        head += f": {self.does}" if self.does else ""
        head += f"  [{self.name}]" if self.name else ""
        head += f"  ({self.place})" if self.place else ""
        return [head, f"      {self.shape} | {self.known} | {self.promises}"]

    @property
    def shape(self) -> str:
        """The columns on one line."""
        return ", ".join(f"{name} {kind}" for name, kind in self.columns) or "no columns"

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        return {**data, "columns": dict(self.columns), "inputs": list(self.inputs)}


class PlanText(str):
    """A plan as text, which a notebook shows as a table."""

    steps: tuple[OutlineStep, ...]

    @staticmethod
    def of(steps: list[OutlineStep]) -> PlanText:
        made = PlanText("\n".join(line for step in steps for line in step.lines()))
        made.steps = tuple(steps)
        return made

    def _repr_html_(self) -> str:
        return html(list(self.steps))


def outline(*roots: Node) -> list[OutlineStep]:
    """The steps behind some others, inputs first."""
    from caesura.plan.explain import PunctuationKinds, carried, in_words

    number: dict[str, int] = {}
    given: dict[str, PunctuationKinds] = {}
    steps: list[OutlineStep] = []
    for node in walk(*roots):
        number[node.fingerprint] = len(number)
        given[node.fingerprint] = carried(node, [given[child.fingerprint] for child in node.inputs])
        steps.append(
            OutlineStep(
                number=len(steps),
                kind=node.kind,
                name=printable(node.name),
                does=printable(node.describe()),
                place=node.place,
                inputs=tuple(number[child.fingerprint] for child in node.inputs),
                columns=_columns(node.schema),
                known=node.properties.in_words(partial(shown, time=node.time)),
                promises=in_words(given[node.fingerprint]),
            )
        )
    return steps


def _columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    return tuple((printable(field.name), str(field.type)) for field in schema)


def mermaid(steps: list[OutlineStep]) -> str:
    """The plan as a Mermaid flowchart; edges name the punctuation that they carry."""
    lines = ["flowchart TD"]
    for step in steps:
        label = "<br/>".join(_quoted(text) for text in (step.title, step.does) if text)
        lines.append(f'  r{step.number}["{label}"]')
    for step in steps:
        for number in step.inputs:
            lines.append(f"  r{number} -->|{_quoted(steps[number].promises)}| r{step.number}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Text for a label; Mermaid reads entities with a hash sign."""
    for char, name in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("|", "#124;")):
        text = text.replace(char, name)
    return text


def html(steps: list[OutlineStep]) -> str:
    """The plan as an HTML table, one row per step."""
    rows = "".join(_row(step) for step in steps)
    heads = "".join(f"<th>{name}</th>" for name in ("", "step", "from", "columns", "events", "promises"))
    style = "text-align:left;border-collapse:collapse"
    body = f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
    return f'<table class="caesura-plan" style="{style}">{body}</table>'


def _row(step: OutlineStep) -> str:
    name = f" <i>{escape(step.name)}</i>" if step.name else ""
    does = f"<br/><small>{escape(step.does)}</small>" if step.does else ""
    place = f"<br/><small>{escape(step.place)}</small>" if step.place else ""
    cells = (
        f"<b>r{step.number}</b>",
        f"{escape(step.kind)}{name}{does}{place}",
        " ".join(f"r{number}" for number in step.inputs),
        escape(step.shape),
        escape(step.known),
        escape(step.promises),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
