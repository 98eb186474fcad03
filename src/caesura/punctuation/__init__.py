"""The algebra of punctuation: what a stream says about itself, as small frozen values.

>>> from caesura.punctuation import Pattern, cti, lt
>>> print(cti(20), "|", Pattern(id=4, speed=lt(20.0)))
definite: time < 20 | id = 4, speed < 20.0
"""

from caesura.punctuation.alignment import Alignment
from caesura.punctuation.mapping import Image, SchemaMapping
from caesura.punctuation.pattern import Pattern
from caesura.punctuation.promises import Promises
from caesura.punctuation.punctuation import Intent, Punctuation, cti, definite
from caesura.punctuation.time import INFINITY, MIN_TIME, TIME
from caesura.punctuation.values import (
    ANY,
    NOT_NULL,
    NOTHING,
    NULL,
    Interval,
    Values,
    between,
    ge,
    gt,
    le,
    lt,
    one_of,
    value,
)

__all__ = [
    "ANY",
    "INFINITY",
    "MIN_TIME",
    "NOTHING",
    "NOT_NULL",
    "NULL",
    "TIME",
    "Alignment",
    "Image",
    "Intent",
    "Interval",
    "Pattern",
    "Promises",
    "Punctuation",
    "SchemaMapping",
    "Values",
    "between",
    "cti",
    "definite",
    "ge",
    "gt",
    "le",
    "lt",
    "one_of",
    "value",
]
