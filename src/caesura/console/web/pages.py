"""The pages: a frame with the ways to go, the plan, and what a step or an edge says when it is chosen."""

from __future__ import annotations

import re

from caesura.console.web.layout import PlacedPlan
from caesura.console.web.lifetimes import lifetimes
from caesura.console.web.looks import Look
from caesura.console.web.markup import Markup, facts, joined, table, tag
from caesura.console.web.plan_view import drawn, heading, legend, steps_table, texts_of
from caesura.console.web.watched import Watched
from caesura.console.words import count, moment, size, span
from caesura.contracts.check import check
from caesura.contracts.verdict import shown
from caesura.plan.explain import explain
from caesura.runtime.metrics.plan_shape import StepShape
from caesura.runtime.metrics.status import StepStatus

LOOK = re.compile(r"(step)-(\d{1,6})|(edge)-(\d{1,6})-(\d{1,6})")
DOCTYPE = Markup("<!doctype html>\n")
Ways = list[tuple[str, str]]
"""Addresses and names of the other pages."""


def frame(
    title: str, here: str, ways: Ways, *body: Markup, stream: str | None = None, styles: str | None = None
) -> Markup:
    """A whole page; what changes on it comes by a stream, where it has one."""
    links = [
        tag("a", {"href": href, "aria-current": "page" if href == here else None}, name)
        for href, name in ways
    ]
    head = tag(
        "head",
        {},
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        tag("meta", {"name": "color-scheme", "content": "light dark"}),
        tag("title", {}, title),
        tag("link", {"rel": "icon", "href": "/static/icon.svg"}),
        tag("link", {"rel": "stylesheet", "href": "/static/console.css"}),
        tag("link", {"rel": "stylesheet", "href": styles}) if styles else "",
        tag("script", {"type": "module", "src": "/static/console.js"}),
    )
    skip = tag("a", {"class": "skip", "href": "#main"}, "Skip to the page")
    top = tag(
        "header",
        {},
        tag("span", {"class": "mark", "aria-hidden": "true"}, "‖"),
        tag("span", {"class": "brand"}, "Caesura"),
        tag("nav", {"aria-label": "Pages"}, *links),
    )
    main = tag("main", {"id": "main", "tabindex": -1, "data-stream": stream}, *body)
    return joined((DOCTYPE, tag("html", {"lang": "en"}, head, tag("body", {}, skip, top, main))))


def plan_page(watched: Watched, placed: PlacedPlan, look: Look, looked_at: str, ways: Ways) -> Markup:
    """The plan as it runs."""
    title = tag("h1", {}, watched.name, " ", tag("small", {}, watched.about))
    now = tag("p", {"id": "heading", "role": "status", "aria-live": "off"}, heading(look))
    tools = tag(
        "div",
        {"class": "tools", "role": "group", "aria-label": "Size of the picture"},
        *(
            tag("button", {"type": "button", "data-zoom": key, "aria-label": words}, sign)
            for key, sign, words in (
                ("out", "−", "Smaller"),
                ("in", "+", "Larger"),
                ("fit", "Fit", "Fit to the window"),
            )
        ),
    )
    picture = tag(
        "div",
        {"class": "plan scrolls", "tabindex": 0, "role": "region", "aria-label": "The plan as it runs"},
        drawn(watched.shape, placed, look, looked_at),
    )
    side = tag(
        "aside",
        {"id": "panel", "tabindex": -1, "aria-label": "What was chosen", "data-markup": True},
        panel(watched, look, looked_at),
    )
    whole = tag(
        "details",
        {"class": "all"},
        tag("summary", {}, "All steps as a table"),
        steps_table(watched.shape, look),
    )
    return frame(
        f"{watched.name} · plan",
        "/",
        ways,
        title,
        now,
        tag("div", {"class": "bar"}, legend(), tools),
        tag("div", {"class": "split"}, picture, side),
        whole,
        tag("p", {"class": "quiet"}, watched.note) if watched.note else Markup(""),
        stream="/stream",
    )


def chosen(watched: Watched, looked_at: str) -> tuple[StepShape, StepShape | None] | None:
    """The step that an address names, or the two ends of an edge; None where there is no such one."""
    found = LOOK.fullmatch(looked_at)
    if found is None:
        return None
    numbers = [int(text) for text in found.groups() if text and text.isdigit()]
    steps = watched.shape.steps
    if any(number >= len(steps) for number in numbers):
        return None
    if found[1]:
        return steps[numbers[0]], None
    source, target = steps[numbers[0]], steps[numbers[1]]
    return (source, target) if source.number in (*target.inputs, *target.around) else None


def panel(watched: Watched, look: Look, looked_at: str) -> Markup:
    """What is said of the step or edge that was chosen."""
    found = chosen(watched, looked_at)
    if found is None:
        return tag(
            "p",
            {"class": "quiet"},
            "Choose a step to see its columns, its contract and what it holds; "
            "choose an arrow to see the last rows that passed.",
        )
    source, target = found
    if target is not None:
        return joined(
            (tag("h2", {}, f"{source.label} → {target.label}"), _columns(source), _last_rows(watched, source))
        )
    return joined(
        (
            tag("h2", {}, source.label, " ", tag("small", {}, source.kind)),
            tag("p", {}, source.does) if source.does else "",
            tag("p", {"class": "quiet"}, source.place) if source.place else "",
            _now(source, look),
            tag("h3", {}, "Contract"),
            tag("ul", {}, *(tag("li", {}, words) for words in (source.known, *source.contract) if words)),
            _columns(source),
            tag("h3", {}, "Last rows"),
            _last_rows(watched, source),
        )
    )


def _now(step: StepShape, look: Look) -> Markup:
    """All figures of a step."""
    source = look.source(step.label) if step.source else None
    if source is not None:
        pairs = [
            ("rows read", count(source.rows)),
            ("late or malformed", count(source.late)),
            ("latest row", moment(source.latest)),
            ("promised up to", moment(source.promised)),
            ("not read, by feedback", f"{count(source.rows_unread)} rows, {size(source.bytes_unread)}"),
            ("no longer kept of late rows", count(source.late_dropped)),
        ]
        return facts((name, value) for name, value in pairs if value not in ("0", "0 rows, 0 B"))
    status = look.step(step.label)
    if status is None:
        return tag(
            "p",
            {"class": "quiet"},
            "Rows are not counted here: the step runs where its source is read, and keeps nothing.",
        )
    texts = texts_of(step, look)
    lag = span(look.status.lag(step.label), look.status.latest)
    pairs = [
        ("rows in", f"{status.rows_in:,}"),
        ("rows out", f"{status.rows_out:,}"),
        ("rate", texts.rate),
        ("rows held", f"{status.state_rows:,}"),
        ("bytes held", size(status.state_bytes)),
        ("promised up to", moment(status.promised)),
        ("behind the latest row", lag),
        ("held by", status.held_by or "nothing"),
    ]
    return joined(
        (
            facts(pairs),
            _counted("Observed", {name: tally.value for name, tally in status.observed.items()}),
            _counted("Also counted", status.extra),
            _counted("Feedback", status.feedback),
            _buckets(step, status, look),
        )
    )


def _counted(title: str, counts: object) -> Markup:
    pairs = [(name, f"{value:,}") for name, value in dict(counts).items() if value]  # type: ignore[call-overload]
    return joined((tag("h3", {}, title), facts(pairs))) if pairs else Markup("")


def _buckets(step: StepShape, status: StepStatus, look: Look) -> Markup:
    """The buckets of the stage that a step runs in, folded in."""
    loads = [
        (bucket, load)
        for (stage, bucket), load in sorted(look.figures.buckets.items())
        if stage == status.stage
    ]
    if not loads or not step.stage:
        return Markup("")
    rows = [
        (str(bucket), count(load.rows_in), count(load.state_rows), size(load.state_bytes))
        for bucket, load in loads
    ]
    whole = table(("bucket", "rows in", "held", "bytes"), rows, caption=f"Buckets of stage {step.stage}")
    return tag("details", {}, tag("summary", {}, f"{len(loads)} buckets of stage {step.stage}"), whole)


def _columns(step: StepShape) -> Markup:
    return joined(
        (
            tag("h3", {}, "Columns"),
            facts(step.columns) if step.columns else tag("p", {"class": "quiet"}, "none"),
        )
    )


def _last_rows(watched: Watched, step: StepShape) -> Markup:
    if watched.rows is None:
        return tag("p", {"class": "quiet"}, "Rows between steps can be seen of queries in this process only.")
    return lifetimes(watched.rows(step.number))


def check_page(watched: Watched, ways: Ways) -> Markup:
    """What `check` and `explain` say of every output."""
    parts: list[Markup] = []
    for name, node in watched.nodes.items():
        verdict = check(node)
        parts += [
            tag("h2", {}, f"Output {name}", " ", tag("small", {}, "safe" if verdict.safe else "unsafe"))
        ]
        for title, text in (("Check", str(verdict)), ("Explain", str(explain(node)))):
            label = f"{title} of output {name}"
            words = {"tabindex": "0", "class": "words scrolls", "role": "region", "aria-label": label}
            parts += [tag("h3", {}, title), tag("pre", words, shown(text))]
    title = tag("h1", {}, "Check", " ", tag("small", {}, watched.name))
    return frame(f"{watched.name} · check", "/check", ways, title, *parts)


def told(title: str, words: str) -> Markup:
    """A page that only says something."""
    return frame(title, "", [], tag("h1", {}, title), tag("p", {}, words))
