"""Collects the queries of docs, tests and benchmarks as they are read, each with its tables' columns.

A plugin of pytest, run by hand where queries have been added; it writes ``collected.jsonl`` beside it, one
query a line: ``PYTHONPATH=tests/sql pytest -p collect_queries tests/sql tests/docs/test_docs.py``. What is
refused is not collected, for it is meant to be; nor what is drawn, nor what calls functions of Python.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

import caesura as cz
from caesura.api.stream import Stream
from caesura.expr.sql_read import BEGINS
from caesura.sql import query, script
from caesura.sql.relation import _starts, _time_column
from caesura.sql.text import QueryDialect

KEPT = Path(__file__).parent / "collected.jsonl"
DRAWN = ("test_mutated_queries", "test_nothing_is_passed_over", "test_no_token_is_swallowed", "drawn")
"""Tests whose queries are drawn, or stand in query_corpus.py."""
found: set[str] = set()
plain = query.meaning


def described(stream: Stream) -> dict[str, Any]:
    """The columns of a stream, and what its rows have for time."""
    node = stream.node
    told = _time_column(node) or next((n for n in stream.columns if _starts(node, n)), "")
    kind = "point" if node.properties.points else "forever"
    columns = {one.name: str(one.type) for one in stream.schema}
    return {"columns": columns, "kind": kind, "told": told, "time": str(node.time)}


def statement(tree: exp.Expr, text: str) -> str:
    """The text of one query of a script, on one line where no comment stands in it."""
    start = tree.meta.get(BEGINS, 0)
    ends = [one.start for one in QueryDialect().tokenize(text) if one.token_type == TokenType.SEMICOLON]
    written = text[start : min((end for end in ends if end > start), default=len(text))].strip()
    return written if "--" in written else " ".join(written.split())


def recorded(
    tree: exp.Query, text: str, streams: Any, functions: Any = None, *, dialect: str = "spark"
) -> Stream:
    """The meaning of a query, which is written down where it has one."""
    written = statement(tree, text)
    made = plain(tree, text, streams, functions, dialect=dialect)  # type: ignore[arg-type]
    test = os.environ.get("PYTEST_CURRENT_TEST", "benchmarks/tpch_queries.py").split("::")
    if not functions and not any(word in part for word in DRAWN for part in test):
        words = {word.lower() for word in re.findall(r"\w+", written)}
        tables = {name: described(one) for name, one in streams.items() if name.lower() in words}
        keep({"text": written, "dialect": dialect, "tables": tables, "from": test[0]})
    return made


def keep(line: dict[str, Any]) -> None:
    """Writes down a query that has not been found before."""
    key = line["text"] + line["dialect"]
    if key not in found:
        found.add(key)
        with KEPT.open("a") as file:
            file.write(json.dumps(line) + "\n")


def collect_tpch() -> None:
    """TPC-H's, without waiting for refreshes."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from benchmarks.tpch_data import generated
    from benchmarks.tpch_queries import QUERIES
    from benchmarks.tpch_view import columns_read

    with TemporaryDirectory() as folder:
        tables = generated(0.001, Path(folder))
    for text in QUERIES.values():
        read = columns_read(text, {name: one.schema for name, one in tables.items()})
        cz.sql(text, **{name: cz.table(tables[name].select(some).slice(0, 1)) for name, some in read.items()})


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    KEPT.unlink(missing_ok=True)
    query.meaning = recorded  # type: ignore[assignment]
    script.meaning = recorded  # type: ignore[assignment]
    collect_tpch()
