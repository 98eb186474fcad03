"""Every diagnostic's text, as a user meets it: a script above the line, what it says below.

``CAESURA_GOLDEN=write`` writes what the scripts say now; read the difference before you keep it.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import pytest
from golden_scripts import ALL, Golden, Site, noting_sites, said, write

import caesura.errors

PACKAGE = Path(caesura.errors.__file__).parent


@dataclass
class Played:
    """All scripts, run once: what each says, and where diagnostics were made."""

    said: dict[Golden, str]
    sites: set[Site]


@pytest.fixture(scope="module")
def played() -> Played:
    with noting_sites() as sites:
        result = Played({golden: said(golden) for golden in ALL}, sites)
    if os.environ.get("CAESURA_GOLDEN") == "write":
        for room in {golden.room for golden in ALL}:
            write(room, result.said)
    return result


ROOMS = sorted({golden.room for golden in ALL})


@pytest.mark.parametrize("room", ROOMS)
def test_the_diagnostics_are_those_that_were_read_and_approved(room: str, played: Played) -> None:
    differ = [g for g in ALL if g.room == room and played.said[g] != g.wanted]
    shown = (unified_diff(g.wanted.splitlines(), played.said[g].splitlines(), f"{g}", "now") for g in differ)
    assert not differ, "\n".join(line for lines in shown for line in lines)


@pytest.mark.parametrize("room", ROOMS)
def test_every_diagnostic_names_the_place_and_says_what_to_do(room: str) -> None:
    unplaced = [f"{g}:\n{g.wanted}" for g in ALL if g.room == room and not says_all(g.wanted)]
    assert not unplaced, "\n".join(unplaced)


def says_all(wanted: str) -> bool:
    """Whether a diagnostic ends its sentence, has the user's line, and a remedy."""
    first, _, rest = wanted.rstrip().partition("\n")
    if "Traceback" in wanted:
        return False
    if first.startswith("exit code"):
        problem, _, remedy = rest.partition("\n")
    elif "Error: " in first:
        problem, remedy = first, rest
        if "flow.py:" not in problem:
            return False
    else:
        return True  # rows, told by the late table
    ended = problem.endswith(".") or (problem.endswith(":") and remedy.startswith("  "))
    return ended and remedy.endswith((".", ")"))


def test_no_two_scripts_have_one_name() -> None:
    names = [golden.name for golden in ALL]
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_every_diagnostic_there_is_has_a_golden_text(played: Played) -> None:
    missing = [site for site in made() if not any((site.file, n) in played.sites for n in site.lines)]
    assert not missing, "\n".join(["no script of tests/errors/golden makes these:", *map(str, missing)])


@dataclass(frozen=True)
class Made:
    """A place in the code that makes a diagnostic."""

    file: str
    lines: range

    def __str__(self) -> str:
        return f"  {Path(self.file).relative_to(PACKAGE)}:{self.lines[0]}"


def made() -> Iterator[Made]:
    """Every call of a class of diagnostics in the package."""
    kinds = {kind.__name__ for kind in _kinds(caesura.errors.CaesuraError)}
    texts = {file: file.read_text() for file in sorted(PACKAGE.rglob("*.py"))}
    for file in (file for file, text in texts.items() if "Error(" in text):
        for call in ast.walk(ast.parse(texts[file])):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in kinds:
                yield Made(str(file), range(call.lineno, (call.end_lineno or call.lineno) + 1))


def _kinds(kind: type) -> Iterator[type]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
