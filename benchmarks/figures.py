"""Tables and plots of the documentation, made from kept measurements; ``make figures`` writes them anew.

A page holds a place for each table, which is written over:

    <!-- table: y1 -->
    ...
    <!-- end of table -->

A function of ``benchmarks/tables`` under that name says what stands there. A test compares pages and records.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.records import RESULTS, Figure, Record, Run

HOME = Path(__file__).parents[1]
PLACE = re.compile(r"(<!-- table: (?P<name>[a-z0-9-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
NOT_MEASURED = "not measured"
STANDS_IN = {"2-cores": "2-cores-shared"}
"""A machine whose record is asked where that of another lacks something."""
MARK = "†"


class Elsewhere(Figure):
    """A figure of the machine that stands in; it is marked where it is shown."""


def mark(figure: Figure | None) -> str:
    """
    >>> mark(Elsewhere(1, 1, 1)), mark(Figure(1, 1, 1))
    ('†', '')
    """
    return MARK if isinstance(figure, Elsewhere) else ""


@dataclass(frozen=True)
class Results:
    """The newest record of every machine."""

    records: dict[str, Record]

    @classmethod
    def read(cls, folder: Path = RESULTS) -> Results:
        newest = {}
        for machine in sorted(p for p in folder.iterdir() if p.is_dir()):
            files = sorted(machine.glob("*.json"), key=_version)
            if files:
                newest[machine.name] = Record.read(files[-1])
        return cls(newest)

    def runs(self, machine: str, bench: str, arguments: str = "", without: str = "") -> Iterator[Run]:
        """The runs of a benchmark whose arguments hold all of these words, and none of those."""
        wanted, unwanted = set(arguments.split()), set(without.split())
        for run in self.records[machine].runs if machine in self.records else ():
            given = set(run.arguments.split())
            if run.bench == bench and wanted <= given and not unwanted & given:
                yield run

    def value(
        self, machine: str, bench: str, case: str, name: str, arguments: str = "", without: str = ""
    ) -> Figure | str | None:
        """What was measured under a name, as a figure or a text."""
        found = (run.cases.get(case, {}).get(name) for run in self.runs(machine, bench, arguments, without))
        return next((value for value in found if value is not None), None)

    def figure(
        self, machine: str, bench: str, case: str, name: str, arguments: str = "", without: str = ""
    ) -> Figure | None:
        value = self.value(machine, bench, case, name, arguments, without)
        if value is None and machine in STANDS_IN:
            found = self.figure(STANDS_IN[machine], bench, case, name, arguments, without)
            return Elsewhere(*found) if found else None
        return value if isinstance(value, Figure) else None

    def text(self, machine: str, bench: str, case: str, name: str) -> str:
        value = self.value(machine, bench, case, name)
        return value if isinstance(value, str) else NOT_MEASURED


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.stem))


def millions(figure: Figure | None, *, thousands: bool = False) -> str:
    """Events a second; in thousands where they may be few.

    >>> millions(Figure(133_400_000, 97e6, 148e6)), millions(Figure(1_240_000, 1.2e6, 1.3e6)), millions(None)
    ('133 M (97 to 148)', '1.2 M (1.2 to 1.3)', 'not measured')
    >>> millions(Figure(5_100, 5_000, 5_200), thousands=True)
    '5.1 K (5.0 to 5.2)'
    """
    if thousands and figure and figure.median < 1e6:
        return in_units(figure, 1e3, 1 if figure.median < 2e4 else 0, " K")
    digits = 0 if figure and figure.median >= 2e7 else 1
    return in_units(figure, 1e6, digits, " M")


def ratio(figure: Figure | None, digits: int = 2) -> str:
    """How many times.

    >>> ratio(Figure(1.224, 1.11, 1.49))
    '1.22 (1.11 to 1.49)'
    """
    return in_units(figure, 1, digits)


def in_units(figure: Figure | None, unit: float = 1, digits: int = 0, sign: str = "") -> str:
    """A figure in thousands, parts or whatever the unit is.

    >>> in_units(Figure(0.032, 0.030, 0.034), 1e-3, 0, " ms"), in_units(Figure(1234567, 1, 1e7), 1, 0)
    ('32 ms (30 to 34)', '1,234,567 (1 to 10,000,000)')
    """
    if figure is None:
        return NOT_MEASURED
    return f"{figure.median / unit:,.{digits}f}{sign}{mark(figure)}{spread(figure, unit, digits)}"


def with_unit(text: str, unit: str) -> str:
    """A figure with its unit; what was not measured has none.

    >>> with_unit("5", " steps"), with_unit("not measured", " steps")
    ('5 steps', 'not measured')
    """
    return text if text.startswith(NOT_MEASURED) else text + unit


def short(figure: Figure | None, unit: float = 1, digits: int = 2, sign: str = "") -> str:
    """The median alone, for tables with many of them; nothing where it was not measured.

    >>> short(Figure(1.224, 1.11, 1.49)), short(None)
    ('1.22', '')
    """
    return "" if figure is None else f"{figure.median / unit:,.{digits}f}{sign}{mark(figure)}"


def spread(figure: Figure, unit: float, digits: int) -> str:
    """The least and the greatest, where they differ as they are printed.

    >>> spread(Figure(5, 5, 5), 1, 1)
    ''
    """
    low, high = (f"{end / unit:,.{digits}f}" for end in (figure.least, figure.greatest))
    return "" if low == high else f" ({low} to {high})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["case", "figure"], [["Y1", "5"]]))
    | case | figure |
    | --- | --- |
    | Y1 | 5 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(text: str, makers: dict[str, Callable[[Results], str]], results: Results, page: str = "") -> str:
    """A page with its tables written anew; a table that nobody makes is refused."""

    def made(place: re.Match[str]) -> str:
        name = place["name"]
        if name not in makers:
            raise LookupError(
                f"{page} has a place for the table '{name}', which benchmarks/tables does not make"
            )
        made = makers[name](results)
        told = "\n\n† Measured on two cores that had other work beside." if MARK in made else ""
        return f"{place[1]}\n{made}{told}\n\n{place[3]}"

    return PLACE.sub(made, text)


def pages() -> list[Path]:
    return [HOME / "README.md", *sorted((HOME / "docs").rglob("*.md"))]


def main(given: list[str]) -> None:
    from benchmarks.tables import PLOTS, TABLES

    parser = argparse.ArgumentParser(prog="benchmarks figures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a page is old")
    options = parser.parse_args(given)
    results, old = Results.read(), []
    targets = {path: filled(path.read_text("utf-8"), TABLES, results, path.name) for path in pages()}
    targets |= {HOME / "docs" / "pictures" / name: plot(results) for name, plot in PLOTS.items()}
    for path, text in targets.items():
        if path.exists() and path.read_text("utf-8") == text:
            continue
        old.append(str(path.relative_to(HOME)))
        if not options.check:
            path.write_text(text, "utf-8")
    if options.check and old:
        sys.exit(f"out of date: {', '.join(old)}. Run: make figures")
    print(f"written: {', '.join(old)}" if old else "all pages are as the records say")
