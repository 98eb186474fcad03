"""HTML and SVG as values: whatever is not markup already is escaped where it enters.

>>> tag("p", {"class": "note", "hidden": False}, "a < b ", tag("b", {}, "c"))
'<p class="note">a &lt; b <b>c</b></p>'
>>> tag("input", {"value": '"><script>', "required": True})
'<input value="&quot;&gt;&lt;script&gt;" required>'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

EMPTY = frozenset({"input", "meta", "link", "br", "hr"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | float | None


def tag(name: str, attributes: Mapping[str, str | int | float | bool | None], *children: Child) -> Markup:
    """An element; an attribute that is None or False is left out, one that is True has no value."""
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        parts.append(key if value is True else f'{key}="{escape(shown(value))}"')
    head = f"<{' '.join(parts)}>"
    return Markup(head if name in EMPTY else f"{head}{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Markup:
    """Several children as one."""
    return Markup("".join(c if isinstance(c, Markup) else escape(shown(c)) for c in children))


def shown(value: Child) -> str:
    """A value as text; numbers without needless digits."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table(heads: Iterable[str], rows: Iterable[Iterable[Child]], *, caption: str) -> Markup:
    """A table with a caption; the first cell of a row names it."""
    head = tag("tr", {}, *(tag("th", {"scope": "col"}, name) for name in heads))
    body = [
        tag(
            "tr",
            {},
            *(tag("td" if at else "th", {} if at else {"scope": "row"}, c) for at, c in enumerate(row)),
        )
        for row in rows
    ]
    parts = (tag("caption", {}, caption), tag("thead", {}, head), tag("tbody", {}, *body))
    return tag(
        "div",
        {"class": "scrolls", "tabindex": 0, "role": "region", "aria-label": caption},
        tag("table", {}, *parts),
    )


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Names and what they stand for, as a list."""
    return tag("dl", {}, *(joined((tag("dt", {}, name), tag("dd", {}, value))) for name, value in pairs))
