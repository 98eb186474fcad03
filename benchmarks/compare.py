"""The code as it is beside another commit, in turns: fails where a core case takes over 5 % longer.

``make bench-compare BASE=main`` checks the other commit out into ``build/compare``, runs the cases of
``CASES`` in processes of their own, now one and now the other first, and compares medians of CPU time.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.recording import measure
from benchmarks.records import Figure

HOME = Path(__file__).parents[1]
CALLS = (
    "core --only y1,late,pages,groups --events 2000000",
    "windows",
    "nexmark --memory --events 200000 --times 2",
)


def speeds(rows: Sequence[dict[str, object]]) -> dict[str, float]:
    """How fast each case was, in events a second, or one over its time.

    >>> speeds([{"bench": "core", "case": "y1", "events_per_s": 50}])
    {'core y1': 50.0}
    """
    found = {}
    for row in rows:
        match row:
            case {"bench": bench, "case": case, "events_per_s": float() | int() as rate} if rate:
                found[f"{bench} {case}"] = float(rate)
            case {"bench": bench, "case": case, "cpu_ms": float() | int() as taken} if taken:
                found[f"{bench} {case}"] = 1.0 / taken
    return found


def checked_out(commit: str) -> Path:
    """A folder with the other commit in it."""
    folder = HOME / "build" / "compare"
    if folder.exists():
        subprocess.run(["git", "-C", str(HOME), "worktree", "remove", "--force", str(folder)], check=True)
    subprocess.run(
        ["git", "-C", str(HOME), "worktree", "add", "--detach", "--force", str(folder), commit], check=True
    )
    return folder


def in_turns(calls: Sequence[str], base: Path, rounds: int) -> dict[str, Figure]:
    """By case, our speed over the other commit's: the ratio of neighbours in time, over all rounds."""
    ratios: dict[str, list[float]] = {}
    for turn in range(rounds):
        for call in calls:
            print(f"round {turn + 1} of {rounds}: {call}", file=sys.stderr, flush=True)
            if turn % 2:
                ours, theirs = measure(call), measure(call, source=base)
            else:
                theirs, ours = measure(call, source=base), measure(call)
            before = speeds(theirs)
            for case, speed in speeds(ours).items():
                if case in before:
                    ratios.setdefault(case, []).append(speed / before[case])
    return {case: Figure.of(some) for case, some in ratios.items()}


def main(given: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks compare", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=0.05, help="how much slower a case may be")
    parser.add_argument("--calls", nargs="*", default=list(CALLS))
    options = parser.parse_args(given)
    found = in_turns(options.calls, checked_out(options.base), options.rounds)
    if not found:
        raise SystemExit("no case was measured on both sides")
    slower = [case for case, ratio in found.items() if ratio.median < 1 - options.limit]
    for case, ratio in sorted(found.items(), key=lambda item: item[1].median):
        mark = "slower" if case in slower else ""
        print(f"{case:<34} {ratio.median:6.3f}  ({ratio.least:.3f} to {ratio.greatest:.3f}) {mark}")
    print(f"median of all: {statistics.median(r.median for r in found.values()):.3f}")
    if slower:
        raise SystemExit(f"{len(slower)} of {len(found)} cases are over {options.limit:.0%} slower")
