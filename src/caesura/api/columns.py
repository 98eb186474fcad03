"""Columns that users name themselves, told apart from options, so that a column may have any name.

A mapping holds nothing but columns. Among keywords, what is an aggregate is a column whatever it is called,
and text in the place of an option is the option.

>>> from caesura.ops.aggregate.kinds import count
>>> columns, options = outputs(({"clip": count()},), {"n": count()}, "agg", {"name": count(), "stamp": "x"})
>>> list(columns), options
(['clip', 'n', 'name'], {'stamp': 'x'})
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from caesura.errors import PlanError
from caesura.expr import Expr, name_of
from caesura.expr.nodes import of_pyspark
from caesura.misuse import shown
from caesura.ops.aggregate.kinds import Aggregate
from caesura.plan import here
from caesura.udm import Use

Output = Aggregate | Use | Expr
"""What a group has one value of: an aggregate, a user-defined one, or what is computed from them."""
Total = Aggregate | Expr
Given = Mapping[str, Output] | Aggregate | Expr | None


def outputs(
    columns: tuple[Given, ...], named: Mapping[str, Any], step: str, options: Mapping[str, Any]
) -> tuple[dict[str, Output], dict[str, Any]]:
    """The columns that a step computes, in order, and its options."""
    for value in (*columns, *named.values(), *options.values()):
        _refuse_pyspark(value, step)
    called = {name: value for name, value in options.items() if isinstance(value, Output)}
    rest = {name: value for name, value in options.items() if name not in called}
    if not isinstance(skewed := rest.get("skewed", False), bool):
        raise PlanError(
            f"skewed={shown(skewed)} is neither True nor False.",
            remedy="Write skewed=True to spread keys with most of the rows over all buckets; a column of "
            "that name is an aggregate, skewed=cz.count().",
        ).at(step, here())
    if rest.get("name"):
        warnings.warn(
            f"{step}(name=...) will be a column: name the step with .named({rest['name']!r}) behind it",
            DeprecationWarning,
            stacklevel=4,
        )
    made: dict[str, Output] = {}
    for given in columns:
        made = together(made, _labelled(given), step)
    return together(made, {**named, **called}, step), rest


def _refuse_pyspark(value: object, step: str) -> None:
    """Refuses an aggregate of PySpark's: the values of a group are computed here."""
    if of_pyspark(value):
        raise PlanError(
            f"{step}(...) got a column of PySpark, and aggregates are Caesura's own.",
            remedy="Write F.sum('v').alias('t') as t=cz.sum('v'), F.count('*') as cz.count(); the others "
            "have the names that they have in pyspark.sql.functions.",
        ).at(step, here())


def _labelled(given: Given) -> Mapping[str, Any]:
    """Outputs by name: an aggregate's label, an expression's alias; a mapping as it is."""
    if isinstance(given, Aggregate):
        return {given.label: given}
    if isinstance(given, Expr):
        return {name_of(given): given}
    return together(given, {}, "agg")


def together(columns: Mapping[str, Any] | None, named: Mapping[str, Any], step: str) -> dict[str, Any]:
    """The columns of a mapping, then those of keywords."""
    if columns is not None and not isinstance(columns, Mapping):
        raise PlanError(
            f"'{getattr(columns, 'shown', columns)}' gives its column no name.",
            remedy='Give keywords, or a mapping: {"n": cz.count()}.',
        ).at(step, here())
    twice = [name for name in columns or () if name in named]
    if twice:
        raise PlanError(f"the column '{twice[0]}' is given twice.", remedy="Leave one out.").at(step, here())
    return {**(columns or {}), **named}
