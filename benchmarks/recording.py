"""Measures benchmarks in rounds and keeps what they said.

``make record MACHINE=2-cores ROUNDS=3 CALLS="core 'nexmark --memory --timing'"`` runs each benchmark in a
process of its own, in turns, and adds to ``benchmarks/results/2-cores/0.2.0.json`` after every run. Several
processes measure side by side into files of their own (``--out``), which ``merge`` makes one. A benchmark
that fails, or takes too long, is kept with the reason and what it said until then; the others go on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.records import Record, Run, gathered, path_of

HOME = Path(__file__).parents[1]
RIVALS = ("numpy", "numba", "pyarrow", "duckdb", "polars", "pyspark", "reactivex")
"""The packages whose versions figures depend on."""


class Outcome(NamedTuple):
    """What a benchmark said, and why it ended early, where it did."""

    rows: list[dict[str, Any]]
    failed: str = ""


def attempt(call: str, *, source: Path | None = None, limit: float = float("inf")) -> Outcome:
    """Runs a benchmark once in a process of its own; ``source`` is the checkout whose code it measures."""
    name, *arguments = shlex.split(call)
    home = source or HOME
    command = [sys.executable, "-m", "benchmarks", name, "--json", *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(home / "src"), str(home)])}
    process = subprocess.Popen(
        command,
        cwd=home,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    failed = ""
    try:
        said, wrote = process.communicate(timeout=None if limit == float("inf") else limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, wrote = process.communicate()
        failed = f"took more than {limit:.3g} s"
    if process.returncode and not failed:
        last = wrote.strip().splitlines()[-1:] or [""]
        failed = f"ended with {process.returncode}: {last[0][:300]}"
    if failed:
        print(wrote[-3000:], file=sys.stderr)
    return Outcome([json.loads(line) for line in said.splitlines() if line.startswith("{")], failed)


def measure(call: str, *, source: Path | None = None) -> list[dict[str, Any]]:
    """What a benchmark says; one that fails ends everything."""
    rows, failed = attempt(call, source=source)
    if failed:
        raise SystemExit(f"`{call}` {failed}")
    return rows


class Asked(NamedTuple):
    """A benchmark with its arguments, and how often it is run."""

    call: str
    rounds: int


def listed(text: str, group: str) -> list[Asked]:
    """The calls of a group, from lines of group, rounds and call.

    >>> listed("a\\t3\\tcore --only y1\\nb\\t1\\tmatch\\n", "a")
    [Asked(call='core --only y1', rounds=3)]
    """
    rows = [line.split("\t", 2) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [Asked(call, int(rounds)) for name, rounds, call in rows if name == group]


@dataclass
class Recording:
    """The rounds of some benchmarks, in turns; the record is written after each."""

    path: Path
    record: Record
    asked: Sequence[Asked]
    commit: str
    limit: float = float("inf")
    """Seconds that one run may take."""
    within: float = float("inf")
    """Seconds in which a further round of a benchmark must fit, by how long the longest took."""
    source: Path = HOME
    """The checkout whose code is measured."""
    said: dict[str, list[list[dict[str, Any]]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        began, longest = time.monotonic(), dict.fromkeys((one.call for one in self.asked), 0.0)
        for turn, one in self._turns():
            left = self.within - (time.monotonic() - began)
            if one.call in self.failed or left < longest[one.call] or left <= 0:
                continue
            print(f"round {turn + 1} of {one.rounds}: {one.call}", file=sys.stderr, flush=True)
            start = time.monotonic()
            rows, failed = attempt(one.call, source=self.source, limit=min(self.limit, left))
            longest[one.call] = max(longest[one.call], time.monotonic() - start)
            self._keep(one.call, rows, failed)
        for one in self.asked:
            if one.call not in self.said:
                self._keep(one.call, [], f"there was no time for it in {self.within:.3g} s")

    def _turns(self) -> Iterator[tuple[int, Asked]]:
        for turn in range(max((one.rounds for one in self.asked), default=0)):
            yield from ((turn, one) for one in self.asked if turn < one.rounds)

    def _keep(self, call: str, rows: list[dict[str, Any]], failed: str) -> None:
        self.said.setdefault(call, []).append(rows)
        if failed:
            self.failed[call] = failed
            print(f"`{call}` {failed}", file=sys.stderr, flush=True)
        name, _, arguments = call.partition(" ")
        rounds = self.said[call]
        run = Run(name, arguments.strip(), self.commit, len(rounds), gathered(rounds), failed)
        self.record = self.record.with_runs([run])
        self.record.write(self.path)


def this_machine(name: str, note: str = "") -> dict[str, str]:
    """What figures depend on: cores that may be used, processor, memory, versions; and a note."""
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
        **{rival: found for rival in RIVALS if (found := _version_of(rival))},
        "java": _java(),
        "note": note,
    }


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if not java or not Path(java).exists():
        return ""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    return said.split('"')[1] if '"' in said else said.strip()


def version_of(home: Path) -> str:
    """The version of Caesura that lies there, whether it is installed or not."""
    project = tomllib.loads((home / "pyproject.toml").read_text("utf-8"))
    return str(project["project"]["version"])


def commit_of(home: Path) -> str:
    """The commit that is checked out there; ``unknown`` where there is no repository."""
    asked = ["git", "-C", str(home), "rev-parse", "--short=12", "HEAD"]
    if shutil.which("git") is None:
        return "unknown"
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def merge(given: list[str]) -> None:
    """Makes one record of those that processes side by side wrote."""
    parser = argparse.ArgumentParser(prog="benchmarks merge", description=merge.__doc__)
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, help="default: where the machine's record is kept")
    options = parser.parse_args(given)
    first, *others = map(Record.read, options.records)
    for other in others:
        first = first.beside(other)
    path = options.out or path_of(first.machine["name"], first.version)
    if path.exists():
        first = Record.read(path).beside(first)
    first.write(path)
    print(f"{len(first.runs)} runs are kept in {path}")


def main(given: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks record", description=__doc__)
    parser.add_argument("calls", nargs="*", help="benchmarks with their arguments, each one text")
    parser.add_argument("--machine", required=True, help="the name under which its figures are kept")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--list", type=Path, help="a file with lines of group, rounds and call, tabs between")
    parser.add_argument("--group", default="", help="the group of that file")
    parser.add_argument("--out", type=Path, help="a record of its own, for `merge`")
    parser.add_argument("--limit", type=float, default=600, help="seconds that one run may take")
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds for all of them")
    parser.add_argument("--commit", default="", help="where there is no repository")
    parser.add_argument("--note", default="", help="what else there is to say of the machine")
    options = parser.parse_args(given)
    asked = [Asked(call, options.rounds) for call in options.calls]
    if options.list:
        asked += listed(options.list.read_text("utf-8"), options.group)
    if not asked:
        parser.error("there is nothing to measure: name benchmarks, or a list and a group that is in it")
    version = version_of(HOME)
    path = options.out or path_of(options.machine, version)
    record = Record(this_machine(options.machine, options.note), version)
    if path.exists():
        record = Record.read(path).beside(record)
    commit = options.commit or commit_of(HOME)
    recording = Recording(path, record, asked, commit, options.limit, options.within)
    recording.run()
    print(f"{len(recording.said)} benchmarks are kept in {path}")
    if recording.failed:
        sys.exit(f"{len(recording.failed)} failed: {'; '.join(recording.failed)}")
