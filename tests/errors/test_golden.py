"""Every diagnostic's text, as a user meets it: a script above the line, what it says below.

``CAESURA_GOLDEN=write`` writes what the scripts say now; read the difference before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import caesura as cz
from caesura.errors import CaesuraError

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.txt"))
LINE = "----\n"
AT_ONCE = ("and_between_predicates", "unknown_type_in_cast", "values_that_are_columns")
"""Raised by the expression itself, before there is a step: Python shows the line."""


def late(stream: cz.Stream) -> str:
    """The rows that a source refuses, with the reason, and what the others say."""
    result = stream.run()
    shown = ("reason", "offset", "kind", "LE", "RE", "RE_new")
    rows = [{n: row[n] for n in shown} for table in result.late.values() for row in table.to_pylist()]
    told = [" | ".join(f"{name} {value}" for name, value in row.items()) for row in rows]
    return "\n".join([*told, str(result)])


def file(name: str, content: str | bytes) -> None:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def said(script: str, here: Path) -> str:
    """What a script called flow.py says: its diagnostic, or what it shows."""
    names = {"cz": cz, "col": cz.col, "late": late, "file": file, "folder": os.mkdir, "shown": None}
    try:
        exec(compile(script, "flow.py", "exec"), names)
        text = str(names["shown"])
    except CaesuraError as error:
        text = f"{type(error).__name__}: {error}"
    lines = (line.rstrip() for line in text.replace(str(here), "<here>").splitlines())
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda g: g.stem)
def test_the_diagnostic_is_the_one_that_was_read_and_approved(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, wanted = golden.read_text().split(LINE)
    monkeypatch.chdir(tmp_path)
    got = said(script, tmp_path)
    if os.environ.get("CAESURA_GOLDEN") == "write":
        golden.write_text(script + LINE + got)
    else:
        assert got == wanted


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda g: g.stem)
def test_every_diagnostic_names_the_place_and_says_what_to_do(golden: Path) -> None:
    _, text = golden.read_text().split(LINE)
    if "Error: " not in text.splitlines()[0]:
        return  # rows, told by the late table
    problem, remedy = text.rstrip().split("\n", 1)
    assert "flow.py:" in problem or golden.stem in AT_ONCE
    assert problem.endswith(".") or (problem.endswith(":") and remedy.startswith("  "))
    assert remedy.endswith(".")
    assert "Traceback" not in text
