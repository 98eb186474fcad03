"""On what machines figures were measured, and when in the life of the code."""

from __future__ import annotations

from itertools import pairwise

from benchmarks.figures import Results, table
from benchmarks.recording import RIVALS


def machines(results: Results) -> str:
    """What each machine is; what it has in common with the one above is not said again."""
    rows: list[list[str]] = []
    for name, record in results.records.items():
        have = record.machine
        versions = [f"{rival} {have[rival]}" for rival in (*RIVALS, "java") if have.get(rival)]
        about = ", ".join(filter(None, (have["processor"], have["memory"], have.get("note", ""))))
        commits = ", ".join(sorted({run.commit for run in record.runs}))
        rows.append([f"`{name}`", about, f"Python {have['python']}", ", ".join(versions)])
        rows[-1].append(f"{record.version} ({commits})")
    for before, row in reversed(list(pairwise(rows))):
        row[3] = "as above" if row[3] == before[3] else row[3]
    return table(["machine", "what it is", "Python", "with", "version (commit)"], rows)


def failed(results: Results) -> str:
    """How many benchmarks ended early; the records say which, and why."""
    lines = []
    for name, record in results.records.items():
        early = sum(bool(run.failed) for run in record.runs)
        if early:
            lines.append(f"{early} of {len(record.runs)} on `{name}`")
    return (
        f"Benchmarks that had too little time: {', '.join(lines)}." if lines else "None had too little time."
    )
