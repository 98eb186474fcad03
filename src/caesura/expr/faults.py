"""Values that have no answer: a sum beyond its type's range, a text that is no number.

A kernel that meets one says so with `Fault`; `careful` then finds the rows. Only what a row needs is
looked at: the branch of a CASE that it takes, the first of coalesce that is not null, and neither side of
AND and OR when the other decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import ExprError
from caesura.expr.arrays import zero

Datum = Any
Mask = npt.NDArray[np.bool_]
SHOWN = 8
"""How many columns of a row a diagnostic shows."""


class Fault(Exception):  # noqa: N818 - found and named by `careful` before a user sees it
    """A value on the way has no answer; which row it is of is not known yet."""


class CallFault(ExprError):  # noqa: N818 - an error that `careful` finds the row of
    """A user's function that failed on some row, or gave what is not of its type."""


class RowError(ExprError):
    """Rows for which an expression has no value, with the reason for each."""

    rows: npt.NDArray[np.int64]
    reasons: list[str]

    def of(self, rows: npt.NDArray[np.int64], reasons: list[str]) -> RowError:
        """The same error, which knows its rows."""
        self.rows, self.reasons = rows, reasons
        return self


@dataclass(frozen=True)
class Attempt:
    """A kernel that answers null where there is no value."""

    kernel: Callable[..., Datum]
    divides: bool = False
    """Whether null is also what a zero as its last argument means."""

    def __call__(self, *args: Datum) -> Datum:
        return self.kernel(*args)

    def refused(self, made: Any, args: Sequence[Datum]) -> Any:
        """Where there is no value although every argument has one."""
        given = [pc.is_valid(arg) for arg in args]
        if self.divides:
            given.append(pc.not_equal(args[-1], zero(args[-1].type)))
        return pc.and_(pc.is_null(made), reduce(pc.and_, given))


def checked(attempt: Attempt) -> Callable[..., Datum]:
    """The same kernel, which refuses where there is no value."""

    def kernel(*args: Datum) -> Datum:
        made = attempt(*args)
        if made.null_count and pc.any(attempt.refused(made, args)).as_py():
            raise Fault
        return made

    return kernel


def arrow_checked(operation: Callable[..., Datum]) -> Callable[..., Datum]:
    """Checked arithmetic, with Arrow's refusal of a column as a fault."""

    def kernel(*args: Datum) -> Datum:
        try:
            return operation(*args)
        except pa.ArrowInvalid:
            raise Fault from None

    return kernel


def shown(batch: pa.RecordBatch, row: int) -> str:
    """A row as a diagnostic shows it."""
    names = batch.schema.names
    cells = [f"{name} = {written(batch.column(i)[row])}" for i, name in enumerate(names[:SHOWN])]
    return ", ".join([*cells, "..."] if len(names) > SHOWN else cells)


def written(scalar: pa.Scalar) -> str:
    """A value as a diagnostic shows it; Python has no dates beyond the year 9999."""
    try:
        return str(scalar) if pa.types.is_temporal(scalar.type) else repr(scalar.as_py())
    except (OverflowError, ValueError):
        return f"{scalar.value} {getattr(scalar.type, 'unit', 'days')}"
