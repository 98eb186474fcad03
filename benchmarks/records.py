"""Measurements that are kept: the medians of several rounds of a benchmark, by machine and version.

A record is a file ``benchmarks/results/<machine>/<version>.json``, written by ``benchmarks.recording``.
Tables and plots of the documentation are made from these files (``make figures``): no figure is typed.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parent / "results"


class Figure(NamedTuple):
    """A median, and the least and the greatest of the rounds."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        return cls(statistics.median(values), min(values), max(values))


Cases = dict[str, dict[str, Figure | str]]
"""For each case of a benchmark its figures by name; texts and truths as texts."""


@dataclass(frozen=True)
class Run:
    """What some rounds of one benchmark, called in one way, said; and why it failed, where it did."""

    bench: str
    arguments: str
    commit: str
    rounds: int
    cases: Cases
    failed: str = ""

    def as_text(self) -> str:
        """As JSON, a case in a line, so that two records can be compared by eye."""
        head = json.dumps({**vars(self), "cases": {}})
        cases = ",\n".join(f" {json.dumps(case)}: {json.dumps(row)}" for case, row in self.cases.items())
        return head.replace('"cases": {}', f'"cases": {{\n{cases}\n}}', 1)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Run:
        cases = {
            case: {name: value if isinstance(value, str) else Figure(*value) for name, value in row.items()}
            for case, row in given["cases"].items()
        }
        return cls(**{**given, "cases": cases})


@dataclass(frozen=True)
class Record:
    """All that was measured of one version on one machine."""

    machine: Mapping[str, str]
    version: str
    runs: tuple[Run, ...] = ()

    def with_runs(self, new: Iterable[Run]) -> Record:
        """This record with other runs in the place of those that were called in the same way."""
        runs = {(run.bench, run.arguments): run for run in (*self.runs, *new)}
        return replace(self, runs=tuple(runs[key] for key in sorted(runs)))

    def beside(self, other: Record) -> Record:
        """One record of two that processes side by side made; those of different machines are refused."""
        mine, theirs = ({**record.machine, "version": record.version} for record in (self, other))
        for name in mine | theirs:
            if mine.get(name) != theirs.get(name):
                raise ValueError(f"records of one machine: {name} is {mine.get(name)} and {theirs.get(name)}")
        return self.with_runs(other.runs)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        head = json.dumps({"machine": dict(self.machine), "version": self.version})[:-1]
        runs = ",\n".join(run.as_text() for run in self.runs)
        path.write_text(f'{head}, "runs": [\n{runs}\n]}}\n', encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Record:
        given = json.loads(path.read_text(encoding="utf-8"))
        return cls(given["machine"], given["version"], tuple(map(Run.from_json, given["runs"])))


def flat(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float | str]]:
    """A measurement's values by name, those within others behind a dot.

    >>> dict(flat({"case": "y1", "events_per_s": 5, "ratio_to": {"duckdb": 1.5}, "spread": [1, 2]}))
    {'events_per_s': 5, 'ratio_to.duckdb': 1.5, 'spread.0': 1, 'spread.1': 2}
    """
    for name, value in row.items():
        match value:
            case _ if not prefix and name in ("bench", "case"):
                continue
            case dict():
                yield from flat(value, f"{prefix}{name}.")
            case list():
                yield from flat({str(i): one for i, one in enumerate(value)}, f"{prefix}{name}.")
            case bool() | str() | None:
                yield prefix + name, str(value)
            case _:
                yield prefix + name, value


def gathered(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> Cases:
    """What several rounds of the same benchmark said, as figures by case and name.

    >>> gathered([[{"case": "y1", "ms": 5}], [{"case": "y1", "ms": 7}], [{"case": "y1", "ms": 6}]])
    {'y1': {'ms': Figure(median=6, least=5, greatest=7)}}
    """
    seen: dict[str, dict[str, list[float | str]]] = {}
    for measurements in rounds:
        for row in measurements:
            for name, value in flat(row):
                seen.setdefault(str(row["case"]), {}).setdefault(name, []).append(value)
    return {
        case: {name: _figure(values) for name, values in by_name.items()} for case, by_name in seen.items()
    }


def _figure(values: Sequence[float | str]) -> Figure | str:
    numbers = [value for value in values if not isinstance(value, str)]
    return Figure.of(numbers) if len(numbers) == len(values) else str(values[-1])


def path_of(machine: str, version: str) -> Path:
    return RESULTS / machine / f"{version}.json"
