"""An output as a timeline: a bar for each row, over the stretch of time that is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import pyarrow as pa

from caesura.console.web.bars import Bar, bars, laid_out
from caesura.console.web.markup import Child, Markup, joined, table, tag
from caesura.console.web.times import OutputRows
from caesura.events.draw import shown_time, shown_value
from caesura.punctuation import INFINITY, MIN_TIME

WIDTH, LANE, LANES, AXIS = 1000.0, 16.0, 24, 22.0
LISTED = 100
"""So many of the rows that are looked at stand in the table, the last that came."""
MAX_TEXT = 80
WORDS = {"open": "may change", "final": "final", "gone": "taken back", "partial": "partial, as demanded"}
LEAST = 2
"""Ticks that are looked at at least."""


@dataclass(frozen=True)
class VisibleSpan:
    """The stretch of time that is looked at."""

    first: int
    last: int

    @property
    def width(self) -> int:
        return self.last - self.first

    def moved(self, share: float) -> VisibleSpan:
        """Further on by a share of its width, or back."""
        by = int(self.width * share)
        return VisibleSpan(self.first + by, self.last + by)

    def scaled(self, factor: float) -> VisibleSpan:
        """Wider or narrower about its middle."""
        half, middle = max(LEAST, int(self.width * factor)) // 2, (self.first + self.last) // 2
        return VisibleSpan(middle - half, middle + max(1, half))

    def x(self, t: int) -> float:
        """Where a time lies in the picture."""
        return min(max((t - self.first) / self.width, 0.0), 1.0) * WIDTH


def asked(first: str, last: str) -> VisibleSpan | None:
    """The stretch that an address names; None where it names none."""
    try:
        some = VisibleSpan(int(first[:20]), int(last[:20]))
    except ValueError:
        return None
    inside = -INFINITY < some.first < some.last < INFINITY
    return some if inside and some.width >= LEAST else None


def whole(some: Sequence[Bar], definite: int) -> VisibleSpan:
    """The stretch that all rows lie in."""
    ends = [t for bar in some for t in (bar.le, bar.re, bar.was) if MIN_TIME < t < INFINITY]
    if not ends:
        return VisibleSpan(0, 10)
    first, last = min(ends), max(ends)
    if any(bar.was >= INFINITY for bar in some):
        last += max(1, (last - first) // 4)
    return VisibleSpan(first, max(last, first + LEAST))


def timeline(seen: OutputRows, stretch: VisibleSpan | None, address: dict[str, str]) -> Markup:
    """The picture, the ways to look closer, and the rows as a table."""
    found = bars(seen.items, definite=seen.definite, fixed_ends=seen.fixed_ends)
    note = tag("p", {"class": "quiet"}, seen.note) if seen.note else Markup("")
    if not found:
        empty = tag("p", {"class": "quiet"}, "Nothing has left this output since somebody looks.")
        return joined((note or empty,))
    everything = whole(found, seen.definite)
    now = stretch or everything
    inside = [bar for bar in found if bar.le < now.last and max(bar.was, bar.le + 1) > now.first]
    placed, left = laid_out(inside, LANES)
    states = [bar.state for bar in inside]
    corrected = sum(bar.re != bar.was for bar in inside)
    told = [
        f"{len(inside)} rows from {shown_time(now.first, seen.time)} to {shown_time(now.last, seen.time)}"
    ]
    told += [f"{states.count('final')} final", f"{states.count('gone')} taken back"]
    told += [f"{corrected} with another end"] if corrected else []
    told += [f"{left} more find no room: look closer"] if left else []
    return joined(
        (
            note,
            _tools(now, everything, address),
            tag("p", {"class": "quiet"}, " · ".join(told)),
            _picture(placed, now, seen),
            tag("details", {}, tag("summary", {}, "These rows as a table"), _table(inside, seen)),
        )
    )


def _tools(now: VisibleSpan, everything: VisibleSpan, address: dict[str, str]) -> Markup:
    ways = (
        ("Earlier", "←", now.moved(-0.5)),
        ("Later", "→", now.moved(0.5)),
        ("Closer", "+", now.scaled(0.5)),
        ("Wider", "−", now.scaled(2.0)),
    )
    links = [
        tag(
            "a",
            {"class": "button", "aria-label": words, "data-go": True, "href": _to(address, some)},
            sign,
        )
        for words, sign, some in ways
    ]
    links.append(
        tag("a", {"class": "button", "data-go": True, "href": _to(address, None), "aria-label": "All"}, "All")
    )
    return tag("div", {"class": "tools", "role": "group", "aria-label": "What is looked at"}, *links)


def _to(address: dict[str, str], some: VisibleSpan | None) -> str:
    own = {key: value for key, value in address.items() if key not in ("from", "to")}
    own |= {} if some is None else {"from": str(some.first), "to": str(some.last)}
    return "/time?" + urlencode(own)


def _picture(placed: list[Bar], now: VisibleSpan, seen: OutputRows) -> Markup:
    lanes = 1 + max((bar.lane for bar in placed), default=0)
    height = lanes * LANE + AXIS
    parts: list[Child] = [_axis(now, lanes * LANE, seen.time)]
    if seen.definite > now.first:
        until = now.x(min(seen.definite, now.last))
        parts.insert(
            0, tag("rect", {"class": "definite", "x": 0, "y": 0, "width": until, "height": lanes * LANE})
        )
    parts += [_bar(bar, now, seen.time) for bar in placed]
    label = "The output as lifetimes; what is definite is shaded"
    return tag(
        "div",
        {"class": "card scrolls", "tabindex": 0, "role": "region", "aria-label": label},
        tag(
            "svg",
            {
                "id": "times",
                "viewBox": f"0 0 {WIDTH:g} {height:g}",
                "class": "times",
                "role": "img",
                "aria-label": label,
                "data-from": str(now.first),
                "data-to": str(now.last),
            },
            *parts,
        ),
    )


def _axis(now: VisibleSpan, y: float, time: pa.DataType | None) -> Markup:
    parts: list[Child] = []
    for n in range(5):
        t = now.first + now.width * n // 4
        x = WIDTH * n / 4
        anchor = "start" if n == 0 else "end" if n == 4 else "middle"
        parts.append(tag("path", {"class": "tick", "d": f"M{x:g} 0 L{x:g} {y + 4:g}"}))
        parts.append(
            tag("text", {"x": x, "y": y + 17, "text-anchor": anchor, "class": "axis"}, _rounded(t, now, time))
        )
    return tag("g", {}, *parts)


def _rounded(t: int, now: VisibleSpan, time: pa.DataType | None) -> str:
    """A time of the axis, in whole seconds where the stretch is long enough."""
    text = shown_time(t, time)
    return text.partition(".")[0] if now.width > 20_000_000 else text


def _bar(bar: Bar, now: VisibleSpan, time: pa.DataType | None) -> Markup:
    y = bar.lane * LANE + 2
    parts: list[Child] = [tag("title", {}, _words(bar, time))]
    if bar.was > bar.re:
        parts.append(_rect("was", now.x(bar.re), now.x(bar.was), y))
    x, until = now.x(bar.le), now.x(bar.re)
    parts.append(_rect("row", x, until, y))
    room = int((until - x) / 6.5) - 1
    text = " ".join(shown_value(v) for v in bar.payload)
    if room > 2:
        short = text if len(text) <= room else text[: room - 1] + "…"
        parts.append(tag("text", {"x": x + 4, "y": y + 9.5}, short))
    return tag("g", {"class": f"lived {bar.state}"}, *parts)


def _rect(kind: str, x: float, until: float, y: float) -> Markup:
    width = max(2.0, until - x)
    return tag(
        "rect", {"class": kind, "x": min(x, WIDTH - 2), "y": y, "width": width, "height": LANE - 4, "rx": 2}
    )


def _words(bar: Bar, time: pa.DataType | None) -> str:
    ends = shown_time(bar.re, time)
    if bar.was != bar.re:
        ends += f" (was {shown_time(bar.was, time)})"
    values = " ".join(_cut(shown_value(v)) for v in bar.payload)
    return f"{shown_time(bar.le, time)} to {ends}: {values}, {WORDS[bar.state]}"


def _table(inside: list[Bar], seen: OutputRows) -> Markup:
    names = [name for name in seen.schema.names if not name.startswith("\x00")]
    last = inside[-LISTED:]
    rows = [
        (
            WORDS[bar.state],
            shown_time(bar.le, seen.time),
            shown_time(bar.re, seen.time)
            if bar.was == bar.re
            else f"{shown_time(bar.was, seen.time)} → {shown_time(bar.re, seen.time)}",
            *(_cut(shown_value(v)) for v in bar.payload),
        )
        for bar in last
    ]
    more = f", the last {LISTED} of {len(inside)}" if len(inside) > LISTED else ""
    return table(("state", "from", "to", *names), rows, caption=f"Rows of the output{more}")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
