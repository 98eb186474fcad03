"""Punctuation in words: what patterns print as, read again.

>>> str(parse_punctuation("assumed: speed >= 50, id in {1, 3}"))
'assumed: id in {1, 3}, speed >= 50'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from typing import Any

from caesura.errors import DataError, closest
from caesura.punctuation.pattern import Pattern
from caesura.punctuation.punctuation import Intent, Punctuation, cti
from caesura.punctuation.time import INFINITY
from caesura.punctuation.values import NOT_NULL, NULL, Values, between, ge, gt, le, lt, one_of, value


def parse_punctuation(text: str) -> Punctuation:
    """``definite: time < 20, id = 4`` or a bare ``20`` for a CTI."""
    if re.fullmatch(r"-?\d+|inf|∞", text):
        return cti(drawn_time(text))
    said = re.match(r"\s*(\w+)\s*:", text)  # a colon further on is a time's
    intent, rest = (_intent(said[1]), text[said.end() :]) if said else (Intent.DEFINITE, text)
    conditions = [c for c in re.split(r",(?![^{\[(]*[}\])])", rest.strip()) if c.strip() not in ("", "*")]
    return Punctuation(Pattern.of(dict(_condition(c.strip()) for c in conditions)), intent)


def _intent(text: str) -> Intent:
    known = [intent.value for intent in Intent]
    if text not in known:
        raise DataError(f"there is no {text} punctuation.", remedy=closest(text, known))
    return Intent(text)


_COMPARE: dict[str, Callable[[Any], Values]] = {
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "=": value,
    "!=": lambda v: lt(v).union(gt(v)),
}


def _condition(text: str) -> tuple[str, Values]:
    """One attribute and its values, in the words that a pattern prints as."""
    found = re.fullmatch(r"(\w+)\s*(is\s+|in\s+|(?=[<>=!]))(.+)", text)
    name, how, what = found.groups() if found else ("", "", "")
    if how.startswith("is") and what in ("null", "not null"):
        return name, NULL if what == "null" else NOT_NULL
    parts = [] if how.startswith("is") else [_values(part.strip()) for part in what.split(" or ")]
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        raise DataError(
            f"cannot read the condition {text!r}.",
            remedy="Write conditions like 'id < 4', 'id in {1, 3}', 'id in [1..5)' or 'id is null'.",
        )
    return name, reduce(Values.union, known)


def _values(text: str) -> Values | None:
    """A part of a condition: ``null``, ``{1, 3}``, ``[1..5)``, ``>= 4``, or one value; None if it is none."""
    if not text:
        return None
    if text == "null":
        return NULL
    if text.startswith("{"):
        return one_of([_literal(v) for v in text.strip("{}").split(",")])
    if text[0] in "[(" and ".." in text:
        ends = re.fullmatch(r"[\[(](.+?)\.\.(.+)[\])]", text)
        closed = {"[]": "both", "[)": "left", "(]": "right", "()": "neither"}.get(text[0] + text[-1])
        return ends and between(_literal(ends[1]), _literal(ends[2]), closed=closed)  # type: ignore[arg-type]
    found = re.fullmatch(r"(<=|>=|!=|<|>|=)\s*([^<>=!].*)", text)
    if found is None:
        return None if text[0] in "<>=!" else value(_literal(text))
    return _COMPARE[found[1]](_literal(found[2]))


def _literal(text: str) -> Any:
    text = text.strip()
    if text in ("inf", "∞"):
        return INFINITY
    for kind in (int, float):
        if reads(kind, text):
            return kind(text)
    return {"null": None, "true": True, "false": False}.get(text, text.strip("'"))


def drawn_time(text: str) -> int:
    """A time as it is drawn, in ticks."""
    if text in ("inf", "∞"):
        return INFINITY
    if not reads(int, text):
        raise DataError(
            f"'{text}' is no time in a drawn stream.", remedy="Write whole numbers of ticks, or inf."
        )
    return int(text)


def reads(test: Callable[[str], object], cell: str) -> bool:
    """Whether a text can be read so."""
    try:
        test(cell)
    except ValueError:
        return False
    return True
