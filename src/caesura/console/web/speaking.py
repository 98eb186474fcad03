"""Feedback from a page: what stands, what it spares the query, and a form to say more."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Protocol
from urllib.parse import parse_qs

from starlette.requests import Request

from caesura.console.web.looks import Look
from caesura.console.web.markup import Markup, joined, table, tag
from caesura.console.web.pages import Ways, frame
from caesura.console.words import count, size
from caesura.errors import StreamError
from caesura.plan import here

MAX_FORM = 16_384
PATIENCE = 5.0
NUMBERED = re.compile(r"#(\d{1,9}) ")
INTENTS = {
    "assume": "assume: these rows will be ignored",
    "desire": "desire: these rows first",
    "demand": "demand: these rows now, as far as they are known",
}


class Speaker(Protocol):
    """Whoever takes feedback for a query; each call says what became of it."""

    def outputs(self) -> list[str]: ...
    def speak(self, intent: str, rows: str, output: str, /) -> str: ...
    def withdraw(self, number: int, /) -> str: ...
    def standing(self) -> list[str]: ...


async def form_of(request: Request, max_bytes: int | None = None) -> dict[str, str]:
    """The fields of a small form that comes in time."""
    limit = MAX_FORM if max_bytes is None else max_bytes
    body = b""
    async with asyncio.timeout(PATIENCE):
        async for part in request.stream():
            body += part
            if len(body) > limit:
                raise StreamError(f"a form has at most {limit} bytes.", remedy="Say it in fewer words.").at(
                    "console", here()
                )
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=16)
    return {name: values[0] for name, values in fields.items()}


def said(speaker: Speaker, form: dict[str, str]) -> str:
    """Says what a form asks for; gives what became of it."""
    number = form.get("withdraw", "")
    if number.isdecimal():
        return speaker.withdraw(int(number))
    intent, rows = form.get("intent", ""), form.get("rows", "").strip()
    if intent not in INTENTS or not rows:
        return "Say which rows are meant, as in: segment = 3 AND speed > 50."
    return speaker.speak(intent, rows, form.get("output", ""))


def feedback_page(
    name: str, speaker: Speaker, look: Look, ways: Ways, *, message: str = "", read_only: bool = False
) -> Markup:
    """What stands, its effect, and the form."""
    return frame(
        f"{name} · feedback",
        "/feedback",
        ways,
        tag("h1", {}, "Feedback", " ", tag("small", {}, name)),
        tag("p", {"role": "status", "class": "message"}, message) if message else Markup(""),
        _standing(speaker, read_only),
        tag("p", {"class": "quiet"}, "This console only shows.") if read_only else _form(speaker),
        effects(look),
    )


def _standing(speaker: Speaker, read_only: bool) -> Markup:
    lines = speaker.standing()
    if not lines:
        return tag("p", {"class": "quiet"}, "No feedback stands.")
    return tag(
        "ul", {"class": "standing"}, *(tag("li", {}, line, _withdrawal(line, read_only)) for line in lines)
    )


def _withdrawal(line: str, read_only: bool) -> Markup:
    found = NUMBERED.match(line)
    if found is None or read_only:
        return Markup("")
    label = f"Withdraw #{found[1]}"
    button = tag("button", {"name": "withdraw", "value": found[1]}, label)
    return tag("form", {"method": "post", "action": "/feedback"}, button)


def _form(speaker: Speaker) -> Markup:
    intents = tag(
        "select",
        {"id": "intent", "name": "intent"},
        *(tag("option", {"value": k}, v) for k, v in INTENTS.items()),
    )
    rows = tag(
        "input",
        {
            "id": "rows",
            "name": "rows",
            "required": True,
            "placeholder": "segment = 3 AND speed > 50",
            "autocomplete": "off",
        },
    )
    outputs = tag(
        "select",
        {"id": "output", "name": "output"},
        *(tag("option", {"value": o}, o) for o in speaker.outputs()),
    )
    fields = (
        ("intent", "What", intents),
        ("rows", "Rows, as in SQL's WHERE", rows),
        ("output", "Output", outputs),
    )
    parts = [joined((tag("label", {"for": key}, words), field)) for key, words, field in fields]
    button = tag("button", {"class": "main", "type": "submit"}, "Say it")
    return tag("form", {"method": "post", "action": "/feedback", "class": "speak"}, *parts, button)


def effects(look: Look) -> Markup:
    """What feedback has done to steps and sources."""
    rows = list(_counted_effects(look))
    if not rows:
        return tag("p", {"class": "quiet"}, "Feedback has spared the query nothing yet.")
    return table(("where", "what", "how many"), rows, caption="What feedback did")


def _counted_effects(look: Look) -> Iterator[tuple[str, str, str]]:
    for name, source in look.status.sources.items():
        if source.rows_unread or source.bytes_unread:
            yield name, "rows not read", f"{count(source.rows_unread)}, {size(source.bytes_unread)}"
        if source.rows_first:
            yield name, "rows read before others", count(source.rows_first)
    for name, step in look.status.steps.items():
        for what, number in step.feedback.items():
            if number:
                yield name, what, count(number)
