"""Small plots as SVG in the house's look: ink, rules, one accent, one signal, for light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

STYLE = (
    "svg:root{color:#14191f;background:#fbfcfd;--soft:#55606c;--rule:#e2e7ec;--accent:#1a56b4;--signal:#a2450b}"
    "@media (prefers-color-scheme:dark){svg:root{color:#e8ecf1;background:#0f1215;--soft:#9ca7b4;"
    "--rule:#272d35;--accent:#8ab4f5;--signal:#f1a46a}}"
    "text{fill:currentColor;font:12px system-ui,sans-serif;font-variant-numeric:tabular-nums}"
    ".soft{fill:var(--soft)}.rule{stroke:var(--rule)}.one{stroke:var(--soft);stroke-dasharray:4 3}"
    ".line{fill:none;stroke-width:2}.dot{stroke:none}"
)
STROKES = (("currentColor", ""), ("var(--accent)", ""), ("var(--signal)", ""), ("var(--soft)", "5 4"))
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 720, 56, 440, 40, 250


class Line(NamedTuple):
    """What a line is, and its points."""

    name: str
    points: Sequence[tuple[float, float]]


def svg(title: str, height: int, parts: Sequence[str]) -> str:
    """
    >>> svg("a", 10, []).startswith('<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="a"')
    True
    """
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" {size}>'
    heading = f'<text x="8" y="20" font-weight="600">{escape(title)}</text>'
    return "\n".join([f"{head}<style>{STYLE}</style>", heading, *parts, "</svg>", ""])


def ticks(values: Sequence[float]) -> list[float]:
    """Numbers to read a logarithmic axis by: tens, or one, two and five of each where they are few.

    >>> ticks([3, 700]), ticks([0.3, 2.2])
    ([1, 10, 100, 1000], [0.2, 0.5, 1, 2, 5])
    """
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    if high - low > 2:
        return [10**power if power >= 0 else 10.0**power for power in range(low, high + 1)]
    every = [
        base * 10**power if power >= 0 else base / 10**-power
        for power in range(low, high + 1)
        for base in (1, 2, 5)
    ]
    first = max((one for one in every if one <= min(values)), default=every[0])
    last = min((one for one in every if one >= max(values)), default=every[-1])
    return [one for one in every if first <= one <= last]


def lines(title: str, drawn: Sequence[Line], marks: Sequence[float] = ()) -> str:
    """Lines over logarithmic axes, named at the right; ``marks`` stand below, where they are given."""
    every = [point for line in drawn for point in line.points]
    if not every:
        return svg(f"{title}: not measured", 40, [])
    across, up = marks or ticks([x for x, _ in every]), ticks([y for _, y in every])

    def at(value: float, marks: Sequence[float], first: float, last: float) -> float:
        span = math.log10(marks[-1] / marks[0]) or 1.0
        return first + (last - first) * math.log10(value / marks[0]) / span

    parts = []
    for mark in up:
        y = at(mark, up, BOTTOM, TOP)
        kind = "one" if mark == 1 else "rule"
        parts.append(f'<path class="{kind}" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(f'<text class="soft" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{mark:,g}</text>')
    for mark in across:
        x = at(mark, across, LEFT, RIGHT)
        parts.append(
            f'<text class="soft" x="{x:.1f}" y="{BOTTOM + 20}" text-anchor="middle">{_number(mark)}</text>'
        )
    for number, line in enumerate(drawn):
        colour, dashes = STROKES[number % len(STROKES)]
        placed = [(at(x, across, LEFT, RIGHT), at(y, up, BOTTOM, TOP)) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(
            f'<polyline class="line" stroke="{colour}" stroke-dasharray="{dashes}" points="{path}"/>'
        )
        parts += (f'<circle class="dot" fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in placed)
        y = 60 + 24 * number
        parts.append(
            f'<path class="line" stroke="{colour}" stroke-dasharray="{dashes}" d="M{RIGHT + 16} {y - 4}h20"/>'
        )
        parts.append(f'<text x="{RIGHT + 42}" y="{y}">{escape(line.name)}</text>')
    return svg(title, BOTTOM + 32, parts)


def _number(value: float) -> str:
    """
    >>> _number(10), _number(100_000), _number(2_000_000)
    ('10', '100 K', '2 M')
    """
    for unit, sign in ((1e6, " M"), (1e3, " K")):
        if value >= unit:
            return f"{value / unit:g}{sign}"
    return f"{value:g}"


def bars(title: str, rows: Sequence[tuple[str, float]]) -> str:
    """Ratios as bars from one, logarithmic: to the right more than one, to the left less."""
    if not rows:
        return svg(f"{title}: not measured", 40, [])
    marks = ticks([value for _, value in rows] + [1])
    first, last = 56.0, 690.0

    def at(value: float) -> float:
        return first + (last - first) * math.log10(value / marks[0]) / (math.log10(marks[-1] / marks[0]) or 1)

    height = 44 + 16 * len(rows)
    parts = []
    for mark in marks:
        x = at(mark)
        kind = "one" if mark == 1 else "rule"
        parts.append(f'<path class="{kind}" d="M{x:.1f} 48V{height}"/>')
        parts.append(f'<text class="soft" x="{x:.1f}" y="42" text-anchor="middle">{mark:g}</text>')
    for number, (name, value) in enumerate(rows):
        y = 52 + 16 * number
        low, high = sorted((at(1), at(value)))
        colour = "var(--accent)" if value >= 1 else "var(--signal)"
        parts.append(f'<text x="8" y="{y + 9}">{escape(name)}</text>')
        parts.append(f'<rect x="{low:.1f}" y="{y}" width="{high - low:.1f}" height="10" fill="{colour}"/>')
        beside, anchor = (high + 4, "start") if value >= 1 else (low - 4, "end")
        parts.append(
            f'<text class="soft" x="{beside:.1f}" y="{y + 9}" text-anchor="{anchor}">{value:.2f}</text>'
        )
    return svg(title, height + 16, parts)
