"""The notebooks of `examples/notebooks` as pages: run when the pages are built, with what cells show."""

from __future__ import annotations

import ast
import contextlib
import io
from pathlib import Path
from typing import Any

import jupytext

NOTEBOOKS = Path(__file__).parents[1] / "examples" / "notebooks"


def rendered(name: str) -> str:
    """A notebook as MyST: its texts, its code, and below each cell what it prints and shows."""
    names: dict[str, Any] = {"__name__": name}
    parts = []
    for cell in jupytext.read(NOTEBOOKS / f"{name}.py").cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.source.strip():
            parts += [f"```python\n{cell.source}\n```", *_output(cell.source, names)]
    return "\n\n".join(parts) + "\n"


def _output(cell: str, names: dict[str, Any]) -> list[str]:
    tree = ast.parse(cell)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "notebook.py", "exec", dont_inherit=True), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "notebook.py", "eval"), names)
    shown = [f"```text\n{printed.getvalue()}```"] if printed.getvalue() else []
    if type(value).__module__.startswith("plotly"):
        return [*shown, "*A figure of plotly, which needs a notebook to be looked at.*"]
    if hasattr(value, "_repr_html_"):
        return [*shown, f'````{{raw}} html\n<div class="shown">{value._repr_html_()}</div>\n````']
    return [*shown, f"```text\n{value!r}\n```"] if value is not None else shown
