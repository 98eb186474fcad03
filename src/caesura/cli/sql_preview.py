"""A script of SQL as somebody edits it, over the first rows of its sources, in a process of its own.

What is asked comes as JSON, and so does the answer. Where rows come from and go to, and functions, are those
of the file: only queries may be edited, so no text can open another file, or run Python. The process has
bounds on time and memory; whoever starts it ends it when it takes too long.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from caesura.console.web.sql_page import SqlPreview
from caesura.errors import CaesuraError, PlanError
from caesura.sql.script import Script
from caesura.sql.statements import Ask, CreateView, InsertInto, Statement, statements

SECONDS: float = 20
MEMORY = 2_000_000_000
"""Bytes of memory that a preview may take."""
ROWS = 2_000
"""So many rows of each source are read."""
SHOWN = 200
"""So many rows of the output are shown."""


def sql_preview(file: str, name: str, text: str) -> SqlPreview:
    """What an edited script gives, or what is wrong with it; asked of another process."""
    asked = json.dumps({"file": file, "name": name, "text": text})
    command = [sys.executable, "-m", "caesura.cli.sql_preview"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = subprocess.run(
            command,
            input=asked,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return SqlPreview(problem=f"The preview took longer than {SECONDS} seconds and was ended.")
    if done.returncode != 0:
        return SqlPreview(problem="The preview was ended: it takes too much memory, or too long.")
    return SqlPreview(**json.loads(done.stdout))


def answered(file: str, name: str, text: str) -> dict[str, Any]:
    """What a script gives over the first rows of its sources."""
    from caesura.runtime.inspect.literals import row_literals
    from caesura.runtime.inspect.saved_test import replayed_table

    try:
        _refuse_others(text, Path(file).read_text(), Path(file).name)
        made = Script(file=Path(file).name)
        asked = list(made.execute(text))
        stream = asked[-1].stream if asked and not name else made.target(name)
        table, late = replayed_table(stream.replay(ROWS))
    except CaesuraError as error:
        return {"problem": str(error)}
    shown = [[_plain(value) for value in row.values()] for row in row_literals(table.slice(0, SHOWN))]
    return {"columns": table.column_names, "rows": shown, "of": table.num_rows, "late": late}


def _refuse_others(text: str, before: str, name: str) -> None:
    """Refuses what declares other sources, sinks or functions than the file does."""
    known = {_unplaced(one) for one in statements(before)}
    for one in statements(text):
        if not isinstance(one, CreateView | InsertInto | Ask) and _unplaced(one) not in known:
            raise PlanError(
                "only queries are edited here, and this declares something else.",
                remedy="Change where rows come from and go to, functions and settings in the file itself.",
                step="script",
                place=f"{name}:{one.line}",
            )


def _unplaced(one: Statement) -> str:
    return repr(replace(one, line=0))


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS), int(SECONDS)))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    print(json.dumps(answered(**json.loads(sys.stdin.read()))))
