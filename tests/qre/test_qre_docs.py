"""The code blocks of the guide run, in order, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_guide_runs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "qre.md").read_text()
    scope: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, scope)
