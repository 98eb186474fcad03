"""The speed map on a page of the console: whoever looks at one freeway spares the query the others.

A station has the colour of its latest estimate, with the latest final one as a band below it; a station
whose estimate was corrected flashes. Choosing a freeway or some stations tells the query that all other rows
will be ignored, and the page shows what is no longer read.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from data import FREEWAYS, STATIONS

from caesura.console.web.looks import Look
from caesura.console.web.markup import Child, Markup, joined, table, tag
from caesura.console.web.own_page import OwnPage
from caesura.console.web.speaking import Speaker, effects
from caesura.console.words import count, size

LEFT, TOP, GAP, ROW = 70.0, 34.0, 92.0, 64.0
HALVES = {"all": (0, STATIONS - 1), "west": (0, STATIONS // 2 - 1), "east": (STATIONS // 2, STATIONS - 1)}
STYLES = """
.map { width: 100%; max-width: 1060px; display: block; }
.map .road { stroke: var(--line); stroke-width: 12; stroke-linecap: round; }
.map .off { opacity: 0.25; }
.map circle { stroke: var(--card); stroke-width: 2; fill: var(--line); }
.map .green { fill: #2e7d46; } .map .yellow { fill: #f0c33c; } .map .red { fill: #b3261e; }
.map .mph { fill: #ffffff; text-anchor: middle; font-size: 12px; font-weight: 600; }
.map .yellow + .mph { fill: #1b2230; }
.map .station { text-anchor: middle; fill: var(--soft); font-size: 11px; }
.map .freeway { font-weight: 650; font-size: 14px; }
.map .flash { fill: none; stroke: var(--accent); stroke-width: 4; }
.choose { display: flex; flex-wrap: wrap; gap: 6px; margin: 10px 0; align-items: center; }
.choose button[aria-pressed="true"] { background: var(--accent); color: var(--card); }
@media (prefers-reduced-motion: no-preference) {
  .map .flash { animation: flash 1.2s ease-out 2 forwards; }
  @keyframes flash { from { opacity: 1; } to { opacity: 0; } }
}
"""


@dataclass
class Estimate:
    """A station in a slot of 20 seconds."""

    at: object
    mph: float
    colour: str
    corrected: bool = False


@dataclass
class SpeedMap:
    """What the epochs have said so far of every station: the latest estimate, and the latest final one."""

    now: dict[tuple[int, int], Estimate] = field(default_factory=dict)
    final: dict[tuple[int, int], Estimate] = field(default_factory=dict)
    epoch: int = -1
    corrections: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, epoch: int, rows: pa.Table) -> None:
        """The changes of an epoch: of a station whose estimate is taken back the new one is a correction."""
        with self._lock:
            self.epoch = epoch
            for one in self.now.values():
                one.corrected = False
            changes = sorted(rows.to_pylist(), key=lambda row: (row["LE"], "-+=".index(row["kind"])))
            gone = {(row["freeway"], row["station"], row["LE"]) for row in changes if row["kind"] == "-"}
            self.corrections += len(gone)
            for row in changes:
                place = row["freeway"], row["station"]
                made = Estimate(row["LE"], row["mph"], row["colour"], (*place, row["LE"]) in gone)
                kept = self.final if row["kind"] == "=" else self.now
                if row["kind"] != "-" and (place not in kept or kept[place].at <= made.at):  # type: ignore[operator]
                    kept[place] = made

    def seen(self) -> tuple[int, int, dict[tuple[int, int], Estimate], dict[tuple[int, int], Estimate]]:
        """Epoch, corrections, the latest estimates and the latest final ones."""
        with self._lock:
            return self.epoch, self.corrections, dict(self.now), dict(self.final)


class MapPage:
    """The page: what it shows, and what choosing says to the query."""

    def __init__(self, speeds: SpeedMap, speaker: Speaker) -> None:
        self._speeds, self._speaker = speeds, speaker
        self._freeway, self._half = 0, "all"

    def own_page(self) -> OwnPage:
        return OwnPage("map", "Map", self.parts, self.choose, STYLES)

    def choose(self, form: Mapping[str, str]) -> str:
        """Withdraws what was assumed before, and says what will be ignored now."""
        freeway, half = form.get("freeway", str(self._freeway)), form.get("half", self._half)
        if half not in HALVES or freeway not in map(str, range(FREEWAYS + 1)):
            return "There is no such freeway."
        self._freeway, self._half = int(freeway), half
        for line in self._speaker.standing():
            number = line.partition(" ")[0].removeprefix("#")
            if number.isdecimal():
                self._speaker.withdraw(int(number))
        first, last = HALVES[half]
        ignored = [f"freeway <> {freeway}"] if self._freeway else []
        ignored += [f"station < {first}"] if first else []
        ignored += [f"station > {last}"] if last < STATIONS - 1 else []
        for rows in ignored:
            self._speaker.speak("assume", rows, "out")
        return f"The next epoch ignores {' and '.join(ignored)}." if ignored else "The next epoch reads all."

    def parts(self, look: Look) -> dict[str, Markup]:
        epoch, corrections, now, final = self._speeds.seen()
        shown = [(f, s) for f in self._freeways() for s in self._stations()]
        up_to = max((str(one.at) for one in now.values()), default="the first epoch")
        told = f"epoch {epoch} · map up to {up_to} · {count(corrections)} estimates corrected so far"
        return {
            "about": tag("p", {"role": "status", "aria-live": "off"}, told),
            "choose": self._form(),
            "map": joined((_picture(now, final, shown), _table(now, final, shown))),
            "spared": _spared(look, self._speaker),
        }

    def _freeways(self) -> list[int]:
        return [self._freeway] if self._freeway else list(range(1, FREEWAYS + 1))

    def _stations(self) -> list[int]:
        first, last = HALVES[self._half]
        return list(range(first, last + 1))

    def _form(self) -> Markup:
        freeways = [(0, "All freeways"), *((n, f"I-{n}") for n in range(1, FREEWAYS + 1))]
        names = {"all": "All stations", "west": f"Stations 0 to {STATIONS // 2 - 1}"}
        names["east"] = f"Stations {STATIONS // 2} to {STATIONS - 1}"
        buttons = [_button("freeway", str(n), words, n == self._freeway) for n, words in freeways]
        zooms = [_button("half", key, words, key == self._half) for key, words in names.items()]
        return tag("form", {"method": "post", "action": "/map", "class": "choose"}, *buttons, *zooms)


def _button(name: str, value: str, words: str, pressed: bool) -> Markup:
    state = "true" if pressed else "false"
    return tag("button", {"name": name, "value": value, "aria-pressed": state}, words)


def _picture(
    now: dict[tuple[int, int], Estimate], final: dict[tuple[int, int], Estimate], shown: list[tuple[int, int]]
) -> Markup:
    freeways, stations = sorted({f for f, _ in shown}), sorted({s for _, s in shown})
    width, height = LEFT + GAP * len(stations), TOP + ROW * len(freeways)
    parts: list[Child] = [
        tag("text", {"class": "station", "x": LEFT + GAP * (n + 0.5), "y": 16}, f"station {s}")
        for n, s in enumerate(stations)
    ]
    for row, freeway in enumerate(freeways):
        y = TOP + ROW * (row + 0.5)
        parts.append(tag("path", {"class": "road", "d": f"M{LEFT:g} {y:g} H{width - 20:g}"}))
        parts.append(tag("text", {"class": "freeway", "x": 8, "y": y + 5}, f"I-{freeway}"))
        for n, station in enumerate(stations):
            place = freeway, station
            parts.append(_station(LEFT + GAP * (n + 0.5), y, now.get(place), final.get(place)))
    label = f"The speed map: {len(freeways)} freeways with {len(stations)} stations each"
    box = {"viewBox": f"0 0 {width:g} {height:g}", "class": "map", "role": "img", "aria-label": label}
    return tag("div", {"class": "card"}, tag("svg", box, *parts))


def _station(x: float, y: float, now: Estimate | None, final: Estimate | None) -> Markup:
    if now is None:
        return tag("circle", {"cx": x, "cy": y, "r": 9})
    band = {"x": x - 17, "y": y + 21, "width": 34, "height": 5, "rx": 2}
    parts: list[Child] = [
        tag("title", {}, f"{now.mph:.0f} mph, {now.colour}, of {now.at}"),
        tag("circle", {"class": now.colour, "cx": x, "cy": y, "r": 18}),
        tag("text", {"class": "mph", "x": x, "y": y + 4}, f"{now.mph:.0f}"),
        tag("rect", {"class": final.colour, **band}) if final is not None else "",
        tag("circle", {"class": "flash", "cx": x, "cy": y, "r": 22}) if now.corrected else "",
    ]
    return tag("g", {}, *parts)


def _table(
    now: dict[tuple[int, int], Estimate], final: dict[tuple[int, int], Estimate], shown: list[tuple[int, int]]
) -> Markup:
    rows = []
    for place in shown:
        one, last = now.get(place), final.get(place)
        latest = ("", "") if one is None else (f"{one.mph:.0f} mph, {one.colour}", str(one.at))
        settled = ("", "") if last is None else (f"{last.mph:.0f} mph, {last.colour}", str(last.at))
        corrected = "corrected" if one is not None and one.corrected else ""
        rows.append((f"I-{place[0]}, station {place[1]}", *latest, corrected, *settled))
    heads = ("station", "estimate", "of", "correction", "final", "final of")
    whole = table(heads, rows, caption="The map as a table")
    return tag("details", {}, tag("summary", {}, "The map as a table"), whole)


def _spared(look: Look, speaker: Speaker) -> Markup:
    """What feedback stands, and what is no longer read because of it."""
    unread = [s for s in look.status.sources.values() if s.rows_unread]
    rows, bytes_ = sum(s.rows_unread for s in unread), sum(s.bytes_unread for s in unread)
    read = sum(s.rows for s in look.status.sources.values())
    told = f"{count(rows)} rows ({size(bytes_)}) were not read because of what you chose; {count(read)} were."
    standing = [tag("li", {}, line) for line in speaker.standing()]
    return joined(
        (
            tag("h2", {}, "What is no longer read"),
            tag("p", {}, told),
            tag("ul", {}, *standing) if standing else tag("p", {"class": "quiet"}, "No feedback stands."),
            effects(look),
        )
    )
