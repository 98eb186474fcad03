"""Where dialects differ in what functions mean: a query of Flink's as the same query of Spark's.

Whole numbers divide to whole numbers, AVG of them is one, a REGEXP_EXTRACT without a match is null, and two
columns of one name are told apart. What depends on types is marked here, and decided where types are known.

>>> from caesura.sql.text import parsed
>>> in_dialect(parsed("SELECT SPLIT_INDEX(url, '.', 2) AS dir FROM bid"), "flink").sql()
"SELECT GET(SPLIT(url, '\\\\.'), 2) AS dir FROM bid"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, get_args

from sqlglot import exp

from caesura.errors import PlanError, closest
from caesura.expr.sql_text import WHOLE, miscounted
from caesura.sql.strict import LENGTH
from caesura.sql.text import refused

SqlFlavour = Literal["spark", "flink"]
ARRIVAL = "arrival"
"""The mark of PROCTIME()."""


def known_dialect(name: str) -> SqlFlavour:
    """A dialect by its name."""
    for known in get_args(SqlFlavour):
        if known == name:
            return known  # type: ignore[no-any-return]
    raise PlanError(f"there is no dialect '{name}'.", remedy=closest(name, get_args(SqlFlavour)))


def refuse_lengths(tree: exp.Query, text: str, dialect: str) -> None:
    """Refuses VARCHAR(3) where it cuts texts, as in Flink; Spark takes it for STRING."""
    for node in tree.find_all(exp.DataType):
        if known_dialect(dialect) == "flink" and node.meta.get(LENGTH):
            problem = "a text of a length cuts what is longer, and is not known here"
            raise refused(node, text, problem, "Write STRING; cut texts with SUBSTRING(s, 1, 3).")


def in_dialect(tree: exp.Query, dialect: str, text: str = "") -> exp.Query:
    """A query whose functions mean here what they mean in its dialect; refuses arguments they have not."""
    if known_dialect(dialect) == "flink":
        for node in list(tree.walk()):
            name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
            if isinstance(node, exp.Div) or name.split(" ")[-1] == "avg":  # FINAL avg is one name
                node.meta[WHOLE] = True
            if isinstance(node, exp.Anonymous) and name in _FLINK:
                made, takes, fewest = _FLINK[name]
                if not fewest <= len(node.expressions) <= len(takes):
                    count = f"{fewest} to {len(takes)}" if fewest < len(takes) else str(fewest)
                    error = miscounted(name, takes, count, len(node.expressions))
                    raise refused(node, text, error.problem, error.remedy)
                node.replace(made(node))
            if isinstance(node, exp.DataType) and node.this in _STAMPS:
                node.set("expressions", None)
    return tree


_STAMPS = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPLTZ, exp.DataType.Type.TIMESTAMPNTZ)


def _split_index(node: exp.Anonymous) -> exp.Expr:
    """The part at a place that counts from 0; null where there is none."""
    text, separator, place = node.expressions
    if isinstance(separator, exp.Literal) and separator.is_string:
        separator = exp.Literal.string(re.escape(separator.name))
    parts = exp.Anonymous(this="SPLIT", expressions=[text, separator])
    return exp.Anonymous(this="GET", expressions=[parts, place])


def _regexp_extract(node: exp.Anonymous) -> exp.Expr:
    text, pattern = node.expressions[:2]
    matches = exp.RegexpLike(this=text.copy(), expression=pattern.copy())
    return exp.Case(ifs=[exp.If(this=matches, true=node.copy())])


def _proctime(node: exp.Anonymous) -> exp.Expr:
    """When a row came; where it is known, see `Relation.value`, it is where the row starts."""
    made = exp.Anonymous(this="start", expressions=[])
    made.meta.update({**node.meta, ARRIVAL: True})
    return made


_FLINK: dict[str, tuple[Callable[[exp.Anonymous], exp.Expr], tuple[str, ...], int]] = {
    "proctime": (_proctime, (), 0),
    "split_index": (_split_index, ("s", "separator", "place"), 3),
    "regexp_extract": (_regexp_extract, ("s", "pattern", "idx"), 2),
}
"""How functions of Flink's are written here, what they take, and how many of it at least."""
