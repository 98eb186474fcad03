"""How Sphinx builds these pages: MyST for prose, autodoc for the reference."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from notebook_pages import rendered

project = "Caesura"
author = "the Caesura authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
html_theme = "furo"
html_title = "Caesura"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2c5f7c", "color-brand-content": "#2c5f7c"},
    "dark_css_variables": {"color-brand-primary": "#8ec7e6", "color-brand-content": "#8ec7e6"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
exclude_patterns = ["build"]
html_extra_path = ["llms.txt"]  # the pages for programs that read
myst_heading_anchors = 3
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autosummary_generate = False  # tables only: each name stands on its page
nitpicky = False
napoleon_google_docstring = False
napoleon_use_rtype = False


NOTED = re.compile(r"(^\s*|[.;] )((?:(?:Promises|State|Feedback|Spark)(?:, )?)+)(?=:)")
"""What the notes of a step speak of, to be found at a glance."""


def _plain(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text: code in backticks is code, and stars and bars are themselves."""
    example = False
    for place, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            lines[place] = NOTED.sub(r"\1**\2**", _escaped(line))


def _escaped(line: str) -> str:
    parts = re.split(r"(``[^`]+``|`[^`]+`)", line)
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = "``" + part.strip("`") + "``"
        else:
            parts[place] = re.sub(r"([*|_])(?=\W|$)|(?<=\W)([*|])|^([*|])", r"\\\g<0>", part)
    return "".join(parts)


def _notebook(app: object, page: str, source: list[str]) -> None:
    """A page of notebooks/ is the notebook of that name, run."""
    room, _, name = page.partition("/")
    if room == "notebooks":
        source[0] = rendered(name)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _notebook)
    app.connect("autodoc-process-docstring", _plain, priority=400)  # before napoleon reads the sections
