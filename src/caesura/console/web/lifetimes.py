"""Rows drawn as lifetimes: a table with a bar for each, on a scale that all of them share."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from caesura.console.web.markup import Markup, joined, tag
from caesura.console.web.watched import SeenRows
from caesura.events.draw import shown_time, shown_value
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.show.scale import ShownLifetime
from caesura.punctuation import INFINITY

BAR = 120.0
MAX_TEXT = 200
"""Longer values are cut on the page."""
HIDDEN = "\x00"
"""How names of columns begin that only loops know."""
WORDS = {"+": "inserted", "=": "final", "~": "partial"}
Lifetime = tuple[str, int, int, int, tuple[object, ...]]
"""Kind, start, end, new end, payload."""


def lifetimes(seen: SeenRows) -> Markup:
    """The rows and promises, as they came."""
    rows = [row for item in seen.items if isinstance(item, Page) for row in _rows(item)]
    if not rows:
        waits = seen.note or "No row has passed since you looked."
        return tag("p", {"class": "quiet"}, waits)
    first, last = _bounds(rows)
    names = [name for name in seen.schema.names if not name.startswith(HIDDEN)]
    heads = ("kind", "lifetime", "from", "to", *names)
    head = tag("tr", {}, *(tag("th", {"scope": "col"}, name) for name in heads))
    body = [line for item in seen.items for line in _lines(item, first, last, seen.time, len(heads))]
    table = tag("table", {"class": "lifetimes"}, tag("thead", {}, head), tag("tbody", {}, *body))
    about = f"The last {len(rows)} rows"
    note = tag("p", {"class": "quiet"}, seen.note) if seen.note else ""
    return joined(
        (note, tag("div", {"class": "scrolls", "tabindex": 0, "role": "region", "aria-label": about}, table))
    )


def _rows(page: Page) -> Iterable[Lifetime]:
    kind = "=" if page.settled else "~" if page.partial else "+"
    shown = [at for at, name in enumerate(page.schema.names) if not name.startswith(HIDDEN)]
    for le, re, new, payload in page.rows():
        yield (
            "-" if new is not None else kind,
            le,
            re,
            re if new is None else new,
            tuple(payload[i] for i in shown),
        )


def _lines(item: Item, first: int, last: int, time: pa.DataType | None, width: int) -> Iterable[Markup]:
    if not isinstance(item, Page):
        yield tag("tr", {"class": "promise"}, tag("td", {"colspan": width}, _cut(str(item))))
        return
    for row in _rows(item):
        yield _line(row, first, last, time)


def _line(row: Lifetime, first: int, last: int, time: pa.DataType | None) -> Markup:
    kind, le, re, new, payload = row
    word = {**WORDS, "-": "taken back" if new == le else "new end"}[kind]
    times = (
        shown_time(le, time),
        shown_time(re, time) if new == re else f"{shown_time(re, time)} → {shown_time(new, time)}",
    )
    bar = _bar(le, re, new, first, last)
    cells = [tag("td", {}, _cut(text)) for text in (*times, *(shown_value(v) for v in payload))]
    sign = tag("th", {"scope": "row"}, tag("span", {"title": word, "aria-label": word, "role": "img"}, kind))
    name = {"+": "came", "-": "went"}.get(kind, "final")
    return tag("tr", {"class": name}, sign, tag("td", {}, bar), *cells)


def _bar(le: int, re: int, new: int, first: int, last: int) -> Markup:
    lifetime = _share(le, re, first, last)
    parts = [_rect("bar endless" if lifetime.endless else "bar", lifetime)]
    if new not in (re, le):
        parts.append(_rect("bar new", _share(le, new, first, last)))
    return tag(
        "svg",
        {
            "class": "life",
            "viewBox": f"0 0 {BAR:g} 12",
            "width": f"{BAR:g}",
            "height": "12",
            "aria-hidden": "true",
        },
        *parts,
    )


def _share(le: int, re: int, first: int, last: int) -> ShownLifetime:
    whole = last - first
    return ShownLifetime(
        (le - first) / whole, 1.0 if re >= INFINITY else (re - first) / whole, re >= INFINITY
    )


def _rect(kind: str, lifetime: ShownLifetime) -> Markup:
    x = min(lifetime.left, 0.99) * BAR
    width = max(2.0, (lifetime.right - lifetime.left) * BAR)
    return tag("rect", {"class": kind, "x": x, "y": 1, "width": min(width, BAR - x), "height": 10, "rx": 2})


def _bounds(rows: list[Lifetime]) -> tuple[int, int]:
    """The first start, and the last finite time; something further where a lifetime has no end."""
    ends = [t for _, le, re, new, _ in rows for t in (le, re, new) if t < INFINITY]
    first, last = min(ends), max(ends)
    if any(re >= INFINITY for _, _, re, _, _ in rows):
        last += max(1, last - first)
    return first, max(last, first + 1)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
