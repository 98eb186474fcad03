"""Operations on values: expressions, records of operations, Python functions.

An operation names its arguments: the parts of a split or a combine by their names (or ``_0``, ``_1``),
the two arguments of a fold's step as ``acc`` and ``x``.

>>> from caesura.expr import col
>>> from caesura.qre.language.types import INT
>>> mean = operation({"n": col("acc") + 1, "s": col("x")})
>>> str(mean), str(mean.type({"acc": INT, "x": INT}))
('{n: acc + 1, s: x}', '{n: bigint, s: bigint}')
>>> mean.closure({"acc": INT, "x": INT})({"acc": 1, "x": 5})
{'n': 2, 's': 5}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from caesura.errors import StreamError
from caesura.expr import Column, Constant, Expr, as_expr, as_type, attributes, lit
from caesura.expr.code import code_key
from caesura.qre.language.arguments import wrong
from caesura.qre.language.error_bounds import approximate, bound_of, nonnegative, void_in
from caesura.qre.language.scalar import Closure, Env, evaluator, typed
from caesura.qre.language.types import Approx, Opaque, Record, Scalar, ValueType, fits, of_arrow, widened
from caesura.qre.language.whole_numbers import fits as known
from caesura.qre.language.whole_numbers import whole

ANYTHING = Opaque()
ACC = Column("acc")
X = Column("x")
Types = Mapping[str, ValueType]


class Operation:
    """A function of named values."""

    compiles = True
    """Whether kernels can run it."""

    def type(self, types: Types) -> ValueType:
        """The result's type; refuses arguments that do not fit."""
        raise NotImplementedError

    def closure(self, types: Types) -> Closure:
        """The operation as a Python function of an environment."""
        raise NotImplementedError

    @property
    def key(self) -> Any:
        """Equal exactly for operations that are known to do the same."""
        raise NotImplementedError

    def reads(self, names: tuple[str, ...]) -> frozenset[str]:
        """Which of its arguments it reads; all, unless that can be seen."""
        return frozenset(names)


@dataclass(frozen=True)
class ExprOp(Operation):
    """One expression."""

    expr: Expr

    def type(self, types: Types) -> ValueType:
        if isinstance(self.expr, Column) and self.expr.name in types:
            return types[self.expr.name]
        bound = bound_of(self.expr, types)
        got = typed(self.expr, types)
        if bound is None and isinstance(got, Scalar) and nonnegative(self.expr, types):
            return replace(got, nonnegative=True)
        return got if bound is None else bound

    def closure(self, types: Types) -> Closure:
        return evaluator(self.expr, types)

    @property
    def key(self) -> Any:
        return self.expr.key

    def reads(self, names: tuple[str, ...]) -> frozenset[str]:
        return attributes(self.expr)

    def __str__(self) -> str:
        return str(self.expr)


@dataclass(frozen=True)
class RecordOp(Operation):
    """Several operations side by side; their results make a record."""

    fields: tuple[tuple[str, Operation], ...]

    @property
    def compiles(self) -> bool:  # type: ignore[override]
        return all(op.compiles for _, op in self.fields)

    def type(self, types: Types) -> ValueType:
        return Record(tuple((name, op.type(types)) for name, op in self.fields))

    def closure(self, types: Types) -> Closure:
        parts = [(name, op.closure(types)) for name, op in self.fields]
        return lambda env: {name: part(env) for name, part in parts}

    @property
    def key(self) -> Any:
        return tuple((name, op.key) for name, op in self.fields)

    def reads(self, names: tuple[str, ...]) -> frozenset[str]:
        return frozenset().union(*(op.reads(names) for _, op in self.fields))

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name}: {op}" for name, op in self.fields) + "}"


@dataclass(frozen=True)
class Function(Operation):
    """A Python function of the values, in the order of the parts. Only the twin can run it."""

    function: Callable[..., Any]
    returns: ValueType = ANYTHING
    same_as: str = ""
    """Equal for functions that do the same; by default their code tells."""

    compiles = False

    def type(self, types: Types) -> ValueType:
        if not isinstance(self.returns, Approx) and any(approximate(t) for t in types.values()):
            raise void_in(self)
        return self.returns

    def closure(self, types: Types) -> Closure:
        names = list(types)

        def run(env: Env) -> Any:
            values = [env[n] for n in names]
            if not known(values):
                return whole(values)
            try:
                got = self.function(*values)
            except Exception as error:
                raise StreamError(
                    f"the function {self} raised {type(error).__name__}: {error}; it was given {values}.",
                    remedy="Let it answer for these values, or keep such items out with the predicate.",
                ) from error
            if not fits(got, self.returns):
                raise StreamError(
                    f"the function {self} returned {got!r}; it promises {self.returns}.",
                    remedy="Return that type, or promise another with function(..., returns=...).",
                )
            return float(got) if self.returns == Scalar(pa.float64()) and type(got) is int else got

        return run

    @property
    def key(self) -> Any:
        own = self.function
        if self.same_as:
            return self.same_as
        return ("always", code_key(own.value)) if isinstance(own, _Always) else code_key(own)

    def __str__(self) -> str:
        return getattr(self.function, "__name__", "function")


def function(call: Callable[..., Any], *, returns: pa.DataType | str | ValueType | None = None) -> Function:
    """A Python function as an operation, with the type that it promises.

    Parameters
    ----------
    call
        The function. It is given the values of the parts in their order; of an atom the item, as a dict.
    returns
        The type of its answer, of Arrow or by its Spark name. An answer of another type stops the query.

    Returns
    -------
    Function
        It goes where an operation goes.

    Notes
    -----
    A query with such a function runs in Python, not in compiled code.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> double = qre.function(lambda item: item["v"] * 2, returns="bigint")
    >>> qre.evaluate(qre.map(double, items=items), pa.record_batch({"v": [1, 2]}))
    [2, 4]
    """
    if not callable(call):
        raise wrong("function", call, "something to call", "Give a Python function, as qre.function(round).")
    if returns is None:
        return Function(call)
    if isinstance(returns, (pa.DataType, str)):
        return Function(call, of_arrow(widened(as_type(returns))))
    if not isinstance(returns, ValueType):
        raise wrong("function", returns, "a type", "Give one like returns='double'.")
    return Function(call, returns)


def operation(given: Any) -> Operation:
    """What users write as an operation: an expression, a dict of them, a function, a constant."""
    if isinstance(given, Operation):
        return given
    if isinstance(given, Expr):
        return ExprOp(given)
    if isinstance(given, Mapping):
        return RecordOp(tuple((str(n), operation(v)) for n, v in given.items()))
    if callable(given):
        return Function(given)
    return ExprOp(as_expr(given))


def constant(given: Any) -> Operation:
    """A starting value: a plain value, or a dict of them."""
    if isinstance(given, Mapping):
        return RecordOp(tuple((str(n), constant(v)) for n, v in given.items()))
    if isinstance(given, tuple) and not given:
        return RecordOp(())
    if isinstance(given, (bool, int, float, str, Decimal, Constant)) or given is None:
        return ExprOp(lit(given))
    return Function(_Always(given), Opaque(type(given).__name__))


class _Always:
    """A function without arguments that gives one value."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.__name__ = repr(value)

    def __call__(self, *_: Any) -> Any:
        return self.value
