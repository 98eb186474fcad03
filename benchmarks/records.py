"""Measurements that are kept: the medians of several rounds of a benchmark, by machine and version.

``make record NAMES="core 'nexmark --memory --timing'" MACHINE=2-cores ROUNDS=3`` runs each benchmark in a
process of its own, in turns, and writes ``benchmarks/results/2-cores/0.2.0.json``. Tables and plots in the
documentation are made from these files (``make figures``), so that no figure is typed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
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
    """What some rounds of one benchmark, called in one way, said."""

    bench: str
    arguments: str
    commit: str
    rounds: int
    cases: Cases

    def as_text(self) -> str:
        """As JSON, a case in a line, so that two records can be compared by eye."""
        head = json.dumps({**vars(self), "cases": {}})[:-2]
        cases = ",\n".join(f" {json.dumps(case)}: {json.dumps(row)}" for case, row in self.cases.items())
        return f"{head}\n{cases}\n}}}}"

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Run:
        cases = {
            case: {name: value if isinstance(value, str) else Figure(*value) for name, value in row.items()}
            for case, row in given["cases"].items()
        }
        return cls(given["bench"], given["arguments"], given["commit"], given["rounds"], cases)


@dataclass(frozen=True)
class Record:
    """All that was measured of one version on one machine."""

    machine: Mapping[str, str]
    version: str
    runs: tuple[Run, ...] = ()

    def with_runs(self, new: Iterable[Run]) -> Record:
        """This record with other runs in the place of those that were called in the same way."""
        runs = {(run.bench, run.arguments): run for run in (*self.runs, *new)}
        return Record(self.machine, self.version, tuple(runs[key] for key in sorted(runs)))

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


def measure(call: str, *, source: Path | None = None) -> list[dict[str, Any]]:
    """Runs a benchmark once in a process of its own; ``source`` is the checkout whose code it measures."""
    name, *arguments = shlex.split(call)
    home = source or Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks", name, "--json", *arguments]
    paths = os.pathsep.join([str(home / "src"), str(home)])
    env = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=home, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"`{shlex.join(command)}` ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def this_machine(name: str) -> dict[str, str]:
    """What figures depend on: the machine's name, cores, processor, memory and Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    processor = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "name": name,
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": processor,
        "memory": f"{memory:.0f} GiB",
        "python": platform.python_version(),
    }


def commit_of(home: Path) -> str:
    """The commit that is checked out there."""
    asked = ["git", "-C", str(home), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def path_of(machine: str, version: str) -> Path:
    return RESULTS / machine / f"{version}.json"


def main(given: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks record", description=__doc__)
    parser.add_argument("calls", nargs="+", help="benchmarks with their arguments, each one text")
    parser.add_argument("--machine", required=True, help="the name under which its figures are kept")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(given)
    path = path_of(options.machine, version("caesura"))
    fresh = Record(this_machine(options.machine), version("caesura"))
    record = Record.read(path) if path.exists() else fresh
    rounds: dict[str, list[list[dict[str, Any]]]] = {call: [] for call in options.calls}
    for turn in range(options.rounds):
        for call in options.calls:
            print(f"round {turn + 1} of {options.rounds}: {call}", file=sys.stderr, flush=True)
            rounds[call].append(measure(call))
    commit = commit_of(Path(__file__).parents[1])
    runs = []
    for call, rows in rounds.items():
        name, _, arguments = call.partition(" ")
        runs.append(Run(name, arguments.strip(), commit, options.rounds, gathered(rows)))
    record.with_runs(runs).write(path)
    print(f"{sum(len(run.cases) for run in runs)} cases are kept in {path}")
