"""What to write, in SQL: remedies of steps and expressions, which speak of Python, as a query has them.

>>> in_sql("Cast the column, for example col(...).cast('double'), or count it instead.")
'Cast the column, for example CAST(... AS DOUBLE), or count it instead.'
>>> in_sql("Name the columns: by=['v'].")
'docs/sql.md says how it is written in SQL.'
"""

from __future__ import annotations

import re

PYTHON = re.compile(r"\b(cz|caesura|col|lit|when)\b *[.(]|\.\w+\(|\w=|\bin Python\b")
"""What no query has: calls of Python, arguments by name."""
ELSE = "docs/sql.md says how it is written in SQL."
FORMS = (
    (r"(?:\bcol\([^()]*\))?\.cast\('([^']+)'\)", lambda found: f"CAST(... AS {found[1].upper()})"),
    (r"\bcol\('(\w+)'\)", lambda found: found[1]),
    (r"\.try_cast\(\.\.\.\)", lambda found: "TRY_CAST(...)"),
    (r"(?<![\w)])\.(\w+)\(\)", lambda found: f"{found[1]}(...)"),
    (
        r"Write it with col and the functions of caesura\.functions, or compute it before\.",
        lambda found: ELSE,
    ),
    (r"caesura\.functions lists those that there are\.", lambda found: "docs/sql.md says which there are."),
    (r"^Write \.group_by.*\.agg.*", lambda found: "It stands in SELECT or HAVING; WHERE is of single rows."),
    (r"^Join with how='semi' instead\.$", lambda found: "Write EXISTS (SELECT 1 FROM ... WHERE ...)."),
)
"""Python's way, and that of SQL."""


def in_sql(remedy: str) -> str:
    """A remedy for a query."""
    for form, written in FORMS:
        remedy = re.sub(form, written, remedy)
    if not PYTHON.search(remedy):
        return remedy
    kept = [one for one in re.split(r"(?<=\.) ", remedy) if not PYTHON.search(one)]
    return " ".join(kept) or ELSE
