"""Types of expressions, known when the plan is built; one table of rules serves typing and evaluation.

>>> from caesura.expr.nodes import col
>>> type_of(col("a") / 2, pa.schema([("a", pa.int64())]))
DataType(double)
>>> type_of(col("aa"), pa.schema([("a", pa.int64())]))
Traceback (most recent call last):
caesura.errors.ExprError: no column 'aa'.
Did you mean 'a'? There are: a.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import ExprError, closest, lacking
from caesura.expr import (
    rules_bits,
    rules_dates,
    rules_hashes,
    rules_json,
    rules_logic,
    rules_math,
    rules_nested,
    rules_pieces,
    rules_regex,
    rules_sets,
    rules_text,
    rules_time,
)
from caesura.expr.calls import call_plan
from caesura.expr.casts import cast_kernel
from caesura.expr.faults import Attempt
from caesura.expr.lambdas import Each, ListFold, lambda_type
from caesura.expr.nodes import (
    AggregateValue,
    Alias,
    Apply,
    Boundary,
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Expr,
    Field,
    Member,
)
from caesura.expr.rewrite import children
from caesura.expr.rules import Rule, TypedNode, Types, checking, wrong
from caesura.expr.types import TICKS, describe, kind

RULES: dict[str, Rule] = {
    **rules_logic.RULES,
    **rules_math.RULES,
    **rules_bits.RULES,
    **rules_sets.RULES,
    **rules_text.RULES,
    **rules_pieces.RULES,
    **rules_regex.RULES,
    **rules_json.RULES,
    **rules_hashes.RULES,
    **rules_time.RULES,
    **rules_dates.RULES,
    **rules_nested.RULES,
}
for _name in ("contains", "contains_each"):
    RULES[_name] = rules_nested.or_array(RULES[_name])


def type_of(expr: Expr, schema: pa.Schema, *, time: pa.DataType = TICKS) -> pa.DataType:
    """The type of the expression over rows of this schema, or what is wrong with it."""
    match expr:
        case Column():
            return column_type(expr, schema)
        case Constant():
            return expr.type
        case Boundary():
            return time
        case Each() | ListFold():
            return lambda_type(expr, schema, partial(type_of, time=time))
    return plan_node(expr, [type_of(c, schema, time=time) for c in children(expr)]).type


def column_type(expr: Column, schema: pa.Schema) -> pa.DataType:
    """The column's type in the schema; a name there twice means neither."""
    found = schema.get_all_field_indices(expr.name)
    if len(found) == 1:
        return schema.field(found[0]).type
    if isinstance(expr, AggregateValue):
        raise ExprError(
            f"'{expr.name}' is computed over many rows, and this is a value of one.",
            remedy="Compute it in agg(...) of a window first, then go on with its column.",
        )
    if found:
        raise ExprError(
            f"column '{expr.name}' is there {len(found)} times.", remedy="Rename all but one of them."
        )
    missing = ExprError(f"no column '{expr.name}'.", remedy=closest(expr.name, schema.names))
    raise lacking(missing, expr.name)


def plan_node(expr: Expr, types: Types) -> TypedNode:
    """The typed form of an inner node, given its children's types."""
    match expr:
        case Apply():
            return RULES[expr.name](expr, types)
        case Cast():
            return _cast_plan(expr, types)
        case Alias():
            return TypedNode(types[0], tuple(types), lambda a: a)
        case Field():
            return _field_plan(expr, types)
        case Member():
            return rules_logic.member_plan(expr, types)
        case Case():
            return rules_logic.case_plan(expr, types)
        case Call():
            return call_plan(expr, types)
    raise AssertionError(expr)


def _cast_plan(expr: Cast, types: Types) -> TypedNode:
    kernel = cast_kernel(types[0], expr.type)
    if kernel is None:
        wanted = f"a type that converts to {describe(expr.type)}"
        raise wrong(expr, wanted, types, remedy="Convert in two steps, through 'string' or 'timestamp'.")
    attempt = Attempt(kernel)
    return (
        TypedNode(expr.type, tuple(types), kernel)
        if expr.attempts
        else checking(expr.type, tuple(types), attempt)
    )


def _field_plan(expr: Field, types: Types) -> TypedNode:
    if kind(types[0]) != "struct":
        raise wrong(expr, "a struct", types, remedy="Only structs have fields; use col('name') for a column.")
    index = types[0].get_field_index(expr.name)
    if index < 0:
        known = [f.name for f in types[0].fields]
        raise ExprError(f"in '{expr}': no field '{expr.name}'.", remedy=closest(expr.name, known))
    return TypedNode(types[0].field(index).type, tuple(types), lambda a: pc.struct_field(a, [index]))
