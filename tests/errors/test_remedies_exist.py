"""What a remedy names is there: members of cz, methods, and arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pytest
from golden_scripts import ALL, Golden

import caesura as cz

FOREIGN = {"getOrCreate", "sort_by", "upgrade_table_version", "descriptor_set_out"}
FOREIGN |= {"wal_level", "spark_driver_memory"}
"""What a remedy writes in another library's or tool's words."""
NAMED = {"last_mph", "right_mph", "seg_key", "ts", "id", "In", "Out", "bid", "bids"}
NAMED |= {"clicks", "twice", "s"}
"""Columns, types and streams that a remedy gives a name to."""


def _told(golden: Golden, pattern: str) -> set[str]:
    return set(re.findall(pattern, golden.wanted.partition("\n")[2]))


@dataclass(frozen=True)
class Names:
    """Methods without an underscore, and arguments and fields, of all the package."""

    methods: set[str]
    arguments: set[str]


@pytest.fixture(scope="module")
def there() -> Names:
    found = Names(set(), set())
    for file in Path(cz.__file__).parent.rglob("*.py"):
        for node in definitions(ast.parse(file.read_text())):
            match node:
                case ast.FunctionDef(name=name):
                    found.methods.add(name)
                    given = (a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg))
                    found.arguments.update(given)
                case ast.AnnAssign(target=ast.Name(id=name)):
                    found.arguments.add(name)
    return Names({name for name in found.methods if not name.startswith("_")}, found.arguments)


def definitions(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements of a file, without what stands within their expressions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            yield node
            yield from definitions(node)


@pytest.mark.parametrize("room", sorted({golden.room for golden in ALL}))
def test_remedies_name_what_there_is(room: str, there: Names) -> None:
    wrong = [f"{g}: {names}" for g in ALL if g.room == room and (names := missing(g, there))]
    assert not wrong, "\n".join(wrong)


def missing(golden: Golden, there: Names) -> set[str]:
    """What a remedy speaks of that is not there."""
    members = _told(golden, r"\bcz\.(\w+(?:\.\w+)*)")
    methods = _told(golden, r"(?<!\w)\.(\w+)\(") - there.methods - FOREIGN
    arguments = _told(golden, r"(?<![\w.])(\w+)=(?!=)") - there.arguments - FOREIGN - NAMED
    return {path for path in members if not is_member(path)} | methods | arguments


def is_member(path: str) -> bool:
    try:
        return reduce(getattr, path.split("."), cz) is not None
    except AttributeError:
        return False
