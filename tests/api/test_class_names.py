"""Two classes never share a name, so that a name in a trace or a search leads to one file."""

from __future__ import annotations

import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import caesura

SRC = Path(caesura.__file__).parent
PUBLIC_PAIRS = {
    # `caesura.runtime.Query` runs a plan; `caesura.qre.Query` is the papers' word for a pattern with values.
    # Both are public, and users write the second as `qre.Query`.
    "Query": {"runtime/query/query.py", "qre/language/query.py"},
    # What the classes within a dialect are called is for sqlglot to say.
    "Tokenizer": {"expr/sql_text.py", "sql/match_text.py"},
    "Parser": {"expr/sql_text.py", "sql/match_text.py", "sql/strict.py", "sql/text.py"},
}


def test_no_two_classes_share_a_name() -> None:
    homes = defaultdict(list)
    for path in sorted(SRC.rglob("*.py")):
        for name in re.findall(r"^\s*class (\w+)[(:]", path.read_text(), re.MULTILINE):
            homes[name].append(path.relative_to(SRC).as_posix())
    shared = {name: set(files) for name, files in homes.items() if len(files) > 1}
    assert shared == PUBLIC_PAIRS


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("caesura.audit", "Finding", "AuditFinding"),
        ("caesura.audit", "Report", "AuditReport"),
        ("caesura.contracts", "Pace", "SourceRate"),
        ("caesura.events", "KEPT", "NO_NEW_END"),
        ("caesura.udm", "Finding", "ModuleFinding"),
        ("caesura.udm", "Report", "ModuleReport"),
    ],
)
def test_a_former_name_of_a_public_member_works_and_warns(module: str, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now .*{new}"):
        found = getattr(import_module(module), old)
    assert found is getattr(import_module(module), new)


def test_a_room_has_no_names_but_its_own() -> None:
    with pytest.raises(AttributeError, match=r"'caesura\.udm' has no attribute 'Missing'"):
        import_module("caesura.udm").Missing  # noqa: B018
