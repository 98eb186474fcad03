"""Small charts: how far a source lags as it arrives, how late rows are, what an epoch spent its time on."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from caesura.console.web.markup import Child, Markup, joined, tag
from caesura.console.web.times import Arrival, Bin
from caesura.console.words import CLOCK_FROM, count, moment, span
from caesura.kernels.hashing import I64
from caesura.punctuation import MIN_TIME

WIDTH, HEIGHT, LEFT = 620.0, 150.0, 70.0
BAR = 160.0
TICK_BOUNDS = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
CLOCK_BOUNDS = (1_000, 100_000, 1_000_000, 10_000_000, 60_000_000, 600_000_000, 3_600_000_000, 86_400_000_000)
CLOCK_NAMES = ("1 ms", "100 ms", "1 s", "10 s", "1 min", "10 min", "1 h", "1 d")


def bounds_of(latest: int) -> tuple[int, ...]:
    """Where bins end, by whether ticks are microseconds."""
    return CLOCK_BOUNDS if latest >= CLOCK_FROM else TICK_BOUNDS


def counted(behind: I64, bounds: Sequence[int]) -> I64:
    """How many of some distances lie in each bin: none at all, then up to each bound, then all others."""
    edges = np.array([1, *(bound + 1 for bound in bounds)], np.int64)
    found: I64 = np.bincount(np.searchsorted(edges, behind, side="right"), minlength=len(bounds) + 2)
    return found


def bins_of(admitted: Sequence[int], late: Sequence[int], bounds: Sequence[int]) -> list[Bin]:
    """Bins with names.

    >>> [bin.label for bin in bins_of([1, 0, 0], [0, 2, 0], [10])]
    ['in order', 'up to 10', 'over 10']
    """
    names = CLOCK_NAMES if tuple(bounds) == CLOCK_BOUNDS else [f"{bound:,}" for bound in bounds]
    labels = ["in order", *(f"up to {name}" for name in names), f"over {names[-1]}"]
    return [Bin(*one) for one in zip(labels, admitted, late, strict=True)]


def histogram(source: str, bins: Sequence[Bin]) -> Markup:
    """How far rows lay behind the latest before them, or, of late ones, behind the bound."""
    if not any(one.admitted or one.late for one in bins):
        return tag("p", {"class": "quiet"}, "No row was counted yet.")
    last = max(at for at, one in enumerate(bins) if one.admitted or one.late)
    most = max(max(one.admitted, one.late) for one in bins)
    heads = ("behind by", "admitted", "", "late", "")
    head = tag(
        "tr", {}, *(tag("th" if name else "td", {"scope": "col"} if name else {}, name) for name in heads)
    )
    rows = [
        tag(
            "tr",
            {},
            tag("th", {"scope": "row"}, one.label),
            tag("td", {"class": "number"}, count(one.admitted)),
            tag("td", {}, shares([one.admitted], most)),
            tag("td", {"class": "number"}, count(one.late)),
            tag("td", {}, shares([one.late], most, first=3)),
        )
        for one in bins[: last + 1]
    ]
    caption = (
        f"{source}: rows by how far they came behind the latest before them; late ones, behind the bound"
    )
    whole = tag("table", {}, tag("caption", {}, caption), tag("thead", {}, head), tag("tbody", {}, *rows))
    return tag("div", {"class": "scrolls", "tabindex": 0, "role": "region", "aria-label": caption}, whole)


def shares(values: Sequence[float], most: float, *, first: int = 0) -> Markup:
    """A bar of several parts, as long as its share of the longest."""
    x, parts = 0.0, []
    for at, value in enumerate(values):
        width = BAR * value / most if most else 0.0
        if width > 0:
            kind = f"share s{(at + first) % 6}"
            parts.append(tag("rect", {"class": kind, "x": x, "y": 1, "width": max(width, 1.0), "height": 10}))
        x += width
    box = {"viewBox": f"0 0 {BAR:g} 12", "width": f"{BAR:g}", "height": "12", "aria-hidden": "true"}
    return tag("svg", {"class": "life", **box}, *parts)


def course(source: str, seen: Sequence[Arrival]) -> Markup:
    """How far the promise lay behind the latest row, and that behind the clock, as time went by."""
    known = [one for one in seen if one.latest != MIN_TIME]
    if not known:
        return tag("p", {"class": "quiet"}, "No row has arrived since somebody looks.")
    latest = known[-1].latest
    lags = [(one.at, float(max(0, one.latest - one.promised))) for one in known if one.promised != MIN_TIME]
    delays = [(one.at, one.at * 1e6 - one.latest) for one in known if latest >= CLOCK_FROM]
    now = known[-1]
    told = [f"latest row {moment(now.latest)}", f"promised up to {moment(now.promised)}"]
    if lags:
        told.append(f"promise {span(int(lags[-1][1]), latest)} behind the latest row")
    if delays:
        told.append(f"latest row {_long(delays[-1][1])} behind the clock")
    return joined(
        (
            tag("p", {}, " · ".join(told)),
            _lines(f"{source}: promise behind the latest row", lags, latest) if len(lags) > 1 else "",
            _lines(f"{source}: latest row behind the clock", delays, latest) if len(delays) > 1 else "",
        )
    )


def _lines(label: str, points: list[tuple[float, float]], latest: int) -> Markup:
    first, last = points[0][0], points[-1][0]
    low, high = min(0.0, *(y for _, y in points)), max(y for _, y in points)
    wide, tall = max(last - first, 1e-9), max(high - low, 1.0)
    step = max(1, len(points) // 300)
    places = [
        f"{LEFT + (at - first) / wide * (WIDTH - LEFT - 4):.1f} {10 + (high - y) / tall * (HEIGHT - 34):.1f}"
        for at, y in [*points[::step], points[-1]]
    ]
    texts: list[Child] = [
        tag("text", {"x": LEFT - 6, "y": 14, "text-anchor": "end", "class": "axis"}, span(int(high), latest)),
        tag(
            "text",
            {"x": LEFT - 6, "y": HEIGHT - 22, "text-anchor": "end", "class": "axis"},
            span(int(low), latest),
        ),
        tag("text", {"x": LEFT, "y": HEIGHT - 6, "class": "axis"}, _clock(first)),
        tag("text", {"x": WIDTH - 4, "y": HEIGHT - 6, "text-anchor": "end", "class": "axis"}, _clock(last)),
    ]
    path = tag("path", {"class": "course", "d": "M" + " L".join(places)})
    frame = tag("path", {"class": "tick", "d": f"M{LEFT:g} 6 V{HEIGHT - 24:g} H{WIDTH:g}"})
    words = f"{label}: now {span(int(points[-1][1]), latest)}, at most {span(int(high), latest)}"
    box = {"viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}", "class": "chart", "role": "img", "aria-label": words}
    return tag(
        "figure", {"class": "card"}, tag("figcaption", {}, label), tag("svg", box, frame, path, *texts)
    )


def _long(microseconds: float) -> str:
    """A distance that may be years.

    >>> _long(12_340_000.0), _long(-500_000.0), _long(3.2e11)
    ('12.3 s', '-0.5 s', '3.7 days')
    """
    seconds = microseconds / 1e6
    return f"{seconds:.1f} s" if seconds < 2 * 86_400 else f"{seconds / 86_400:,.1f} days"


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
