"""GROUP BY over several sets of keys: ROLLUP, CUBE and GROUPING SETS.

>>> from sqlglot import parse_one
>>> query = parse_one("SELECT 1 FROM t GROUP BY a, ROLLUP (b, c)", dialect="spark")
>>> [[str(key) for key in keys] for keys in key_sets(query.args["group"])]
[['a', 'b', 'c'], ['a', 'b'], ['a']]
"""

from __future__ import annotations

from itertools import combinations, product

from sqlglot import exp

Keys = list[exp.Expr]


def key_sets(group: exp.Group) -> list[Keys]:
    """The sets of keys that rows are grouped by, one after the other."""
    parts = [_sets(one) for one in group.expressions]
    for name in ("rollup", "cube", "grouping_sets"):
        for one in group.args.get(name) or ():
            if isinstance(one, exp.Expr) and one.expressions:
                parts.append(_sets(one))
            else:  # GROUP BY a, b WITH ROLLUP
                parts = [_prefixes(list(group.expressions), every=name == "cube")]
    return [[key for keys in some for key in keys] for some in product(*parts)]


def _sets(node: exp.Expr) -> list[Keys]:
    if isinstance(node, exp.Rollup | exp.Cube):
        return _prefixes(list(node.expressions), every=isinstance(node, exp.Cube))
    if isinstance(node, exp.GroupingSets):
        return [keys for one in node.expressions for keys in _sets(one)]
    return [_keys(node)]


def _prefixes(parts: list[exp.Expr], *, every: bool) -> list[Keys]:
    """All of them, then fewer: from the right, or every choice of them."""
    sizes = range(len(parts), -1, -1)
    chosen = [some for n in sizes for some in (combinations(parts, n) if every else [tuple(parts[:n])])]
    return [[key for one in some for key in _keys(one)] for some in chosen]


def _keys(node: exp.Expr) -> Keys:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this if isinstance(node, exp.Paren) else node]
