"""What kernels compute of scalars: a word, whether it is there, and how many 2**64 go with it.

Null wins: what is not there has no count. Inside a pattern sums and differences are exact and a number that
does not fit is refused when it leaves; an expression over one item is checked at every step, as columns
are. See `caesura.qre.language.whole_numbers`.

>>> a, b = ScalarTerm(ir.slot("a", "i")), ScalarTerm(ir.slot("b", "i"))
>>> str(EXACT["add"](a, b).over), str(EXACT["multiply"](a, b).over)
('carried(a, b)', 'spoilt(too_large(a, b), 0, 0)')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa

from caesura.qre.compiler import ir
from caesura.qre.compiler.ir import FALSE, TRUE, ZERO, Term
from caesura.qre.language.whole_numbers import MAX_TURNS, MIN_INT64, TURN, VOID

FITTING, UNKNOWN = 63, 64


class NotCompiled(Exception):  # noqa: N818 - a verdict, not an error
    """Kernels cannot run this; the twin can."""


@dataclass(frozen=True)
class ScalarTerm:
    """A scalar: its term, and when it is not null."""

    term: Term
    there: Term = TRUE
    text: bool = False
    """Whether the word is a text's code: equal exactly for equal texts, in no order."""
    handle: bool = False
    """Whether the word is the number of a value that is worked out later."""
    over: Term = ZERO
    """How many 2**64 go with a whole number; VOID of what has no value."""
    bits: int = UNKNOWN
    """A whole number is known to be less in size than 2 to this power; up to FITTING it fits."""

    @property
    def terms(self) -> tuple[Term, Term, Term]:
        return self.term, self.there, self.over

    @property
    def risky(self) -> bool:
        """Whether it may not fit."""
        return self.over != ZERO

    def mapped(self, change: Callable[[Term], Term]) -> ScalarTerm:
        """The word with other terms."""
        return replace(self, term=change(self.term), there=change(self.there), over=change(self.over))


Make = Callable[..., ScalarTerm]


def constant(value: Any, t: pa.DataType) -> ScalarTerm:
    """A constant as a word."""
    if value is None:
        return ScalarTerm(ir.const(0.0) if pa.types.is_floating(t) else ir.const(0), FALSE)
    if isinstance(value, (bool, int, float)):
        if pa.types.is_floating(t):
            return ScalarTerm(ir.const(float(value)))
        return ScalarTerm(ir.const(value), bits=int(value).bit_length())
    raise NotCompiled(f"the constant {value!r}")


def real(w: ScalarTerm) -> ScalarTerm:
    """A word as a double."""
    if w.term.kind == "f":
        return w
    if w.over == ZERO or w.over.op == "spoilt":
        return ScalarTerm(ir.real(w.term), w.there, over=w.over)
    turns = ir.mul(ir.real(w.over), ir.const(TURN))
    void = ir.select(ir.lt(ir.const(MAX_TURNS), w.over), ir.const(VOID), ZERO)
    return ScalarTerm(ir.add(ir.real(w.term), turns), w.there, over=void)


def aligned(*words: ScalarTerm) -> list[ScalarTerm]:
    """Scalars of one kind."""
    return list(words) if len({w.term.kind for w in words}) == 1 else [real(w) for w in words]


def chosen(test: Term, a: ScalarTerm, b: ScalarTerm) -> ScalarTerm:
    """The first where a condition holds, else the second."""
    a, b = aligned(a, b)
    term, there, over = (ir.select(test, x, y) for x, y in zip(a.terms, b.terms, strict=True))
    return ScalarTerm(term, there, a.text or b.text, over=over, bits=max(a.bits, b.bits))


def when(test: ScalarTerm, then: ScalarTerm, otherwise: ScalarTerm) -> ScalarTerm:
    """One branch of a CASE; there is no value where there is none to decide by."""
    made = chosen(ir.and_(test.there, test.term), then, otherwise)
    if not test.risky:
        return made
    bad = ir.and_(test.there, _not_0(test.over))
    void = ir.select(bad, ir.const(VOID), made.over)
    return replace(made, there=ir.or_(bad, made.there), over=void)


def member(x: ScalarTerm, values: list[ScalarTerm], missing: bool) -> ScalarTerm:
    """Whether a word is one of some; unknown if a null is among them and nothing else is found."""
    found: Term = FALSE
    for c in values:
        found = ir.or_(found, ir.eq(x.term, c.term))
    return ScalarTerm(found, ir.and_(x.there, found if missing else TRUE), over=ir.spoilt(x.over), bits=1)


def _not_0(over: Term) -> Term:
    return ir.not_(ir.eq(over, ZERO))


def _spoilt(*words: ScalarTerm) -> Term:
    return ir.spoilt(*(w.over for w in words))


def _there(*words: ScalarTerm) -> Term:
    return reduce(ir.and_, (w.there for w in words))


def _ordered(*words: ScalarTerm) -> list[ScalarTerm]:
    if any(w.text for w in words):
        raise NotCompiled("texts by their order")
    return aligned(*words)


def _strict(make: Callable[..., Term], *, coded: bool = False) -> Make:
    """A test, or a function of doubles."""

    def run(*words: ScalarTerm) -> ScalarTerm:
        some = aligned(*words) if coded else _ordered(*words)
        return ScalarTerm(make(*(w.term for w in some)), _there(*some), over=_spoilt(*some), bits=1)

    return run


def _sum(a: ScalarTerm, b: ScalarTerm) -> ScalarTerm:
    a, b = _ordered(a, b)
    if a.term.kind == "f":
        return ScalarTerm(ir.add(a.term, b.term), _there(a, b), over=_spoilt(a, b))
    bits = max(a.bits, b.bits) + 1
    more = ZERO if bits <= FITTING else ir.carried(a.term, b.term)
    over = ir.both(a.over, b.over, more)
    return ScalarTerm(ir.add(a.term, b.term), _there(a, b), over=over, bits=min(bits, UNKNOWN))


def _difference(a: ScalarTerm, b: ScalarTerm) -> ScalarTerm:
    a, b = _ordered(a, b)
    if a.term.kind == "f":
        return ScalarTerm(ir.sub(a.term, b.term), _there(a, b), over=_spoilt(a, b))
    bits = max(a.bits, b.bits) + 1
    more = ZERO if bits <= FITTING else ir.borrowed(a.term, b.term)
    over = ir.less(a.over, b.over, more)
    return ScalarTerm(ir.sub(a.term, b.term), _there(a, b), over=over, bits=min(bits, UNKNOWN))


def _product(a: ScalarTerm, b: ScalarTerm) -> ScalarTerm:
    a, b = _ordered(a, b)
    bits = a.bits + b.bits
    large = ZERO if a.term.kind == "f" or bits <= FITTING else ir.too_large(a.term, b.term)
    over = ir.spoilt(a.over, b.over, large)
    return ScalarTerm(ir.mul(a.term, b.term), _there(a, b), over=over, bits=min(bits, UNKNOWN))


def _negated(a: ScalarTerm) -> ScalarTerm:
    if a.term.kind == "f":
        return _strict(lambda x: ir.unary("neg", x))(a)
    return replace(_difference(ScalarTerm(ZERO, bits=0), a), bits=a.bits)


def _size(a: ScalarTerm) -> ScalarTerm:
    least = ZERO if a.term.kind == "f" or a.bits <= FITTING else ir.eq(a.term, ir.const(MIN_INT64))
    (a,) = _ordered(a)
    return ScalarTerm(ir.unary("abs", a.term), a.there, over=ir.spoilt(a.over, least), bits=a.bits)


def _divided(make: Callable[[Term, Term], Term]) -> Make:
    def run(a: ScalarTerm, b: ScalarTerm) -> ScalarTerm:
        a, b = (real(a), real(b)) if make is ir.div else _ordered(a, b)
        zero = ir.const(0) if b.term.kind == "i" else ir.const(0.0)
        able = ir.not_(ir.eq(b.term, zero))
        if b.risky:
            able = ir.or_(_not_0(b.over), able)
        return ScalarTerm(make(a.term, b.term), ir.and_(_there(a, b), able), over=_spoilt(a, b))

    return run


def _tried(make: Make) -> Make:
    """Null where the result does not fit."""

    def run(a: ScalarTerm, b: ScalarTerm) -> ScalarTerm:
        before, got = _spoilt(*_ordered(a, b)), make(replace(a, over=ZERO), replace(b, over=ZERO))
        able = ir.or_(_not_0(before), ir.eq(got.over, ZERO))
        return ScalarTerm(got.term, ir.and_(got.there, able), over=before)

    return run


def _surely(w: ScalarTerm, test: Term) -> Term:
    """Whether a truth value is there and settles the matter."""
    good = ir.eq(w.over, ZERO) if w.risky else TRUE
    return ir.and_(ir.and_(w.there, good), test)


def _and(a: ScalarTerm, b: ScalarTerm) -> ScalarTerm:
    no = ir.or_(_surely(a, ir.not_(a.term)), _surely(b, ir.not_(b.term)))
    over = ir.select(no, ZERO, _spoilt(a, b))
    return ScalarTerm(ir.and_(a.term, b.term), ir.or_(no, _there(a, b)), over=over, bits=1)


def _or(a: ScalarTerm, b: ScalarTerm) -> ScalarTerm:
    yes = ir.or_(_surely(a, a.term), _surely(b, b.term))
    over = ir.select(yes, ZERO, _spoilt(a, b))
    return ScalarTerm(yes, ir.or_(yes, _there(a, b)), over=over, bits=1)


def _between(x: ScalarTerm, low: ScalarTerm, high: ScalarTerm) -> ScalarTerm:
    return _and(_strict(ir.le)(low, x), _strict(ir.le)(x, high))


def _coalesce(*words: ScalarTerm) -> ScalarTerm:
    out = words[-1]
    for w in reversed(words[:-1]):
        there = ir.or_(w.there, out.there)
        out = replace(chosen(w.there, w, out), there=there)
    return out


def _extreme(takes: Callable[[Term, Term], Term]) -> Make:
    def run(*words: ScalarTerm) -> ScalarTerm:
        some = _ordered(*words)
        out = some[0]
        for w in some[1:]:
            better = ir.and_(w.there, ir.or_(ir.not_(out.there), takes(w.term, out.term)))
            there, bits = ir.or_(out.there, w.there), max(out.bits, w.bits)
            out = ScalarTerm(ir.select(better, w.term, out.term), there, bits=bits)
        return replace(out, over=ir.spoilt(*(ir.select(w.there, w.over, ZERO) for w in some if w.risky)))

    return run


EXACT: dict[str, Make] = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "try_add": _tried(_sum),
    "try_subtract": _tried(_difference),
    "try_multiply": _tried(_product),
    "divide": _divided(ir.div),
    "remainder": _divided(ir.rem),
    "negate": _negated,
    "abs": _size,
    "sqrt": _strict(lambda a: ir.unary("sqrt", ir.real(a))),
    "exp": _strict(lambda a: ir.unary("exp", ir.real(a))),
    "equal": _strict(ir.eq, coded=True),
    "not_equal": _strict(lambda a, b: ir.not_(ir.eq(a, b)), coded=True),
    "less": _strict(ir.lt),
    "less_equal": _strict(ir.le),
    "greater": _strict(lambda a, b: ir.lt(b, a)),
    "greater_equal": _strict(lambda a, b: ir.le(b, a)),
    "between": _between,
    "and": _and,
    "or": _or,
    "not": _strict(ir.not_),
    "is_null": lambda w: ScalarTerm(ir.not_(w.there), bits=1),
    "is_not_null": lambda w: ScalarTerm(w.there, bits=1),
    "coalesce": _coalesce,
    "if_null": _coalesce,
    "least": _extreme(ir.lt),
    "greatest": _extreme(lambda a, b: ir.lt(b, a)),
}
"""On values of a pattern."""
_CHOOSING = ("coalesce", "if_null", "least", "greatest")
_BLIND = ("is_null", "is_not_null", "between")


def _checked(name: str, make: Make) -> Make:
    """As columns have it: a part that does not fit leaves the whole without a value, null or not."""

    def run(*words: ScalarTerm) -> ScalarTerm:
        got = make(*words)
        if any(w.risky for w in words) and (name in _BLIND or (name not in _CHOOSING and got.there != TRUE)):
            raise NotCompiled(f"'{name}' of what may not fit, or be null")
        return replace(got, over=ir.spoilt(got.over))

    return run


CHECKED: dict[str, Make] = {name: _checked(name, make) for name, make in EXACT.items()}
"""On columns of an item."""
