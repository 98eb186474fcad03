"""Comparison, three-valued logic and null handling, as Spark SQL has them.

NaN equals NaN and is above every number; -0.0 equals 0.0; a comparison with null is null.

>>> nan = float("nan")
>>> compare("greater", pa.float64())(pa.array([nan, 1.0, None]), pa.array([5.0, nan, 1.0])).to_pylist()
[True, False, None]
"""

from __future__ import annotations

from functools import reduce
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.nested import holds_map
from caesura.events.order import in_key_order, ranks
from caesura.expr.arrays import keep_where, only_where, repeat, surely
from caesura.expr.casts import cast_kernel
from caesura.expr.nested import spread
from caesura.expr.nodes import Apply, Case, Member
from caesura.expr.rules import Datum, Kernel, Rule, TypedNode, Types, shared_type, want, wrong
from caesura.expr.types import common_type, comparison_type, kind, plain

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_BOOLEAN = pa.bool_()


def compare(name: str, type: pa.DataType) -> Kernel:
    """The comparison of two columns of one type."""
    if kind(type) in ("list", "struct"):
        return _nested(name)
    return _FLOAT[name] if kind(type) == "float" else getattr(pc, name)


def _nested(name: str) -> Kernel:
    """Lists and structs compare by their canonical order; a null inside is a value."""

    def kernel(a: Datum, b: Datum) -> Datum:
        sides = [in_key_order(side) for side in spread(a, b)]
        order = ranks(pa.concat_arrays(sides))
        left, right = pa.array(order[: len(sides[0])]), pa.array(order[len(sides[0]) :])
        return keep_where(pc.and_(sides[0].is_valid(), sides[1].is_valid()), getattr(pc, name)(left, right))

    return kernel


def _number(datum: Datum) -> bool:
    # A constant that is a number needs no NaN test: this is the common comparison, and three times faster.
    return isinstance(datum, pa.Scalar) and datum.is_valid and not isnan(datum.as_py())


def _equal(a: Datum, b: Datum) -> Datum:
    plainly = pc.equal(a, b)
    return plainly if _number(a) or _number(b) else pc.or_(plainly, pc.and_(pc.is_nan(a), pc.is_nan(b)))


def _less(a: Datum, b: Datum) -> Datum:
    if _number(a):
        return pc.invert(pc.less_equal(b, a))  # true for NaN, which is not below a
    plainly = pc.less(a, b)
    return plainly if _number(b) else pc.or_(plainly, pc.and_not(pc.is_nan(b), pc.is_nan(a)))


def _less_equal(a: Datum, b: Datum) -> Datum:
    if _number(a):
        return pc.invert(pc.less(b, a))
    plainly = pc.less_equal(a, b)
    return plainly if _number(b) else pc.or_(plainly, pc.is_nan(b))


_FLOAT: dict[str, Kernel] = {
    "equal": _equal,
    "not_equal": lambda a, b: pc.invert(_equal(a, b)),
    "less": _less,
    "less_equal": _less_equal,
    "greater": lambda a, b: _less(b, a),
    "greater_equal": lambda a, b: _less_equal(b, a),
}


def _operand_type(node: Apply | Member, types: Types) -> pa.DataType:
    shared = shared_type(node, types, by=comparison_type, remedy="Cast one side, as in .cast('double').")
    if kind(shared) in ("map", "other") or holds_map(shared):
        raise wrong(node, "values with an order", types, remedy="Compare its values: col('m')['key'].")
    if isinstance(node, Member) and kind(shared) in ("list", "struct"):
        raise wrong(node, "single values", types, remedy="Compare with == and join with | instead.")
    return plain(shared) if kind(shared) != "decimal" else shared


def _comparison(node: Apply, types: Types) -> TypedNode:
    shared = _operand_type(node, types)
    if kind(shared) == "null":
        return TypedNode(_BOOLEAN, (shared, shared), _all_null)
    return TypedNode(_BOOLEAN, (shared, shared), compare(node.name, shared))


def _all_null(*args: Datum) -> Datum:
    return pa.nulls(next(len(a) for a in args if not isinstance(a, pa.Scalar)), _BOOLEAN)


def _null_safe(node: Apply, types: Types) -> TypedNode:
    shared = _operand_type(node, types)
    equal = _all_null if kind(shared) == "null" else compare("equal", shared)

    def kernel(a: Datum, b: Datum) -> Datum:
        both = pc.and_(pc.is_null(a), pc.is_null(b))
        return pc.or_(both, surely(equal(a, b)))

    return TypedNode(_BOOLEAN, (shared, shared), kernel)


def _between(node: Apply, types: Types) -> TypedNode:
    shared = _operand_type(node, types)
    if kind(shared) == "null":
        return TypedNode(_BOOLEAN, (shared,) * 3, _all_null)
    least, most = compare("greater_equal", shared), compare("less_equal", shared)
    return TypedNode(_BOOLEAN, (shared,) * 3, lambda x, lo, hi: pc.and_kleene(least(x, lo), most(x, hi)))


_KLEENE: dict[str, Kernel] = {"and": pc.and_kleene, "or": pc.or_kleene, "not": pc.invert}


def _logic(node: Apply, types: Types) -> TypedNode:
    remedy = "Write a comparison, as in (col('a') > 0); & and | bind tighter than >, so use parentheses."
    want(node, types, ("boolean",), "conditions", remedy=remedy)
    return TypedNode(_BOOLEAN, (_BOOLEAN,) * len(types), _KLEENE[node.name])


def _is_null(node: Apply, types: Types) -> TypedNode:
    test = pc.is_null if node.name == "is_null" else pc.is_valid
    return TypedNode(_BOOLEAN, tuple(types), lambda a: test(a))


def _coalesce(node: Apply, types: Types) -> TypedNode:
    shared = shared_type(node, types)
    return TypedNode(
        shared, (shared,) * len(types), lambda *args: args[0] if len(args) == 1 else pc.coalesce(*args)
    )


def _nullif(node: Apply, types: Types) -> TypedNode:
    shared = _operand_type(node, types)
    out = types[0]
    if kind(shared) == "null":
        return TypedNode(out, tuple(types), lambda a, b: a)
    left, right = cast_kernel(out, shared), cast_kernel(types[1], shared)
    assert left is not None and right is not None
    equal = compare("equal", shared)
    return TypedNode(out, tuple(types), lambda a, b: _blank(equal(_on(left, a), _on(right, b)), a))


def _on(convert: Kernel, datum: Datum) -> Datum:
    return convert(repeat(datum, 1))[0] if isinstance(datum, pa.Scalar) else convert(datum)


def _blank(mask: Datum, values: Datum) -> Datum:
    return pc.if_else(surely(mask), pa.scalar(None, values.type), values)


def _extreme(node: Apply, types: Types) -> TypedNode:
    shared = plain(shared_type(node, types))
    if kind(shared) in ("map", "other") or holds_map(shared):
        raise wrong(node, "values with an order", types, remedy="Take one of its values: col('m')['key'].")
    if kind(shared) == "null" or len(types) == 1:
        return TypedNode(shared, (shared,) * len(types), lambda a, *_: a)
    better = compare("greater_equal" if node.name == "greatest" else "less_equal", shared)

    def pick(a: Datum, b: Datum) -> Datum:
        return pc.coalesce(pc.if_else(better(a, b), a, b), a, b)

    return TypedNode(shared, (shared,) * len(types), lambda *args: reduce(pick, args))


def member_plan(node: Member, types: Types) -> TypedNode:
    """SQL's IN: true when found; when not, null if the list holds a null, else false."""
    given = [v for v in node.values if v.value is not None]
    shared = _operand_type(node, types)
    for value in given:
        shared = _member_type(node, types, shared, value.type)
    if not node.values:
        return TypedNode(_BOOLEAN, (shared,), lambda a: repeat(pa.scalar(False), len(a)))
    if not given or kind(shared) == "null":
        return TypedNode(_BOOLEAN, (shared,), _all_null)
    converters = [(cast_kernel(v.type, shared), v) for v in given]
    values = pa.concat_arrays([c(repeat(v.scalar, 1)) for c, v in converters if c is not None])
    return TypedNode(_BOOLEAN, (shared,), _search(_positive_zero(values), len(given) < len(node.values)))


def _member_type(node: Member, types: Types, shared: pa.DataType, value: pa.DataType) -> pa.DataType:
    wider = comparison_type(shared, value)
    if wider is None:
        raise wrong(
            node, f"values of the column's type, not {value}", types, remedy="Give values of its type."
        )
    return wider


def _search(values: pa.Array, has_null: bool) -> Kernel:
    missing = pa.scalar(None, _BOOLEAN)

    def kernel(array: Any) -> Any:
        found = pc.is_in(_positive_zero(array), value_set=values)
        if has_null:
            return pc.if_else(found, True, missing)
        return pc.if_else(pc.is_valid(array), found, missing) if array.null_count else found

    return kernel


def _positive_zero(array: Any) -> Any:
    # is_in compares bits, and -0.0 has other bits than 0.0.
    return pc.add(array, pa.scalar(0, array.type)) if kind(array.type) == "float" else array


def case_plan(node: Case, types: Types) -> TypedNode:
    """Conditions are boolean; all values share one type."""
    conditions, values = types[:-1:2], [*types[1:-1:2], types[-1]]
    if not all(kind(t) in ("boolean", "null") for t in conditions):
        raise wrong(
            node, "conditions after WHEN", types, remedy="Write a comparison, as in when(col('a') > 0, ...)."
        )
    shared = reduce(_common, values)
    if shared is None:
        raise wrong(node, "values of one type after THEN and ELSE", types, remedy="Cast them to one type.")
    operands = (*((_BOOLEAN, shared) * len(conditions)), shared)
    return TypedNode(shared, operands, _first_true)


def _common(a: pa.DataType | None, b: pa.DataType | None) -> pa.DataType | None:
    return None if a is None else common_type(a, b)


def _first_true(*args: Datum) -> Datum:
    result = args[-1]
    for condition, value in zip(args[-3::-2], args[-2::-2], strict=True):
        constant = isinstance(value, pa.Scalar) and isinstance(condition, pa.Array)
        if constant and isinstance(result, pa.Scalar) and not result.is_valid:
            result = only_where(surely(condition), value)
        else:
            result = pc.if_else(surely(condition), value, result)
    return result


RULES: dict[str, Rule] = {
    **dict.fromkeys(COMPARISONS, _comparison),
    "equal_null_safe": _null_safe,
    "between": _between,
    "and": _logic,
    "or": _logic,
    "not": _logic,
    "is_null": _is_null,
    "is_not_null": _is_null,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": _extreme,
    "least": _extreme,
}
