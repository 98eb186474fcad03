"""Every notebook runs from top to bottom, and what its cells show is HTML or text."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import jupytext
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.py"))


def shown(cell: str, names: dict[str, Any]) -> object:
    """Runs a cell, and gives the value of its last expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "notebook.py", "exec", dont_inherit=True), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "notebook.py", "eval"), names)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda f: f.stem)
def test_a_notebook_runs_and_shows_its_streams(file: Path) -> None:
    notebook = jupytext.read(file)
    assert notebook.cells[0].cell_type == "markdown"
    names: dict[str, Any] = {"__name__": file.stem}
    values = [shown(cell.source, names) for cell in notebook.cells if cell.cell_type == "code"]
    pages = [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]
    assert pages
    assert all("<" in page for page in pages)
