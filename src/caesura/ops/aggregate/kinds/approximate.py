"""`approx_count_distinct`: how many different values there are, within an error that the schema states.

Where values only come, a slot keeps a sketch of fixed size. Where they also go, it keeps the values as
`count_distinct` does, since no sketch forgets one, and makes the sketch of those that are there: the same
number, never one that is too high for values that are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, col
from caesura.kernels.hashing import U8
from caesura.ops.aggregate.accumulators.multiset import Gathered, Multiset
from caesura.ops.aggregate.accumulators.sketch import Sketch, estimates, precision, sketched
from caesura.ops.aggregate.kinds.picked import BAG
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    InSlots,
    PartialAggregate,
    Reading,
    State,
    always,
    define,
    either,
    made,
    told_apart,
    whole,
)
from caesura.plan import here

AT_ONCE = 1024
"""So many sketches are made of values in one go."""


def approx_count_distinct(
    value: str | Expr, error: float = 0.02, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """About how many different values there are.

    Parameters
    ----------
    value
        A column's name, or an expression. Nulls do not count.
    error
        The standard error, as a share from 0.005 to 0.26.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``bigint``; of few values the number is exact, or nearly so. The error is in the metadata of the
        output's field, as ``caesura.error``.

    Notes
    -----
    State: a sketch of fixed size a window and group where rows only come; where corrections come, each
    different value with its count, as `count_distinct`. Without keys every bucket computes its share, and the
    shares are combined.

    See Also
    --------
    count_distinct : exactly.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.approx_count_distinct("v", 0.05)).run())
     LE  RE | x |
      0  10 | 2 | +
    """
    if isinstance(error, bool) or not isinstance(error, int | float) or not 0.005 <= error <= 0.26:
        raise PlanError(
            f"approx_count_distinct cannot have a standard error of {error!r}.",
            remedy="Give a share from 0.005 to 0.26, like 0.02, or take count_distinct.",
        ).at("approx_count_distinct", here())
    return made("approx_count_distinct", value, either(where, filter), float(error))


def _state(error: float) -> Callable[[pa.DataType, bool], State]:
    bits = precision(error)
    sketch = State(f"sketch{bits}_", lambda name, t: Sketch(name, bits))
    return lambda t, insert_only: sketch if insert_only else BAG


def _registers(aggregate: Aggregate, reading: InSlots) -> Iterator[U8]:
    """The registers of the slots asked for, some at once."""
    for first in range(0, len(reading.at), AT_ONCE):
        at = reading.at[first : first + AT_ONCE]
        if isinstance(reading.part, Multiset):
            held = reading.part.gather(at)
            yield sketched(held.owner, held.values, len(at), precision(aggregate.option))
        else:
            yield reading.part.registers(reading.slots, at)


def _estimate(aggregate: Aggregate, reading: Reading) -> pa.Array:
    if not isinstance(reading, InSlots):  # along points
        return reading.values()
    found = [estimates(registers) for registers in _registers(aggregate, reading)]
    return pa.array(np.concatenate(found) if found else np.zeros(0, np.int64))


def _bytes(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    width = 1 << precision(aggregate.option)
    data = b"".join(registers.tobytes() for registers in _registers(aggregate, reading))
    offsets = np.arange(len(reading.at) + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(
        pa.binary(), len(reading.at), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def _merged(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    held: Gathered = reading.part.gather(reading.at)
    registers = np.zeros((len(reading.at), 1 << precision(aggregate.option)), np.uint8)
    for owner, sketch in zip(held.owner.tolist(), held.values, strict=True):
        np.maximum(registers[owner], np.frombuffer(sketch.as_buffer(), np.uint8), out=registers[owner])
    return pa.array(estimates(registers))


def _share(name: str, one: Aggregate, t: pa.DataType) -> PartialAggregate:
    part = Aggregate("sketch", one.value, one.option)
    return PartialAggregate(
        ((name, part),), ((name, Aggregate("merged_sketches", col(name), one.option)),), col(name)
    )


def _stated(aggregate: Aggregate) -> dict[str, str]:
    return {"caesura.error": str(aggregate.option)}


define(
    AggregateKind(
        "approx_count_distinct", told_apart, _estimate, share=_share, shows_option=True, state_for=_state,
        metadata=_stated,
    )
)  # fmt: skip
define(AggregateKind("sketch", lambda *_: pa.binary(), _bytes, state_for=_state))
"""A bucket's share; users do not write it."""
define(AggregateKind("merged_sketches", whole, _merged, always(BAG), metadata=_stated))
"""Puts the shares together; users do not write it either."""
