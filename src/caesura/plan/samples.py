"""Patterns to ask a step's punctuation rule with, when only the rule is known."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from caesura.punctuation import Pattern, lt, value


def sample(schema: pa.Schema, names: tuple[str, ...]) -> Pattern:
    """A pattern that names these attributes, to ask a rule with."""
    constraints = {}
    for name in names:
        if name == "time":
            constraints[name] = lt(0)
        elif name in schema.names:
            constraints[name] = value(_any_value(schema.field(name).type))
    return Pattern.of(constraints)


def _any_value(t: pa.DataType) -> object:
    if pa.types.is_boolean(t):
        return True
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_nested(t):
        return "x"  # no pattern speaks of what is nested: where it goes is all that is asked
    if pa.types.is_binary(t):
        return b"x"
    if pa.types.is_decimal(t):
        return Decimal(0)
    return pa.scalar(0, t).as_py()
