"""The slow way through an expression, taken when the fast one has met a value without an answer.

It looks at each row as SQL reads it, and says for which rows there is no value, and why.

>>> from caesura.expr.nodes import col, when
>>> batch = pa.record_batch({"a": pa.array([2**62, 5])})
>>> careful(when(col("a") < 9, col("a") * 4).otherwise(0), batch)[0].to_pylist()
[0, 20]
>>> careful(col("a") * 4, batch)[1]
{0: "'a * 4' of (4611686018427387904, 4) is no bigint"}
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from caesura.expr.arrays import keep_where, repeat
from caesura.expr.casts import cast_kernel
from caesura.expr.faults import Attempt, CallFault, RowError, shown, written
from caesura.expr.lambdas import Each, ElementRows, ListFold, computed, inner_schema
from caesura.expr.nodes import Alias, Apply, Boundary, Call, Case, Cast, Column, Constant, Expr
from caesura.expr.planning import plan_node, type_of
from caesura.expr.rewrite import children
from caesura.expr.rules import TypedNode
from caesura.expr.types import TICKS, describe

I64 = npt.NDArray[np.int64]
Reasons = dict[int, str]
"""By row, why there is no value."""


def careful(
    expr: Expr,
    batch: pa.RecordBatch,
    le: I64 | None = None,
    re: I64 | None = None,
    *,
    time: pa.DataType = TICKS,
) -> tuple[pa.Array, Reasons]:
    """The expression's column, null where there is no value, and the reasons for those."""
    return _Rows(batch, le, re, time).value(expr)


def refuse(
    expr: Expr,
    batch: pa.RecordBatch,
    le: I64 | None,
    re: I64 | None,
    time: pa.DataType,
    fault: CallFault | None = None,
) -> pa.Array:
    """The column after all, where no row needs the value that there is not; else says which do."""
    made, reasons = careful(expr, batch, le, re, time=time)
    if not reasons:
        return made
    rows = np.array(sorted(reasons), np.int64)
    texts = [reasons[row] for row in rows.tolist()]
    if fault is not None:
        raise RowError(fault.problem, remedy=fault.remedy).of(rows, texts) from fault.__cause__
    problem = f"{texts[0]}; the row is ({shown(batch, int(rows[0]))})."
    raise RowError(problem, remedy=_remedy(texts[0])).of(rows, texts) from None


def _remedy(reason: str) -> str:
    ways = "Cast it to a wider type first"
    written = reason.partition("' of ")[0]
    if written.endswith("]"):
        ways = "Write get(a, i) for a null there"
    elif written.startswith("'element_at("):
        ways = "Write try_element_at for a null there"
    elif written.startswith(("'slice(", "'map(")):
        ways = "Leave such rows out with where"
    if reason.startswith("'CAST("):
        ways = "Write .try_cast(...) for a null there"
    elif reason.startswith("'to_timestamp("):
        ways = "Write .try_to_timestamp(...) for a null there"
    elif any(f" {sign} " in reason.partition("' of ")[0] for sign in "+-*"):
        ways = "Cast to decimal(38,0) first, or write try_add, try_subtract, try_multiply for a null there"
    return f"{ways}; or keep such rows in the late table: put .on_bad('late') behind the step."


class _Rows:
    """Some rows, and what an expression is for each."""

    def __init__(self, batch: pa.RecordBatch, le: I64 | None, re: I64 | None, time: pa.DataType) -> None:
        self.batch, self.le, self.re, self.time = batch, le, re, time

    def take(self, rows: I64) -> _Rows:
        le, re = (None if t is None else t[rows] for t in (self.le, self.re))
        return _Rows(self.batch.take(pa.array(rows)), le, re, self.time)

    def type(self, expr: Expr) -> pa.DataType:
        return type_of(expr, self.batch.schema, time=self.time)

    def value(self, expr: Expr) -> tuple[pa.Array, Reasons]:
        match expr:
            case Column() | Boundary():
                from caesura.expr.evaluation import evaluate

                return evaluate(expr, self.batch, self.le, self.re, time=self.time), {}
            case Constant():
                return repeat(expr.scalar, self.batch.num_rows), {}
            case Alias():
                return self.value(expr.arg)
            case Case():
                return self._case(expr)
            case Apply(name="coalesce"):
                return self._coalesce(expr)
            case Apply(name="and" | "or"):
                return self._logic(expr)
            case Call():
                return self._call(expr)
            case Each() | ListFold():
                return self._lambda(expr)
        return self._strict(expr)

    def _lambda(self, expr: Each | ListFold) -> tuple[pa.Array, Reasons]:
        """A row has no value if one of its elements has none."""
        typed = partial(type_of, time=self.time)
        inner = inner_schema(expr, self.batch.schema, typed)

        def on(part: Expr, rows: ElementRows) -> tuple[pa.Array, Reasons]:
            return _Rows(*rows, self.time).value(part)

        rows = ElementRows(self.batch, self.le, self.re)
        made, reasons = computed(expr, rows, self.type(expr), inner, on, _softly)
        return keep_where(pa.array(~np.isin(np.arange(len(made)), list(reasons))), made), reasons

    def _over(self, expr: Expr, rows: I64, type: pa.DataType) -> tuple[pa.Array, Reasons]:
        """The value over some of the rows, as another type."""
        made, reasons = self.take(rows).value(expr)
        made, more = _converted(expr, made, type)
        return made, {int(rows[at]): why for at, why in (more | reasons).items()}

    def _case(self, expr: Case) -> tuple[pa.Array, Reasons]:
        shared = self.type(expr)
        todo, parts, reasons = np.arange(self.batch.num_rows), [], Reasons()
        for condition, value in expr.branches:
            made, bad = self._over(condition, todo, pa.bool_())
            reasons |= bad
            hit = np.array(pc.fill_null(made, False)) & ~np.isin(todo, list(bad))
            parts.append((todo[hit], *self._over(value, todo[hit], shared)))
            todo = todo[~hit & ~np.isin(todo, list(bad))]
        parts.append((todo, *self._over(expr.default, todo, shared)))
        return self._put([(rows, made) for rows, made, _ in parts], shared), _joined(
            reasons, *(bad for *_, bad in parts)
        )

    def _coalesce(self, expr: Apply) -> tuple[pa.Array, Reasons]:
        shared = self.type(expr)
        todo, parts, reasons = np.arange(self.batch.num_rows), [], Reasons()
        for arg in expr.args:
            made, bad = self._over(arg, todo, shared)
            reasons |= bad
            there = np.array(pc.is_valid(made))
            parts.append((todo[there], made.filter(pa.array(there))))
            todo = todo[~there & ~np.isin(todo, list(bad))]
        return self._put(parts, shared), reasons

    def _logic(self, expr: Apply) -> tuple[pa.Array, Reasons]:
        """A side that decides does so whatever the other is."""
        every = np.arange(self.batch.num_rows)
        (left, lost), (right, missed) = (self._over(arg, every, pa.bool_()) for arg in expr.args)
        decisive, kleene = (False, pc.and_kleene) if expr.name == "and" else (True, pc.or_kleene)
        made = kleene(left, right)
        return made, {at: why for at, why in (missed | lost).items() if made[at].as_py() is not decisive}

    def _operands(self, expr: Expr) -> tuple[TypedNode, list[pa.Array], Reasons]:
        """How an expression is computed, what it is computed from, and the rows that lack some of it."""
        plan = plan_node(expr, [self.type(c) for c in children(expr)])
        args, reasons = [], Reasons()
        for child, type in zip(children(expr), plan.operands, strict=True):
            made, bad = self._over(child, np.arange(self.batch.num_rows), type)
            args.append(made)
            reasons |= bad
        return plan, args, reasons

    def _strict(self, expr: Expr) -> tuple[pa.Array, Reasons]:
        plan, args, reasons = self._operands(expr)
        good = np.setdiff1d(np.arange(self.batch.num_rows), list(reasons))
        taken = [arg.take(pa.array(good)) for arg in args]
        made, bad = _answered(expr, plan, taken)
        return self._put([(good, made)], plan.type), reasons | {int(good[at]): why for at, why in bad.items()}

    def _call(self, expr: Call) -> tuple[pa.Array, Reasons]:
        plan, args, reasons = self._operands(expr)
        parts = []
        for row in range(self.batch.num_rows):
            if row in reasons:
                continue
            try:
                parts.append((np.array([row]), plan.kernel(1, *(arg.slice(row, 1) for arg in args))))
            except CallFault as fault:
                reasons[row] = fault.problem.rstrip(".")
        return self._put(parts, plan.type), reasons

    def _put(self, parts: list[tuple[I64, pa.Array]], type: pa.DataType) -> pa.Array:
        """Values at their rows, null elsewhere."""
        at = np.full(self.batch.num_rows, -1, np.int64)
        held = np.concatenate([rows for rows, _ in parts] or [np.zeros(0, np.int64)])
        at[held] = np.arange(len(held))
        values = pa.concat_arrays([*(made for _, made in parts), pa.nulls(0, type)])
        return values.take(pa.array(at, mask=at < 0))


def _softly(made: pa.Array, type: pa.DataType) -> pa.Array:
    return _converted(Constant(None, type), made, type)[0]


def _joined(*reasons: Reasons) -> Reasons:
    return {at: why for some in reasons for at, why in some.items()}


def _converted(expr: Expr, made: pa.Array, type: pa.DataType) -> tuple[pa.Array, Reasons]:
    if made.type == type:
        return made, {}
    convert = cast_kernel(made.type, type)
    assert convert is not None
    attempt = Attempt(convert)
    done = attempt(made)
    return done, _reasons(expr, attempt, done, [made], type)


def _answered(expr: Expr, plan: TypedNode, args: list[pa.Array]) -> tuple[pa.Array, Reasons]:
    if plan.attempt is None:
        made = plan.kernel(*args)
        return made if made.type == plan.type else made.cast(plan.type), {}
    made = plan.attempt(*args)
    return made, _reasons(expr, plan.attempt, made, args, plan.type)


def _reasons(
    expr: Expr, attempt: Attempt, made: pa.Array, args: list[pa.Array], type: pa.DataType
) -> Reasons:
    if not made.null_count:
        return {}
    text = f"'{expr}'" if isinstance(expr, (Apply, Cast)) else f"'CAST({expr} AS {describe(type).upper()})'"
    found = np.flatnonzero(np.array(attempt.refused(made, args)))
    given = [arg.take(pa.array(found)) for arg in args]
    return {
        int(row): f"{text} of ({', '.join(written(arg[i]) for arg in given)}) is no {describe(type)}"
        for i, row in enumerate(found)
    }
