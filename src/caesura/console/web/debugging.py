"""The debugger's page: a stretch of the input, backwards, promise by promise, with and without rows.

Whatever is asked for runs over a copy of the stretch, one question at a time; the query itself runs on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from caesura.console.web.markup import Child, Markup, joined, table, tag
from caesura.console.web.pages import Ways, frame
from caesura.console.web.tracing import events_table
from caesura.errors import CaesuraError
from caesura.events.draw import shown_time, shown_value

if TYPE_CHECKING:
    from caesura.runtime.inspect.compare import Comparison
    from caesura.runtime.inspect.step_through import PunctuationStep, StepState
    from caesura.runtime.inspect.trace_back import RowOrigin
    from caesura.runtime.query.recording import Recording

Stretch = Callable[[], "Recording"]
"""Reads a stretch of the input again."""
SHOWN = 50
"""So many rows of a table are on the page; of more, the first."""
BUSY = "Another stretch is being looked into; ask again when that is done."
ASKED = {
    "back": "where rows of a step came from",
    "compare": "a step with rows of the sources, and without them",
    "steps": "from promise to promise",
}


class DebugPage:
    """Answers one question at a time about a stretch of a query's input."""

    def __init__(self, name: str, stretch: Stretch, steps: Iterable[str], stream: str = "") -> None:
        self._name, self._stretch, self._steps, self._stream = name, stretch, list(steps), stream
        self._alone = threading.Lock()

    def page(self, ways: Ways, form: dict[str, str] | None, *, read_only: bool) -> Markup:
        """The forms, and the answer to what one asks for."""
        asked = {key: value.strip() for key, value in (form or {}).items()}
        title = tag("h1", {}, "Debug", " ", tag("small", {}, self._name))
        about = (
            "A stretch of the real input, and the plan run over it from an empty state. The query runs on."
        )
        quiet = tag("p", {"class": "quiet"}, "This console only shows.")
        forms = [quiet] if read_only else [self._form(asked), self._saving()]
        found = self._answered(asked) if form is not None and not read_only else Markup("")
        return frame(
            f"{self._name} · debug",
            "/debug",
            ways,
            title,
            tag("p", {"class": "quiet"}, about),
            *forms,
            found,
        )

    def saved(self, form: dict[str, str]) -> str:
        """The text of a test of the stretch."""
        from caesura.runtime.inspect.saved_test import written_test

        stream = form.get("stream", "").strip()
        return written_test(self._stretch(), stream, None, Path())

    def _answered(self, asked: dict[str, str]) -> Markup:
        if not self._alone.acquire(blocking=False):
            return _said(BUSY)
        try:
            return self._answer(asked)
        except CaesuraError as error:
            return _said(str(error))
        finally:
            self._alone.release()

    def _answer(self, asked: dict[str, str]) -> Markup:
        rows, step = asked.get("rows", ""), asked.get("step") or None
        match asked.get("what"):
            case "steps":
                return _pieces(self._stretch().step_through(), _number(asked.get("piece", "")))
            case "back" if rows:
                return _origin(self._stretch().trace_back(rows, step=step))
            case "compare" if rows:
                return _comparison(self._stretch().compare(rows, step=step))
            case _:
                return _said("Say which rows are meant, as in: ts = 18, segment in {1, 3}.")

    def _form(self, asked: dict[str, str]) -> Markup:
        what = [_option(key, words, asked.get("what", "")) for key, words in ASKED.items()]
        steps = [_option("", "the last", asked.get("step", ""))]
        steps += [_option(name, name, asked.get("step", "")) for name in self._steps]
        given = {"value": asked.get("rows", ""), "placeholder": "ts = 18, segment in {1, 3}"}
        fields: tuple[Markup, ...] = (
            tag("label", {"for": "what"}, "Show"),
            tag("select", {"id": "what", "name": "what"}, *what),
            tag("label", {"for": "rows"}, "Rows"),
            tag("input", {"id": "rows", "name": "rows", "autocomplete": "off", **given}),
            tag("label", {"for": "step"}, "Step"),
            tag("select", {"id": "step", "name": "step"}, *steps),
            tag("button", {"class": "main", "type": "submit"}, "Look into it"),
        )
        return tag("form", {"method": "post", "action": "/debug", "class": "speak"}, *fields)

    def _saving(self) -> Markup:
        given = {"id": "stream", "name": "stream", "value": self._stream, "placeholder": "flow.py:speeds"}
        fields = (
            tag("label", {"for": "stream"}, "The stream, as a test finds it"),
            tag("input", {**given, "autocomplete": "off", "required": True}),
            tag("button", {"type": "submit"}, "Save the stretch as a test"),
        )
        return tag("form", {"method": "post", "action": "/debug/test", "class": "speak"}, *fields)


def _option(value: str, words: str, chosen: str) -> Markup:
    return tag("option", {"value": value, "selected": value == chosen}, words)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 9 else 1


def _said(text: str) -> Markup:
    return tag("p", {"role": "status", "class": "message"}, text)


def _origin(origin: RowOrigin) -> Markup:
    if not origin.rows:
        return _said(f"step {origin.step} has no row with {origin.chosen}")
    rows: list[tuple[Child, ...]] = []
    for number, group in enumerate(origin.needed[:SHOWN], 1):
        for one in group[:SHOWN]:
            values = ", ".join(f"{name} = {shown_value(value)}" for name, value in one.values.items())
            rows.append((str(one.row), values, "" if len(group) == 1 else f"any of group {number}"))
    parts = [_said(origin.verdict), table(("row", "values", "needed"), rows, caption="Rows of the input")]
    for step in origin.steps:
        parts += [tag("h2", {}, step.step, " ", tag("small", {}, step.does)), tag("p", {}, step.fate)]
        parts += (
            [events_table(f"{step.step}: because of them", step.columns, step.caused)] if step.caused else []
        )
    return joined(parts)


def _comparison(found: Comparison) -> Markup:
    head = _said(str(found).partition("\n")[0])
    marked = [(row, "only with") for row in found.only_with]
    marked += [(row, "only without") for row in found.only_without]
    if not marked:
        return head
    names = [name for name in found.present.schema.names if not name.startswith("\x00")]
    rows = [
        (mark, shown_time(le), shown_time(re), *map(shown_value, values[: len(names)]))
        for (le, re, values), mark in marked[:SHOWN]
    ]
    return joined((head, table(("where", "LE", "RE", *names), rows, caption=f"What differs at {found.step}")))


def _pieces(pieces: list[PunctuationStep], number: int) -> Markup:
    if not pieces:
        return _said("Nothing was read.")
    number = min(max(number, 1), len(pieces))
    piece = pieces[number - 1]
    heading = f"Piece {number} of {len(pieces)}: {'; '.join(piece.promises) or 'no promise'}"
    ways = [
        tag("button", {"name": "piece", "value": to, "disabled": not 1 <= to <= len(pieces)}, words)
        for to, words in ((1, "First"), (number - 1, "Back"), (number + 1, "On"), (len(pieces), "Last"))
    ]
    hidden = tag("input", {"type": "hidden", "name": "what", "value": "steps"})
    form = tag("form", {"method": "post", "action": "/debug", "class": "tools"}, hidden, *ways)
    read = tag("p", {}, f"Read: {', '.join(piece.rows[:SHOWN]) or 'nothing'}")
    return joined((_said(heading), form, read, *(_state(step) for step in piece.steps)))


def _state(step: StepState) -> Markup:
    parts: list[Child] = [tag("h2", {}, step.step, " ", tag("small", {}, step.does)), tag("p", {}, step.said)]
    if step.events:
        parts.append(events_table(f"{step.step}: what left it", step.columns, step.events))
    return tag("section", {}, *parts)
