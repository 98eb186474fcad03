"""Names that people bring from PySpark to expressions: what they are here, or what to do instead.

>>> from caesura.expr.nodes import col
>>> col("a").isNull(), col("s").substr(1, 2)
(Expr(a IS NULL), Expr(substring(s, 1, 2)))
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from caesura.errors import NoSuchNameError

METHODS = {
    "astype": "cast",
    "bitwiseAND": "bit_and",
    "bitwiseOR": "bit_or",
    "bitwiseXOR": "bit_xor",
    "eqNullSafe": "eq_null_safe",
    "getField": "field",
    "isNaN": "isnan",
    "isNotNull": "is_not_null",
    "isNull": "is_null",
    "name": "alias",
    "notnull": "is_not_null",
    "nvl": "if_null",
    "substr": "substring",
}
"""Methods of PySpark's columns that have another name here."""
INSTEAD = {
    "asc": "Rows of a stream have no order; .top(10, by='v', descending=False) takes the least.",
    "desc": "Rows of a stream have no order; .top(10, by='v') takes the greatest.",
    "over": "Write a window: .group_by('id').hopping('10m', every='1m').agg(...).",
    "when": "Begin with cz.when(condition, value).",
    "otherwise": "Begin with cz.when(condition, value).",
    "startsWith": "Write .startswith('a').",
    "endsWith": "Write .endswith('a').",
}


def meant(name: str) -> str:
    """The method that a name of PySpark's means here; refuses any other name."""
    if name.startswith("_"):
        raise AttributeError(name)
    if name in METHODS:
        return METHODS[name]
    from caesura.expr.nodes import Expr

    known = [one for one in dir(Expr) if not one.startswith("_")]
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"Did you mean '.{near[0]}'? " if near else ""
    remedy = INSTEAD.get(name, f"{guess}See caesura.Expr and caesura.functions for what there is.")
    raise NoSuchNameError(f"an expression has no '{name}'.", remedy=remedy)


def closest_function(name: str, known: Iterable[str]) -> str:
    """A remedy for the name of a function that is not there."""
    near = difflib.get_close_matches(name, list(known), n=1)
    guess = f"Did you mean '{near[0]}'? " if near else ""
    return f"{guess}dir(caesura.functions) lists what there is; aggregates are in caesura itself."
