"""The terms of the kernels' language as Python source.

>>> WHOLE["add"].format("a", "b"), literal(2.0**1000 * 2.0**1000)
('added(a, b)', "float('inf')")
"""

from __future__ import annotations

from caesura.qre.compiler.ir import Term
from caesura.qre.language.whole_numbers import MIN_INT64

CALLED = (
    *("added", "taken", "multiplied", "rest_of", "size_of"),
    *("carried", "borrowed", "too_large", "both", "less", "spoilt"),
)
"""The functions on whole numbers that sources call: see `caesura.qre.language.whole_numbers`."""
TRUTHS = ("eq", "lt", "not", "and", "or", "item", "select")
FORMS = {
    "i2f": "float({0})",
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1} if {1} != 0.0 else 0.0)",
    "rem": "(np.fmod({0}, {1}) if {1} != 0.0 else 0.0)",
    "neg": "(-{0})",
    "abs": "abs({0})",
    "sqrt": "(sqrt({0}) if {0} >= 0.0 else float('nan'))",
    "exp": "np.exp({0})",
    "eq": "({0} == {1})",
    "lt": "({0} < {1})",
    "not": "(not {0})",
    "and": "({0} and {1})",
    "or": "({0} or {1})",
    "select": "({1} if {0} else {2})",
}


WHOLE = {
    "add": "added({0}, {1})",
    "sub": "taken({0}, {1})",
    "mul": "multiplied({0}, {1})",
    "rem": "rest_of({0}, {1})",
    "neg": "taken(0, {0})",
    "abs": "size_of({0})",
    "carried": "carried({0}, {1})",
    "borrowed": "borrowed({0}, {1})",
    "too_large": "too_large({0}, {1})",
    "both": "both({0}, {1}, {2})",
    "less": "less({0}, {1}, {2})",
    "spoilt": "spoilt({0}, {1}, {2})",
}
COUNTED = (*WHOLE, "i2f", "store")


def literal(value: float | int) -> str:
    if value == MIN_INT64 and isinstance(value, int):
        return f"({MIN_INT64 + 1} - 1)"  # as a literal it would be the negative of what does not fit
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"float('{value}')"
    return repr(value)


def float_compare(op: str, a: list[str], terms: tuple[Term, ...]) -> str:
    """NaN equals itself and is above every number; a constant is a number."""
    x, y = a
    if op == "eq":
        plain = any(t.op == "const" for t in terms)
        return f"({x} == {y})" if plain else f"({x} == {y} or ({x} != {x} and {y} != {y}))"
    if terms[1].op == "const":
        return f"({x} < {y})"
    if terms[0].op == "const":
        return f"(not {y} <= {x})"
    return f"({x} < {y} or ({y} != {y} and {x} == {x}))"
