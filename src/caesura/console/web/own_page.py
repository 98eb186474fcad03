"""A page of the user's own beside those of the console: what it shows of a query, what its forms ask for.

It is rendered with `tag` and its like, so that whatever comes from data is escaped; its parts are kept up to
date by the stream that every page has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from caesura.console.web.looks import Look
from caesura.console.web.markup import Markup, tag
from caesura.console.web.pages import Ways, frame
from caesura.errors import CaesuraError, PlanError
from caesura.plan import here

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
TAKEN = ("feedback", "check", "trace", "time", "static", "stream", "debug", "sql")


@dataclass(frozen=True)
class OwnPage:
    """A page at ``/<name>``."""

    name: str
    title: str
    parts: Callable[[Look], Mapping[str, Markup]]
    """What it shows, each part by its id, from a look at the query; called by threads of the server."""
    answer: Callable[[Mapping[str, str]], str] | None = None
    """Does what a form asks for, and says what became of it; None where it has no forms."""
    styles: str = ""
    """Its style sheet."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name in TAKEN:
            raise PlanError(
                f"a page of the console cannot be called '{self.name}'.",
                remedy="Take small letters and digits, and none of: " + ", ".join(TAKEN) + ".",
            ).at("console", here())

    @property
    def path(self) -> str:
        return f"/{self.name}"

    def page(self, query: str, ways: Ways, look: Look, form: Mapping[str, str] | None) -> Markup:
        """The whole page, behind what a form asks for."""
        message = ""
        if form is not None and self.answer is not None:
            try:
                message = self.answer(form)
            except CaesuraError as error:
                message = str(error)
        told = tag("p", {"role": "status", "class": "message"}, message) if message else Markup("")
        parts = [tag("div", {"id": key, "data-markup": True}, some) for key, some in self.parts(look).items()]
        title = tag("h1", {}, self.title, " ", tag("small", {}, query))
        sheet = f"/static/{self.name}.css" if self.styles else None
        stream = f"/stream{self.path}"
        return frame(
            f"{query} · {self.title}", self.path, ways, title, told, *parts, stream=stream, styles=sheet
        )
