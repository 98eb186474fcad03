"""Drawn tables as the rows that oracles take and give."""

from __future__ import annotations

from typing import Any

from caesura.events import Page, parse
from caesura.testing.oracles.rows import Rows, same
from caesura.testing.spec import plain_rows


def rows(text: str) -> Rows:
    """The rows of a drawn history."""
    items = parse(text)
    names = next((item.schema.names for item in items if isinstance(item, Page)), [])
    return plain_rows(items, names)


def bag(some: Rows) -> list[Any]:
    """Rows in a form that compares as a bag."""
    return sorted(((le, re, same(p)) for le, re, p in some), key=repr)


def assert_same(got: Rows, drawn: str) -> None:
    """Fails unless the rows are the drawn ones, as bags."""
    assert bag(got) == bag(rows(drawn))
