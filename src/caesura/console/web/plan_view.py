"""The plan as it runs: a picture whose boxes are links, and the texts in it that change from look to look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from caesura.console.web.layout import HEIGHT, WIDTH, Line, PlacedPlan
from caesura.console.web.looks import Look
from caesura.console.web.markup import Markup, joined, table, tag
from caesura.console.words import count, moment, size, span
from caesura.punctuation import MIN_TIME
from caesura.runtime.metrics.plan_shape import PlanShape, StepShape
from caesura.runtime.metrics.status import StepStatus

MARGIN = 12.0
TITLE, DOES = 28, 46
"""How many characters a box has room for."""


@dataclass(frozen=True)
class StepTexts:
    """What is said of a step now, and how loudly."""

    rate: str
    rows: str
    state: str
    behind: str
    notice: str
    """What somebody should look at; empty where all is well."""
    level: str
    """For the colour: calm, late, growing, behind or stopped."""


def texts_of(step: StepShape, look: Look) -> StepTexts:
    """What is said of a step now."""
    source = look.source(step.label) if step.source else None
    if source is not None:
        notice = f"{count(source.late)} late or malformed" if source.late else ""
        if source.rows_unread:
            notice = "; ".join(n for n in (notice, f"{count(source.rows_unread)} rows not read") if n)
        lag = None if source.promised == MIN_TIME else max(0, source.latest - source.promised)
        rate = f"{count(look.rates.get(step.label, 0.0))} rows/s"
        level = "late" if source.late else "calm"
        rows, behind = f"{count(source.rows)} rows read", _behind(lag, source.latest)
        return StepTexts(rate, rows, f"latest {moment(source.latest)}", behind, notice, level)
    status = look.step(step.label)
    if status is None:
        return StepTexts("", "not counted here", "", "", "", "calm")
    rate = f"{count(look.rates.get(step.label, 0.0))} rows/s"
    rows = f"{count(status.rows_in)} in, {count(status.rows_out)} out"
    state = (
        f"{count(status.state_rows)} held, {size(status.state_bytes)}"
        if status.state_bytes
        else "holds nothing"
    )
    notice, level = _notice(step, status, look)
    behind = _behind(look.status.lag(step.label), look.status.latest)
    return StepTexts(rate, rows, state, behind, notice, level)


def _behind(lag: int | None, latest: int) -> str:
    if lag is None:
        return "no promise yet"
    return f"{span(lag, latest)} behind" if lag else "up to date"


def _notice(step: StepShape, status: StepStatus, look: Look) -> tuple[str, str]:
    """What somebody should look at, the most urgent first."""
    found: list[tuple[str, str]] = []
    if step.label in look.growing:
        found.append(("state grows", "growing"))
    if step.label in look.falling_behind:
        found.append(("falls behind", "behind"))
    if status.held_by:
        found.append((status.held_by, "calm"))
    stopped = sum(n for what, n in status.feedback.items() if what.startswith("stopped"))
    if stopped:
        found.append((f"guards stopped {count(stopped)}", "stopped"))
    return ("; ".join(text for text, _ in found), found[0][1]) if found else ("", "calm")


def changing(shape: PlanShape, look: Look) -> Iterator[tuple[str, str]]:
    """Every text that changes, by the id of its element; levels by ids that end in ``-level``."""
    yield "heading", heading(look)
    for step in shape.steps:
        texts = texts_of(step, look)
        for part in ("rate", "rows", "state", "behind", "notice", "level"):
            yield f"s{step.number}-{part}", getattr(texts, part)
            if part != "level":
                yield f"t{step.number}-{part}", getattr(texts, part)


def heading(look: Look) -> str:
    """The query in a line."""
    status, figures = look.status, look.figures
    parts = ["running" if figures.active else "ended"]
    if status.epoch >= 0:
        parts.append(f"epoch {status.epoch}")
    if status.seconds:
        parts.append(f"{status.seconds:.1f} s")
    parts.append(f"{count(sum(s.rows for s in status.sources.values()))} rows read")
    parts.append(f"{count(status.rows_per_second)} rows/s")
    if status.sources:
        parts.append(f"latest {moment(status.latest)}")
    late = sum(s.late for s in status.sources.values())
    if late:
        parts.append(f"{count(late)} late")
    if figures.claims is not None:
        parts.append(f"{count(figures.claims)} claims")
    return " · ".join(parts)


def drawn(shape: PlanShape, placed: PlacedPlan, look: Look, looked_at: str) -> Markup:
    """The picture: edges first, boxes over them."""
    width, height = placed.width + 2 * MARGIN, placed.height + 2 * MARGIN
    named = {step.number: step.label for step in shape.steps}
    lines = [_edge(line, named, looked_at) for line in placed.lines]
    boxes = [
        _box(shape.steps[b.number], texts_of(shape.steps[b.number], look), b.x, b.y, looked_at)
        for b in placed.boxes
    ]
    arrow = tag(
        "marker",
        {
            "id": "arrow",
            "viewBox": "0 0 8 8",
            "refX": 7,
            "refY": 4,
            "markerWidth": 10,
            "markerHeight": 10,
            "markerUnits": "userSpaceOnUse",
            "orient": "auto",
        },
        tag("path", {"d": "M0 0 L8 4 L0 8 z"}),
    )
    inner = tag("g", {"transform": f"translate({MARGIN:g} {MARGIN:g})"}, *lines, *boxes)
    label = f"The plan: {len(shape.steps)} steps"
    return tag(
        "svg",
        {
            "id": "plan",
            "viewBox": f"0 0 {width:g} {height:g}",
            "width": f"{width:g}",
            "height": f"{height:g}",
            "role": "group",
            "aria-label": label,
        },
        tag("defs", {}, arrow),
        inner,
    )


def _edge(line: Line, named: dict[int, str], looked_at: str) -> Markup:
    path = _path(line)
    key = f"edge-{line.source}-{line.target}"
    way = "back to" if line.back else "to"
    words = f"Rows from {named[line.source]} {way} {named[line.target]}"
    kind = "edge back" if line.back else "edge"
    return tag(
        "a",
        {
            "href": f"/?look={key}",
            "data-look": key,
            "class": f"{kind} chosen" if key == looked_at else kind,
            "aria-label": words,
        },
        tag("title", {}, words),
        tag("path", {"class": "hit", "d": path}),
        tag("path", {"class": "line", "d": path, "marker-end": "url(#arrow)"}),
    )


def _path(line: Line) -> str:
    (x, y), *rest = line.points
    parts = [f"M{x:g} {y:g}"]
    for nx, ny in rest:
        if line.back or nx == x:
            parts.append(f"L{nx:g} {ny:g}")
        else:
            middle = (y + ny) / 2
            parts.append(f"C{x:g} {middle:g} {nx:g} {middle:g} {nx:g} {ny:g}")
        x, y = nx, ny
    return " ".join(parts)


def _box(step: StepShape, texts: StepTexts, x: float, y: float, looked_at: str) -> Markup:
    n, key = step.number, f"step-{step.number}"
    kind = f"step {texts.level}" + (" chosen" if key == looked_at else "")
    stage = f"stage {step.stage}" if step.stage else ""
    return tag(
        "a",
        {
            "href": f"/?look={key}",
            "data-look": key,
            "id": f"s{n}-level",
            "class": kind,
            "transform": f"translate({x:g} {y:g})",
            "aria-label": f"Step {step.label}: {step.kind}",
        },
        tag("title", {}, f"{step.label}: {step.does or step.kind}"),
        tag("rect", {"width": WIDTH, "height": HEIGHT, "rx": 8}),
        tag("rect", {"class": "band", "width": 6, "height": HEIGHT, "rx": 3}),
        _text("name", 18, 20, _cut(step.label, TITLE)),
        _text("stage", WIDTH - 10, 20, stage),
        _text("does", 18, 37, _cut(step.does or step.kind, DOES)),
        _text("rate", 18, 57, texts.rate, f"s{n}-rate"),
        _text("behind", WIDTH - 10, 57, texts.behind, f"s{n}-behind"),
        _text("rows", 18, 73, texts.rows, f"s{n}-rows"),
        _text("state", WIDTH - 10, 73, texts.state, f"s{n}-state"),
        _text("notice", 18, 89, _cut(texts.notice, DOES), f"s{n}-notice"),
    )


def _text(kind: str, x: float, y: float, text: str, key: str | None = None) -> Markup:
    return tag("text", {"class": kind, "x": x, "y": y, "id": key}, text)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def steps_table(shape: PlanShape, look: Look) -> Markup:
    """The same as a table: for who reads, searches or copies."""
    heads = ("step", "does", "rate", "rows", "holds, or latest row", "behind", "notice")
    rows = []
    for step in shape.steps:
        texts, n = texts_of(step, look), step.number
        link = tag("a", {"href": f"/?look=step-{n}", "data-look": f"step-{n}"}, step.label)
        cells = (
            tag("span", {"id": f"t{n}-{part}"}, getattr(texts, part))
            for part in ("rate", "rows", "state", "behind", "notice")
        )
        rows.append((link, step.does or step.kind, *cells))
    return table(heads, rows, caption="All steps")


def legend() -> Markup:
    """What the colours mean."""
    kinds = (
        ("calm", "all is well"),
        ("late", "rows were refused"),
        ("growing", "state only grows"),
        ("behind", "falls further behind"),
        ("stopped", "guards stop rows"),
    )
    return tag(
        "ul",
        {"class": "legend", "aria-label": "Colours"},
        joined(tag("li", {"class": kind}, words) for kind, words in kinds),
    )
