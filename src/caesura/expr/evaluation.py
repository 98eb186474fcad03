"""Column-wise evaluation: an expression is planned once and then run on any number of batches.

>>> from caesura.expr.nodes import col
>>> batch = pa.record_batch({"a": pa.array([1, None, 3])})
>>> evaluate(col("a") * 2 + 1, batch).to_pylist()
[3, None, 7]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caesura.errors import ExprError
from caesura.expr.arrays import repeat
from caesura.expr.careful import refuse
from caesura.expr.casts import cast_kernel
from caesura.expr.delimited import of_split
from caesura.expr.faults import Attempt, CallFault, Fault, checked
from caesura.expr.lambdas import Each, ElementRows, ListFold, computed, inner_schema, lambda_type, parts
from caesura.expr.nodes import Boundary, Call, Column, Constant, Expr
from caesura.expr.planning import column_type, plan_node, type_of
from caesura.expr.rewrite import children, strip
from caesura.expr.rules import Kernel, Shared, TypedNode
from caesura.expr.types import TICKS, describe

Ticks = npt.NDArray[np.int64]
Compiled = Callable[..., pa.Array]


class Frame(NamedTuple):
    """What one evaluation reads: a batch and its rows' lifetimes."""

    batch: pa.RecordBatch
    le: Ticks | None
    re: Ticks | None
    once: dict[Hashable, Any]
    """What several expressions over the batch share, such as texts taken apart."""


@dataclass(frozen=True)
class EvaluationStep:
    """A planned sub-expression; `constant` is set when it reads no row."""

    type: pa.DataType
    run: Callable[[Frame], Any]
    constant: pa.Scalar | None = None


def evaluate(
    expr: Expr,
    batch: pa.RecordBatch,
    le: Ticks | None = None,
    re: Ticks | None = None,
    *,
    time: pa.DataType = TICKS,
) -> pa.Array:
    """The expression's column over one batch; for many batches plan once with `compile_expr`."""
    return compile_expr(expr, batch.schema, time=time)(batch, le, re)


def compile_expr(expr: Expr, schema: pa.Schema, *, time: pa.DataType = TICKS) -> Compiled:
    """A function (batch, le=None, re=None) -> column, with types, casts and constants settled.

    The column has exactly the type `type_of` names and one value for each row of the batch.
    """
    make = _maker(expr, schema, time)
    return lambda batch, le=None, re=None: make(Frame(batch, le, re, {}))


def compile_all(
    exprs: Sequence[Expr], schema: pa.Schema, *, time: pa.DataType = TICKS
) -> Callable[..., list[pa.Array]]:
    """The same for several expressions, which share what they take apart in the same way."""
    makers = [_maker(expr, schema, time) for expr in exprs]

    def run(batch: pa.RecordBatch, le: Ticks | None = None, re: Ticks | None = None) -> list[pa.Array]:
        frame = Frame(batch, le, re, {})
        return [make(frame) for make in makers]

    return run


def _maker(expr: Expr, schema: pa.Schema, time: pa.DataType) -> Callable[[Frame], pa.Array]:
    step = plan_step(strip(expr), schema, time)

    def run(frame: Frame) -> pa.Array:
        if step.constant is not None:
            return repeat(step.constant, frame.batch.num_rows)
        try:
            return step.run(frame)
        except Fault:
            return refuse(expr, *frame[:3], time)
        except CallFault as fault:
            return refuse(expr, *frame[:3], time, fault)

    return run


def predicate_mask(condition: pa.Array) -> npt.NDArray[np.bool_]:
    """Where the condition is true; null counts as not true.

    >>> predicate_mask(pa.array([True, None, False]))
    array([ True, False, False])
    """
    rows, offset = len(condition), condition.offset
    if rows == 0 or condition.null_count == rows:
        return np.zeros(rows, dtype=np.bool_)
    # Unpacking the bits ourselves is 30 times faster than fill_null and to_numpy.
    validity, data = condition.buffers()
    used = (offset + rows + 7) // 8
    bits = np.frombuffer(data, np.uint8, used)
    if validity is not None:
        bits = bits & np.frombuffer(validity, np.uint8, used)
    return np.unpackbits(bits, count=offset + rows, bitorder="little")[offset:].view(np.bool_)


def plan_step(expr: Expr, schema: pa.Schema, time: pa.DataType) -> EvaluationStep:
    """One node and everything below it, typed, converted and folded."""
    expr = of_split(expr)
    match expr:
        case Column(name=name):
            return _column_step(name, column_type(expr, schema))
        case Constant():
            return _constant_step(expr.scalar)
        case Boundary():
            return _boundary_step(expr, time)
        case Each() | ListFold():
            return _lambda_step(expr, schema, time)
    steps = [plan_step(c, schema, time) for c in children(expr)]
    plan = plan_node(expr, [s.type for s in steps])
    ready = [_converted(s, t) for s, t in zip(steps, plan.operands, strict=True)]
    if isinstance(expr, Call):
        return _call_step(ready, plan.type, plan.kernel)
    constants = [s.constant for s in ready if s.constant is not None]
    if len(constants) == len(ready):
        return _folded(constants, plan)
    runs = [s.run for s in ready]
    if plan.shared is not None:
        key = (plan.shared.key, plan.operands, children(expr)[0].key)
        return EvaluationStep(plan.type, _sharing(runs[0], plan.shared, key))
    return EvaluationStep(plan.type, _runner(runs, plan.kernel, plan.type))


def _sharing(run: Callable[[Frame], Any], parts: Shared, key: Hashable) -> Callable[[Frame], pa.Array]:
    """The first part once per frame, the second each time."""

    def shared(frame: Frame) -> pa.Array:
        if key not in frame.once:
            frame.once[key] = parts.first(run(frame))
        return parts.second(frame.once[key])

    return shared


def _lambda_step(expr: Each | ListFold, schema: pa.Schema, time: pa.DataType) -> EvaluationStep:
    """A function over elements: its parts are planned once, over the rows and over the elements."""
    typed = partial(type_of, time=time)
    t, inner = lambda_type(expr, schema, typed), inner_schema(expr, schema, typed)
    outer = {expr.arg.key, *([expr.start.key] if isinstance(expr, ListFold) else [])}
    known = {p.key: plan_step(strip(p), schema if p.key in outer else inner, time) for p in parts(expr)}

    def on(part: Expr, rows: ElementRows) -> tuple[pa.Array, dict[int, str]]:
        step = known[part.key]
        if step.constant is not None:
            return repeat(step.constant, rows.batch.num_rows), {}
        return step.run(Frame(*rows, {})), {}

    return EvaluationStep(
        t, lambda frame: computed(expr, ElementRows(*frame[:3]), t, inner, on, converted)[0]
    )


def converted(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The column as another type; refuses what cannot be converted."""
    if array.type == target:
        return array
    convert = cast_kernel(array.type, target)
    assert convert is not None, f"planned without a conversion from {array.type} to {target}"
    return checked(Attempt(convert))(array)


def _folded(constants: list[pa.Scalar], plan: TypedNode) -> EvaluationStep:
    """A value that reads no row; one that does not exist is refused where a row needs it."""
    try:
        return _constant_step(_typed(plan.kernel(*(repeat(c, 1) for c in constants)), plan.type)[0])
    except Fault:
        return EvaluationStep(plan.type, _faulty)


def _faulty(frame: Frame) -> pa.Array:
    raise Fault


def _runner(
    runs: list[Callable[[Frame], Any]], kernel: Kernel, type: pa.DataType
) -> Callable[[Frame], pa.Array]:
    match runs:
        case [one]:
            return lambda frame: _typed(kernel(one(frame)), type)
        case [left, right]:
            return lambda frame: _typed(kernel(left(frame), right(frame)), type)
    return lambda frame: _typed(kernel(*[run(frame) for run in runs]), type)


def _typed(array: pa.Array, type: pa.DataType) -> pa.Array:
    return array if array.type == type else array.cast(type)


def _constant_step(scalar: pa.Scalar) -> EvaluationStep:
    return EvaluationStep(scalar.type, lambda _: scalar, scalar)


def _column_step(name: str, type: pa.DataType) -> EvaluationStep:
    def run(frame: Frame) -> pa.Array:
        array = frame.batch.column(name)
        if array.type != type:
            raise ExprError(
                f"column '{name}' was planned as {describe(type)} and came as {describe(array.type)}.",
                remedy="Compile the expression against the batch's own schema.",
            )
        return array

    return EvaluationStep(type, run)


def _boundary_step(expr: Boundary, time: pa.DataType) -> EvaluationStep:
    index = 1 if expr.side == "start" else 2

    def run(frame: Frame) -> pa.Array:
        ticks = frame[index]
        if ticks is None:
            raise ExprError(
                f"'{expr}' needs the rows' lifetimes, and none were given.",
                remedy="Pass le= and re=, the arrays of lifetime starts and ends.",
            )
        counted = pa.array(ticks, type=pa.int64())
        return counted if time == TICKS else _as_time(counted, time)

    return EvaluationStep(time, run)


def _as_time(ticks: pa.Array, time: pa.DataType) -> pa.Array:
    return ticks.view(time) if time.bit_width == 64 else ticks.cast(pa.int32()).cast(time)


def _converted(step: EvaluationStep, target: pa.DataType) -> EvaluationStep:
    if step.type == target:
        return step
    attempt = cast_kernel(step.type, target)
    assert attempt is not None, f"planned without a conversion from {step.type} to {target}"
    convert = checked(Attempt(attempt))
    if step.constant is not None:
        return _constant_step(convert(repeat(step.constant, 1))[0])
    run = step.run
    return EvaluationStep(target, lambda frame: convert(run(frame)))


def _call_step(steps: list[EvaluationStep], type: pa.DataType, kernel: Kernel) -> EvaluationStep:
    def run(frame: Frame) -> pa.Array:
        rows = frame.batch.num_rows
        columns = [s.run(frame) if s.constant is None else repeat(s.constant, rows) for s in steps]
        return kernel(rows, *columns)

    return EvaluationStep(type, run)
