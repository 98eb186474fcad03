"""The debugger's page: choose rows of the sources, see what became of them, step by step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from caesura.console.web.markup import Child, Markup, joined, table, tag
from caesura.console.web.pages import Ways, frame
from caesura.errors import CaesuraError
from caesura.events.draw import shown_value

if TYPE_CHECKING:
    from caesura.runtime.inspect.trace import StepTrace, Trace, TracedEvent

Tracer = Callable[[str, str], "Trace"]
"""Gives what became of the rows that a text names, under feedback that another one names, or none."""
SHOWN = 50
"""So many events of a step are on the page; of more, the first."""
BUSY = "Other rows are being traced; ask again when that is done."


class TracePage:
    """Traces for one at a time: a plan runs twice over its sources, row by row."""

    def __init__(self, name: str, tracer: Tracer) -> None:
        self._name, self._tracer = name, tracer
        self._alone = threading.Lock()

    def page(self, ways: Ways, form: dict[str, str] | None, *, read_only: bool) -> Markup:
        """The form, and what became of the rows that it names."""
        rows, assumed = ((form or {}).get(key, "").strip() for key in ("rows", "assume"))
        title = tag("h1", {}, "Trace", " ", tag("small", {}, self._name))
        about = tag(
            "p", {"class": "quiet"}, "What every step says because of some rows, drops or takes back."
        )
        quiet = tag("p", {"class": "quiet"}, "This console only shows.")
        asked = quiet if read_only else _form(rows, assumed)
        found = self._found(rows, assumed) if rows else Markup("")
        return frame(f"{self._name} · trace", "/trace", ways, title, about, asked, found)

    def _found(self, rows: str, assumed: str) -> Markup:
        if not self._alone.acquire(blocking=False):
            return _said(BUSY)
        try:
            return _steps(self._tracer(rows, assumed))
        except CaesuraError as error:
            return _said(str(error))
        finally:
            self._alone.release()


def _said(text: str) -> Markup:
    return tag("p", {"role": "status", "class": "message"}, text)


def _form(rows: str, assumed: str) -> Markup:
    fields = (
        ("rows", "Rows of the sources", rows, "ts = 18, segment in {1, 3}", True),
        ("assume", "As if these were assumed away", assumed, "segment = 3", False),
    )
    parts: list[Markup] = []
    for key, words, value, example, needed in fields:
        given = {"id": key, "name": key, "value": value, "placeholder": example, "autocomplete": "off"}
        parts += [tag("label", {"for": key}, words), tag("input", {**given, "required": needed})]
    button = tag("button", {"class": "main", "type": "submit"}, "Trace")
    return tag("form", {"method": "post", "action": "/trace", "class": "speak"}, *parts, button)


def _steps(trace: Trace) -> Markup:
    head = _said(f"{trace.rows} row{'s' * (trace.rows != 1)} with {trace.chosen}")
    return joined((head, *(_step(step) for step in trace.steps)))


def _step(step: StepTrace) -> Markup:
    parts: list[Child] = [tag("h2", {}, step.step, " ", tag("small", {}, step.does)), tag("p", {}, step.fate)]
    parts += [tag("p", {"class": "quiet"}, f"refused: {row['reason']}") for row in step.late[:SHOWN]]
    pairs = (("because of them", step.caused), ("without them instead", step.otherwise))
    parts += [events_table(f"{step.step}: {words}", step.columns, some) for words, some in pairs if some]
    return tag("section", {}, *parts)


def events_table(words: str, columns: list[str], events: list[TracedEvent]) -> Markup:
    """Events that left a step, each with the row that caused it."""
    names = [name for name in columns if not name.startswith("\x00")]
    rows = [
        (
            event.kind,
            shown_value(event.start),
            _end(event),
            *map(shown_value, event.payload[: len(names)]),
            event.by,
        )
        for event in events[:SHOWN]
    ]
    more = f", the first {SHOWN} of {len(events)}" if len(events) > SHOWN else ""
    return table(("kind", "from", "to", *names, "caused by"), rows, caption=f"{words}{more}")


def _end(event: TracedEvent) -> str:
    end = "never" if event.end is None else shown_value(event.end)
    return end if event.new_end is None else f"{end} → {shown_value(event.new_end)}"
