"""What a remedy names is there: members of cz, methods, and arguments."""

from __future__ import annotations

import ast
import re
from functools import reduce
from pathlib import Path

import pytest
from golden_scripts import ALL, Golden

import caesura as cz

FOREIGN = {"getOrCreate", "sort_by", "upgrade_table_version", "descriptor_set_out"}
FOREIGN |= {"wal_level", "spark_driver_memory"}
"""What a remedy writes in another library's or tool's words."""
NAMED = {"last_mph", "right_mph", "seg_key", "ts", "id", "In", "Out", "bid", "bids"}
NAMED |= {"clicks", "twice"}
"""Columns, types and streams that a remedy gives a name to."""


def _told(golden: Golden, pattern: str) -> set[str]:
    return set(re.findall(pattern, golden.wanted.partition("\n")[2]))


def _of_the_package() -> tuple[set[str], set[str]]:
    """Names of all methods without an underscore, and of all arguments and fields."""
    methods, arguments = set(), set()
    for file in Path(cz.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.FunctionDef(name=name):
                    methods.add(name)
                case ast.arg(arg=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    arguments.add(name)
    return {name for name in methods if not name.startswith("_")}, arguments


METHODS, ARGUMENTS = _of_the_package()


@pytest.mark.parametrize("golden", ALL, ids=str)
def test_a_remedy_names_what_there_is(golden: Golden) -> None:
    for path in _told(golden, r"\bcz\.(\w+(?:\.\w+)*)"):
        assert reduce(getattr, path.split("."), cz) is not None
    assert _told(golden, r"(?<!\w)\.(\w+)\(") <= METHODS | FOREIGN
    assert _told(golden, r"(?<![\w.])(\w+)=(?!=)") <= ARGUMENTS | FOREIGN | NAMED
