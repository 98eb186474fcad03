"""The page of time: the output as a timeline, event time against arrival, late rows, epochs, claims."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from urllib.parse import urlencode

import pyarrow as pa

from caesura.console.web.charts import course, histogram, shares
from caesura.console.web.markup import Child, Markup, joined, table, tag
from caesura.console.web.pages import Ways, frame
from caesura.console.web.timeline import asked, timeline
from caesura.console.web.times import SeenEpoch, TimeView
from caesura.console.words import count
from caesura.events.draw import shown_value
from caesura.printable import printable

LATE_PAGE, CLAIMS_PAGE, EPOCHS = 50, 20, 60
MAX_TEXT = 120
FRESH = 1.0
"""Seconds for which a part of the page is not made anew: lists and counts, which need no four a second."""
KEYS = ("output", "from", "to", "source", "late", "claims")
SLOW = ("arrival", "late", "epochs", "claims")


class TimePage:
    """Makes the page, and the parts of it that change."""

    def __init__(self, name: str, view: TimeView) -> None:
        self._name, self._view = name, view
        self._lock = threading.Lock()
        self._made: dict[tuple[str, ...], tuple[float, Markup]] = {}

    def page(self, ways: Ways, query: Mapping[str, str]) -> Markup:
        """The whole page."""
        address = self._address(query)
        parts = {"timeline": self._timeline(address)}
        parts |= {key: getattr(self, f"_{key}")(address) for key in SLOW}
        titles = {
            "timeline": "Output",
            "arrival": "Event time against arrival",
            "late": "Late rows",
            "epochs": "Epochs",
            "claims": "Claims",
        }
        sections = [
            tag(
                "section",
                {"aria-labelledby": f"{key}-title"},
                tag("h2", {"id": f"{key}-title"}, words),
                self._choices(key, address),
                tag("div", {"id": key, "data-markup": True}, parts[key]),
            )
            for key, words in titles.items()
        ]
        title = tag("h1", {}, "Time", " ", tag("small", {}, self._name))
        return frame(f"{self._name} · time", "/time", ways, title, *sections, stream="/stream/time")

    def parts(self, query: Mapping[str, str]) -> Iterator[tuple[str, Markup]]:
        """The parts that change, by the ids of their elements."""
        address = self._address(query)
        yield "timeline", self._timeline(address)
        for key in SLOW:
            yield key, self._slow(key, address)

    def _slow(self, key: str, address: dict[str, str]) -> Markup:
        """A part that is made once a second, whoever looks."""
        mark, now = (key, *(address.get(k, "") for k in KEYS)), time.monotonic()
        with self._lock:
            self._made = {k: made for k, made in self._made.items() if now - made[0] < FRESH}
            if mark not in self._made:
                self._made[mark] = now, getattr(self, f"_{key}")(address)
            return self._made[mark][1]

    def _address(self, query: Mapping[str, str]) -> dict[str, str]:
        """What is looked at, as far as there is such."""
        own = {key: query[key][:40] for key in ("from", "to", "late", "claims") if key in query}
        for key, names in (("output", self._view.outputs()), ("source", self._view.sources())):
            given = query.get(key, "")
            found = given if given in names else next(iter(names), "")
            if found:
                own[key] = found
        return own

    def _choices(self, key: str, address: dict[str, str]) -> Markup:
        """Links to the other outputs, or sources, where there are several."""
        which = {"timeline": "output", "arrival": "source"}.get(key)
        names = () if which is None else self._view.outputs() if which == "output" else self._view.sources()
        if which is None or len(names) < 2:
            return Markup("")
        links = [
            tag(
                "a",
                {
                    "href": "/time?" + urlencode({**address, which: name, "late": "0"}),
                    "aria-current": "true" if address.get(which) == name else None,
                },
                name,
            )
            for name in names
        ]
        return tag("nav", {"class": "choices", "aria-label": f"Choose the {which}"}, *links)

    def _timeline(self, address: dict[str, str]) -> Markup:
        if "output" not in address:
            return _quiet("The plan has no output.")
        stretch = asked(address.get("from", ""), address.get("to", ""))
        return timeline(self._view.changes(address["output"]), stretch, address)

    def _arrival(self, address: dict[str, str]) -> Markup:
        source = address.get("source")
        if source is None:
            return _quiet("The plan reads no source.")
        bins = self._view.lateness(source)
        return joined((course(source, self._view.arrivals(source)), histogram(source, bins)))

    def _late(self, address: dict[str, str]) -> Markup:
        source = address.get("source")
        if source is None:
            return _quiet("The plan reads no source.")
        at = _number(address.get("late", ""))
        seen = self._view.late(source, at * LATE_PAGE, LATE_PAGE)
        told = f"{count(seen.refused)} rows of {source} were refused; {count(seen.kept)} can be seen here."
        parts: list[Child] = [_quiet(told), _quiet(seen.note) if seen.note else ""]
        if seen.rows is not None and seen.rows.num_rows:
            first = at * LATE_PAGE + 1
            caption = f"Late and malformed rows of {source}, {first} to {first + seen.rows.num_rows - 1}"
            parts += [_pages("late", at, seen.kept, LATE_PAGE, address), _rows(seen.rows, caption)]
        return joined(parts)

    def _epochs(self, address: dict[str, str]) -> Markup:
        some = list(self._view.epochs())[-EPOCHS:]
        if not some:
            return _quiet("No epoch has been written, or the query writes none.")
        return epochs_table(some)

    def _claims(self, address: dict[str, str]) -> Markup:
        claims = self._view.claims()
        if not claims:
            return _quiet("The query has made no claim, or makes none.")
        at = _number(address.get("claims", ""))
        newest = claims[::-1][at * CLAIMS_PAGE : (at + 1) * CLAIMS_PAGE]
        rows = [
            (
                str(claim.number),
                str(claim.level),
                "; ".join(f"{source}: {prefix}" for source, prefix in claim.prefix.items()),
                "" if claim.time is None else str(claim.time),
                ", ".join(f"{view} {rows:,}" for view, rows in claim.output.items()),
                ", ".join(map(str, claim.under)),
            )
            for claim in newest
        ]
        heads = ("claim", "level", "prefix of each source", "time", "rows of each view", "under feedback")
        pager = _pages("claims", at, len(claims), CLAIMS_PAGE, address)
        return joined((pager, table(heads, rows, caption=f"Claims, the newest first, of {len(claims)}")))


def epochs_table(some: Sequence[SeenEpoch]) -> Markup:
    """Epochs, the newest first, each with the parts of its time."""
    names = list(dict.fromkeys(name for one in some for name in one.parts))
    most = max((one.seconds for one in some), default=0.0)
    rows = [
        (
            str(one.number),
            "" if not one.at else time.strftime("%H:%M:%S", time.localtime(one.at)),
            f"{one.seconds:.2f} s" if one.seconds else "",
            shares([one.parts.get(name, 0.0) for name in names] if one.parts else [one.seconds], most),
            *(f"{one.parts[name]:.2f}" if name in one.parts else "" for name in names),
            "" if one.rows is None else count(one.rows),
            "" if one.late is None else count(one.late),
            ", ".join(f"{output} {count(rows)}" for output, rows in one.written.items()),
        )
        for one in reversed(some)
    ]
    heads = ("epoch", "done", "took", "parts", *names, "rows read", "late", "rows written")
    return table(heads, rows, caption=f"The last {len(some)} epochs")


def _rows(rows: pa.Table, caption: str) -> Markup:
    names = [name for name in rows.column_names if not name.startswith("\x00")]
    cells = [[_cut(_text(v)) for v in rows.column(name).to_pylist()] for name in names]
    return table(names, zip(*cells, strict=True), caption=caption)


def _text(value: object) -> str:
    """A value in a cell of its own, which needs no quotes."""
    return printable(str(value)) if isinstance(value, str | datetime) else shown_value(value)


def _pages(key: str, at: int, kept: int, size: int, address: dict[str, str]) -> Markup:
    """Links to the pages before and behind, and to the first and the last."""
    last = max(0, (kept - 1) // size)
    if last == 0 and at == 0:
        return Markup("")
    ways = (("First", 0), ("Before", at - 1), ("Next", at + 1), ("Last", last))
    links = [
        tag(
            "a",
            {"class": "button", "data-go": True, "href": "/time?" + urlencode({**address, key: to})},
            words,
        )
        if 0 <= to <= last and to != at
        else tag("span", {"class": "button off"}, words)
        for words, to in ways
    ]
    here = tag("span", {}, f"page {at + 1} of {last + 1}")
    return tag("nav", {"class": "tools", "aria-label": f"Pages of {key}"}, *links[:2], here, *links[2:])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _quiet(words: str) -> Markup:
    return tag("p", {"class": "quiet"}, words)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
