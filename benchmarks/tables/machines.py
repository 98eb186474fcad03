"""On what machines figures were measured, and when in the life of the code."""

from __future__ import annotations

from benchmarks.figures import Results, table
from benchmarks.recording import RIVALS


def machines(results: Results) -> str:
    rows = []
    for name, record in results.records.items():
        have = record.machine
        versions = [f"{rival} {have[rival]}" for rival in (*RIVALS, "java") if have.get(rival)]
        commits = sorted({run.commit for run in record.runs})
        about = ", ".join(filter(None, (have["processor"], have["memory"], have.get("note", ""))))
        rows.append([f"`{name}`", have["cores"], about, f"Python {have['python']}, {', '.join(versions)}"])
        rows[-1].append(f"{record.version} ({', '.join(commits)})")
    return table(["machine", "cores", "what it is", "with", "version (commit)"], rows)


def failed(results: Results) -> str:
    """Benchmarks that ended early, and why."""
    rows = [
        [f"`{name}`", f"`{run.bench} {run.arguments}`", run.failed]
        for name, record in results.records.items()
        for run in record.runs
        if run.failed
    ]
    return table(["machine", "benchmark", "why it ended"], rows) if rows else "None."
