"""A script of SQL on a page: its queries are edited, and previewed on the first rows of its sources.

Nothing is written: neither the file nor what its queries would write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from caesura.console.web.markup import Markup, joined, table, tag
from caesura.console.web.pages import Ways, frame
from caesura.console.words import count

BUSY = "Another preview runs; ask again when that is done."


@dataclass(frozen=True)
class SqlPreview:
    """What a script gives, or what is wrong with it."""

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    of: int = 0
    """How many rows there are."""
    late: int = 0
    problem: str = ""


@dataclass(frozen=True)
class EditedScript:
    """A script that can be edited on a page."""

    text: Callable[[], str]
    """As it is on disk now."""
    preview: Callable[[str], SqlPreview]


class SqlPage:
    """One preview at a time."""

    def __init__(self, name: str, script: EditedScript) -> None:
        self._name, self._script = name, script
        self._alone = threading.Lock()

    def page(self, ways: Ways, form: dict[str, str] | None) -> Markup:
        """The text, and what it gives."""
        text = self._script.text() if form is None else form.get("text", "").replace("\r\n", "\n")
        about = "Queries are edited and previewed on the first rows of the sources. Nothing is written."
        lines = min(max(text.count("\n") + 2, 8), 30)
        given: dict[str, str | int] = {"id": "text", "name": "text", "rows": lines, "cols": 100}
        edit = tag(
            "form",
            {"method": "post", "action": "/sql", "class": "speak"},
            tag("label", {"for": "text"}, "The script"),
            tag("textarea", {**given, "spellcheck": "false"}, text),
            tag("button", {"class": "main", "type": "submit"}, "Preview"),
        )
        found = self._previewed(text) if form is not None else Markup("")
        title = tag("h1", {}, "SQL", " ", tag("small", {}, self._name))
        return frame(
            f"{self._name} · SQL", "/sql", ways, title, tag("p", {"class": "quiet"}, about), edit, found
        )

    def _previewed(self, text: str) -> Markup:
        if not self._alone.acquire(blocking=False):
            return _said(BUSY)
        try:
            return _shown(self._script.preview(text))
        finally:
            self._alone.release()


def _said(words: str) -> Markup:
    return tag("p", {"role": "status", "class": "message"}, words)


def _shown(made: SqlPreview) -> Markup:
    if made.problem:
        return _said(made.problem)
    late = f", {count(made.late)} refused" if made.late else ""
    head = _said(f"{count(made.of)} rows{late}")
    if not made.rows:
        return head
    more = f", the first {len(made.rows)} of {made.of}" if made.of > len(made.rows) else ""
    return joined((head, table(made.columns, made.rows, caption=f"What comes out{more}")))
