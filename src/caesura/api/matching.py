"""`match_rows`: rows of groups that match a pattern, from what users write to the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from caesura.api import matched
from caesura.errors import ExprError, PlanError
from caesura.expr import Expr
from caesura.expr.nodes import as_column, as_expr, as_predicate
from caesura.expr.types import kind
from caesura.ops.match import Formula, MatchRows, Skip
from caesura.ops.match.node import Shown, kept_in_front
from caesura.ops.match.pattern import RowPattern, variables
from caesura.ops.match.reader import pattern_of
from caesura.ops.match.written import WrittenNames, unknown_variable
from caesura.plan import Node

__all__ = ["Written", "matched", "matching"]

Written = Mapping[str, Any]
ROWS_FORMS = "Write 'one', 'all', 'all without empty' or 'all with unmatched'."
SKIP_FORMS = "Write 'past last row', 'to next row', 'to first A' or 'to last A'."


def matching(
    source: Node,
    group: tuple[str, ...],
    pattern: str | RowPattern,
    *,
    define: Written,
    measures: Written,
    rows: Shown,
    skip: str | Skip,
    within: int | None,
    order: Sequence[str],
    subsets: Mapping[str, Sequence[str]],
) -> MatchRows:
    """The step that matches rows of groups."""
    tree = pattern_of(pattern) if isinstance(pattern, str) else pattern
    names: dict[str, tuple[str, ...]] = {name: (name,) for name in variables(tree)}
    for name, of in subsets.items():
        names[name.upper()] = tuple(member for one in of for member in _known(one, names))
    if rows not in get_args(Shown):
        raise PlanError(f"there is no rows={rows!r}.", remedy=ROWS_FORMS)
    written = WrittenNames(source.schema, names)
    for name in define:
        _known(name, dict.fromkeys(variables(tree), ()))
    return MatchRows(
        inputs=(source,),
        group=group,
        order=(order,) if isinstance(order, str) else tuple(order),
        pattern=tree,
        define=tuple((name.upper(), _condition(written, name, one, source)) for name, one in define.items()),
        measures=tuple((name, _formula(written, one, _measure)) for name, one in measures.items()),
        shown=rows,
        skip=skip if isinstance(skip, Skip) else _skip(skip, names),
        within=within,
    )


def _known(name: object, names: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    if not isinstance(name, str) or name.upper() not in names:
        raise unknown_variable(str(name), names)
    return names[name.upper()]


def _formula(names: WrittenNames, given: object, take: Any) -> Formula:
    if isinstance(given, Formula):
        return given
    return names.formula(take(given))


def _measure(given: object) -> Expr:
    return as_column(given) if isinstance(given, str) else as_expr(given)


def _condition(names: WrittenNames, name: str, given: object, source: Node) -> Formula:
    made = _formula(names, given, as_predicate)
    try:
        of = kind(made.type(source.schema, source.time))
    except ExprError as error:
        error.remedy = kept_in_front(source, error.missing) or error.remedy
        raise
    if of not in ("boolean", "null"):
        raise PlanError(f"define has {made} for {name}, which is no condition.", remedy="Write a comparison.")
    return made


def _skip(text: str, names: Mapping[str, tuple[str, ...]]) -> Skip:
    words = text.lower().removeprefix("to ").split()
    if words == ["past", "last", "row"] or words == ["next", "row"]:
        return Skip("next row" if words[0] == "next" else "past last row")
    if not words or len(words) > 2 or (len(words) == 2 and words[0] not in ("first", "last")):
        raise PlanError(f"there is no skip={text!r}.", remedy=SKIP_FORMS)
    return Skip("first" if words[0] == "first" and len(words) == 2 else "last", _known(words[-1], names))
