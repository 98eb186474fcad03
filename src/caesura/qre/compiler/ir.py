"""The small language that kernels run: total functions on 64-bit words, nulls made explicit.

A term is a whole number ('i', also truth values, times and codes of texts) or a double ('f'). The
functions here build terms and simplify what is known.

>>> x = slot("x", "i")
>>> str(add(x, const(0))), str(select(const(1), x, const(5)))
('x', 'x')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from caesura.qre.language.whole_numbers import MIN_INT64, VOID

Kind = Literal["i", "f"]


@dataclass(frozen=True)
class Term:
    """A function of slots and of the item's columns."""

    op: str
    kind: Kind
    args: tuple[Term, ...] = ()
    payload: Any = None

    def __str__(self) -> str:
        if self.op in ("slot", "item", "const"):
            return str(self.payload)
        return f"{self.op}({', '.join(map(str, self.args))})"

    def __hash__(self) -> int:
        known = self.__dict__.get("_hash")
        if known is None:
            known = hash((self.op, self.kind, self.args, repr(self.payload)))
            object.__setattr__(self, "_hash", known)
        return int(known)


def const(value: float | int | bool) -> Term:
    """A number known now."""
    if isinstance(value, float):
        return Term("const", "f", payload=value)
    return Term("const", "i", payload=int(value))


def slot(name: str, kind: Kind) -> Term:
    """A value that a thread holds."""
    return Term("slot", kind, payload=name)


def item(column: int, kind: Kind) -> Term:
    """A column of the item being read."""
    return Term("item", kind, payload=column)


TRUE, FALSE = const(1), const(0)
ZERO = FALSE


def known(t: Term) -> Any:
    """The value of a constant, else None."""
    return t.payload if t.op == "const" else None


def real(t: Term) -> Term:
    """A term as a double."""
    if t.kind == "f":
        return t
    return const(float(t.payload)) if t.op == "const" else Term("i2f", "f", (t,))


def _alike(a: Term, b: Term) -> tuple[Term, Term]:
    return (a, b) if a.kind == b.kind else (real(a), real(b))


def add(a: Term, b: Term) -> Term:
    a, b = _alike(a, b)
    if a.kind == "i" and known(a) == 0:
        return b
    if a.kind == "i" and known(b) == 0:
        return a
    return _number("add", a, b)


def sub(a: Term, b: Term) -> Term:
    a, b = _alike(a, b)
    return a if a.kind == "i" and known(b) == 0 else _number("sub", a, b)


def mul(a: Term, b: Term) -> Term:
    a, b = _alike(a, b)
    for x, y in ((a, b), (b, a)):
        if known(x) == 1:
            return y
    return _number("mul", a, b)


def _number(op: str, a: Term, b: Term) -> Term:
    if a.op == "const" and b.op == "const":
        got = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}[op](
            a.payload, b.payload
        )
        return const(got if a.kind == "f" else (got - MIN_INT64) % 2**64 + MIN_INT64)
    return Term(op, a.kind, (a, b))


# Counts of 2**64: see `caesura.qre.language.whole_numbers`.


def carried(a: Term, b: Term) -> Term:
    """How many 2**64 go with the low word of a sum."""
    if known(a) == 0 or known(b) == 0:
        return ZERO
    return _counted("carried", a, b, lambda x, y: (x + y - MIN_INT64) >> 64)


def borrowed(a: Term, b: Term) -> Term:
    """How many 2**64 go with the low word of a difference."""
    return ZERO if known(b) == 0 else _counted("borrowed", a, b, lambda x, y: (x - y - MIN_INT64) >> 64)


def too_large(a: Term, b: Term) -> Term:
    """Whether a product does not fit."""
    if known(a) in (0, 1) or known(b) in (0, 1):
        return ZERO
    return _counted("too_large", a, b, lambda x, y: not MIN_INT64 <= x * y < -MIN_INT64)


def _counted(op: str, a: Term, b: Term, fold: Callable[[int, int], int]) -> Term:
    if a.op == "const" and b.op == "const":
        return const(int(fold(a.payload, b.payload)))
    return Term(op, "i", (a, b))


def both(a: Term, b: Term, more: Term) -> Term:
    """The count of a sum; a count and what is carried are added as they are."""
    for x, y in ((a, b), (b, a)):
        if known(x) == 0:
            return add(y, more)
    return Term("both", "i", (a, b, more))


def less(a: Term, b: Term, more: Term) -> Term:
    """The count of a difference."""
    return add(a, more) if known(b) == 0 else Term("less", "i", (a, b, more))


def spoilt(*counts: Term) -> Term:
    """VOID if any of some counts is not 0."""
    some = [c for c in counts if known(c) != 0]
    if not some or any(c.op == "const" for c in some):
        return const(VOID) if some else ZERO
    if len(some) == 1 and some[0].op == "spoilt":
        return some[0]
    if len(some) > 3:
        return spoilt(*some[:2], spoilt(*some[2:]))
    return Term("spoilt", "i", (*some, ZERO, ZERO)[:3])


def div(a: Term, b: Term) -> Term:
    """A quotient of doubles; whatever when the divisor is 0."""
    return Term("div", "f", (real(a), real(b)))


def unary(op: str, a: Term) -> Term:
    """neg, abs, sqrt, exp: of the argument's kind or, the last two, doubles."""
    if op in ("sqrt", "exp"):
        return Term(op, "f", (real(a),))
    return Term(op, a.kind, (a,))


def rem(a: Term, b: Term) -> Term:
    a, b = _alike(a, b)
    return Term("rem", a.kind, (a, b))


def eq(a: Term, b: Term) -> Term:
    a, b = _alike(a, b)
    if a == b:
        return TRUE
    if a.op == "const" and b.op == "const":
        return const(a.payload == b.payload)
    return Term("eq", "i", (a, b))


def lt(a: Term, b: Term) -> Term:
    a, b = _alike(a, b)
    if a.op == "const" and b.op == "const" and not _nan(a) and not _nan(b):
        return const(a.payload < b.payload)
    return Term("lt", "i", (a, b))


def le(a: Term, b: Term) -> Term:
    return not_(lt(b, a))


def _nan(a: Term) -> bool:
    return isinstance(a.payload, float) and math.isnan(a.payload)


def not_(a: Term) -> Term:
    if a.op == "const":
        return const(not a.payload)
    return a.args[0] if a.op == "not" else Term("not", "i", (a,))


def and_(a: Term, b: Term) -> Term:
    for x, y in ((a, b), (b, a)):
        if x.op == "const":
            return y if x.payload else FALSE
    return a if a == b else Term("and", "i", (a, b))


def or_(a: Term, b: Term) -> Term:
    for x, y in ((a, b), (b, a)):
        if x.op == "const":
            return TRUE if x.payload else y
    return a if a == b else Term("or", "i", (a, b))


def select(c: Term, a: Term, b: Term) -> Term:
    """The first where the condition holds, else the second."""
    a, b = _alike(a, b)
    if c.op == "const":
        return a if c.payload else b
    if a == b:
        return a
    if c.op == "not":
        return select(c.args[0], b, a)
    if a.kind == "i" and known(a) == 1 and known(b) == 0 and _truth(c):
        return c
    return Term("select", a.kind, (c, a, b))


def _truth(c: Term) -> bool:
    return c.op in ("eq", "lt", "not", "and", "or")


_REBUILD: dict[str, Callable[..., Term]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "rem": rem,
    "eq": eq,
    "lt": lt,
    "not": not_,
    "and": and_,
    "or": or_,
    "select": select,
    "i2f": real,
    "carried": carried,
    "borrowed": borrowed,
    "too_large": too_large,
    "both": both,
    "less": less,
    "spoilt": spoilt,
}


def substitute(t: Term, given: Callable[[Term], Term | None]) -> Term:
    """The term with slots and columns replaced, simplified again."""
    if t.op in ("slot", "item"):
        return given(t) or t
    if not t.args:
        return t
    args = [substitute(a, given) for a in t.args]
    if all(a is b for a, b in zip(args, t.args, strict=True)):
        return t
    if t.op in ("ring", "store", "turn", "defer", "refold"):
        return Term(t.op, t.kind, tuple(args), t.payload)
    make = _REBUILD.get(t.op)
    return make(*args) if make is not None else unary(t.op, *args)


def slots(t: Term) -> Iterator[str]:
    """The names of the slots that a term reads."""
    if t.op == "slot":
        yield t.payload
    for a in t.args:
        yield from slots(a)


def columns(t: Term) -> Iterator[int]:
    """The numbers of the columns that a term reads."""
    if t.op == "item":
        yield t.payload
    for a in t.args:
        yield from columns(a)
